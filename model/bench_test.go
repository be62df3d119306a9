package model

import (
	"fmt"
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/internal/rng"
)

// cpu is the processor time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stepper is a network ready for steps on a batch of noise.
type stepper struct {
	theta, grad []float32
	plain       func() error
	private     func() error
	descend     func() error
}

func newStepper(b *testing.B, name string, batch, workers int) stepper {
	b.Helper()
	n := named[name]
	net, err := Build[float32](n.Input, n.Layers)
	if err != nil {
		b.Fatal(err)
	}
	var o Objective[float32] = crossEntropy[float32]{}
	if name == "autoencoder" {
		o = squaredError[float32]{}
	}
	p := pool.New(workers)
	b.Cleanup(p.Close)
	e, err := NewEngine(net, o, p)
	if err != nil {
		b.Fatal(err)
	}
	ex, order := examples(e, batch)
	s := stepper{theta: make([]float32, net.Parameters()), grad: make([]float32, net.Parameters())}
	net.Initialise(s.theta, stream("theta"))
	steps, err := NewPrivateSteps(e, 1, 1, batch, exampleTerms)
	if err != nil {
		b.Fatal(err)
	}
	opt := &SGD[float32]{Step: 1e-6}
	s.plain = func() error {
		_, err := e.Gradient(s.grad, s.theta, ex, order)
		opt.Apply(s.theta, s.grad)
		return err
	}
	s.descend = func() error {
		_, err := e.Descend(s.theta, ex, order, opt.Step)
		return err
	}
	f := rng.NewFamily(1, "noise")
	var src rng.Stream
	src.Key(&f, 0, 0)
	s.private = func() error {
		_, err := steps.Gradient(s.grad, s.theta, ex, order, &src)
		opt.Apply(s.theta, s.grad)
		return err
	}
	return s
}

// BenchmarkStep is one step of training on a batch of 512: gradients, clipping
// and simulated noise for /private, gradients alone for /plain. cpu-s/op is the
// best step's processor time, which a busy machine disturbs least.
func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"mnist", "autoencoder", "agnews", "femnist"} {
		for _, kind := range []string{"plain", "private"} {
			b.Run(name+"/"+kind, func(b *testing.B) { benchStep(b, name, kind, 512, 1) })
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/workers-%d", name, kind, workers), func(b *testing.B) { benchStep(b, name, kind, 512, workers) })
			}
		}
	}
}

func benchStep(b *testing.B, name, kind string, batch, workers int) {
	s := newStepper(b, name, batch, workers)
	step := s.plain
	if kind == "private" {
		step = s.private
	}
	if err := step(); err != nil { // buffers grow in the first one
		b.Fatal(err)
	}
	best, fastest := math.Inf(1), math.Inf(1)
	b.ReportAllocs()
	for b.Loop() {
		c, t := cpu(), time.Now()
		if err := step(); err != nil {
			b.Fatal(err)
		}
		best, fastest = min(best, (cpu()-c).Seconds()), min(fastest, time.Since(t).Seconds())
	}
	b.ReportMetric(best, "best-cpu-s")
	b.ReportMetric(fastest, "best-wall-s")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapInuse)/1e6, "heap-MB")
}

// BenchmarkFEMNISTClients is 20 clients of 100 pictures, batches of 10, without
// privacy: 200 steps, as clients take them and, for comparison in the same run, with
// the gradient written out.
func BenchmarkFEMNISTClients(b *testing.B) {
	s := newStepper(b, "femnist", 10, 1)
	time200 := func(step func() error) float64 {
		c := cpu()
		for range 200 {
			if err := step(); err != nil {
				b.Fatal(err)
			}
		}
		return (cpu() - c).Seconds()
	}
	best, apart := math.Inf(1), math.Inf(1)
	for b.Loop() {
		best = min(best, time200(s.descend))
		apart = min(apart, time200(s.plain))
	}
	b.ReportMetric(best, "best-cpu-s")
	b.ReportMetric(apart, "best-cpu-s-gradient")
}
