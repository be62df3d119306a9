package model

import (
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
)

// cpu is the processor time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// onePass is a model, a client with as many examples of noise as a step takes, and a pass
// of one step: what a run calls, from the batch that is drawn to the moved parameters.
type onePass struct {
	learner Learner
	theta   []float64
	client  *data.Client
	Pass
}

func (o *onePass) step(b *testing.B) {
	if err := o.learner.Train(o.theta, o.client, &o.Pass); err != nil {
		b.Fatal(err)
	}
}

// newPass is a network's plain step as group runs take it (in place), as silos do
// without privacy (plain), or with privacy.
func newPass(b *testing.B, name, kind string, batch int) *onePass {
	b.Helper()
	n := named[name]
	s := data.Shape{Classes: 10, Height: n.Input.Height, Width: n.Input.Width, Channels: n.Input.Channels}
	if name == "agnews" {
		s = data.Shape{Classes: 4, Features: n.Input.Len()}
	}
	if name == "femnist" {
		s.Classes = 62
	}
	m, err := Of(runOf(config.Model{Kind: "network", Name: name}, CrossEntropy), s)
	if err != nil {
		b.Fatal(err)
	}
	o := &onePass{learner: learnerOf(b, m), theta: make([]float64, m.Parameters()), client: noiseClient(s, batch)}
	m.Initialise(o.theta, stream("theta"))
	rule := mech.StepRule{Clip: 1, Noise: 1, Sampling: event.Shuffle, Batch: batch, Examples: batch, Rate: 1}
	o.StepSize, o.Count, o.Epochs, o.Divisor = 1e-6, 1, 1, batch
	switch kind {
	case "in-place":
		o.Single = true
	case "plain":
		o.Sampler = new(mech.Sampler)
		if err := o.Sampler.Open(rule.Sampling, rule.Rate, rule.Batch, mech.NewEntropy(stream("batches"))); err != nil {
			b.Fatal(err)
		}
	case "private":
		o.Paid = sampledSteps(b, rule, stream("batches"), mech.Randomness{Keyed: stream("noise")})
	}
	return o
}

// noiseClient has examples of noise.
func noiseClient(s data.Shape, n int) *data.Client {
	r, c := stream("pictures"), new(data.Client)
	if !s.Pictures() {
		c.Rows = data.Rows{Features: s.Features, X: normals[float64]("rows", n*s.Features, 1)}
		for range n {
			c.Y = append(c.Y, float64(r.Below(s.Classes)))
		}
		return c
	}
	im := &data.Images{Height: s.Height, Width: s.Width, Channels: s.Depth(), Pixels: make([]byte, n*s.Height*s.Width*s.Depth())}
	for i := range im.Pixels {
		im.Pixels[i] = byte(r.Below(256))
	}
	for range n {
		im.Labels = append(im.Labels, r.Below(s.Classes))
	}
	c.Images, c.Index = im, identity(&c.Index, n)
	return c
}

// mnistFlops is what the products of one step on one picture take: convolutions and
// linear layers forward, and back to parameters and, but for the first, to inputs.
func mnistFlops() float64 {
	conv1, conv2 := 27*27*8*8*1*16.0, 23*23*4*4*16*32.0
	linear := 16928*32.0 + 32*10
	return 2 * (2*conv1 + 3*(conv2+linear))
}

// BenchmarkStep is one step of training on a batch of 512, as runs take it: clipping
// and simulated noise for /private, gradients alone for /plain, and for /in-place what
// group runs do. best-cpu-s is the best step's processor time, which a busy machine
// disturbs least; %peak is the share of the fused multiply-adds that the processor
// does at best in the same run, %avx2-peak of those in vectors of 32 bytes. The kinds take turns within one measurement, so that their ratio
// does not depend on the minute.
func BenchmarkStep(b *testing.B) {
	kinds := []string{"plain", "in-place", "private"}
	for _, name := range []string{"mnist", "agnews", "femnist", "resnet8"} {
		b.Run(name, func(b *testing.B) {
			var passes []*onePass
			for _, kind := range kinds {
				passes = append(passes, newPass(b, name, kind, 512))
				passes[len(passes)-1].step(b) // buffers grow in the first one
			}
			best, wall := slices.Repeat([]float64{math.Inf(1)}, len(kinds)), slices.Repeat([]float64{math.Inf(1)}, len(kinds))
			var ratios []float64
			var avx2, widest float64
			b.ReportAllocs()
			for b.Loop() {
				a, w := peakFlops()
				avx2, widest = max(avx2, a), max(widest, w)
				var took [3]float64
				for i, p := range passes {
					c, t := cpu(), time.Now()
					p.step(b)
					took[i] = time.Since(t).Seconds()
					best[i], wall[i] = min(best[i], (cpu()-c).Seconds()), min(wall[i], took[i])
				}
				ratios = append(ratios, took[2]/took[0])
			}
			for i, kind := range kinds {
				b.ReportMetric(best[i], kind+"-best-cpu-s")
				if name == "mnist" && widest > 0 {
					b.ReportMetric(100*512*mnistFlops()/wall[i]/widest, kind+"-%peak")
					b.ReportMetric(100*512*mnistFlops()/wall[i]/avx2, kind+"-%avx2-peak")
				}
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "private/plain")
		})
	}
}

// BenchmarkFEMNISTClients is 20 clients of 100 pictures, batches of 10, without
// privacy: 200 steps, as clients take them in place and, for comparison in the same
// run, with the gradient written out.
func BenchmarkFEMNISTClients(b *testing.B) {
	inPlace, written := newPass(b, "femnist", "in-place", 100), newPass(b, "femnist", "", 100)
	time20 := func(p *onePass) float64 {
		p.Batch, p.Shuffle = 10, stream("order")
		c := cpu()
		for range 20 {
			p.step(b)
		}
		return (cpu() - c).Seconds()
	}
	best, apart := math.Inf(1), math.Inf(1)
	for b.Loop() {
		best = min(best, time20(inPlace))
		apart = min(apart, time20(written))
	}
	b.ReportMetric(best, "best-cpu-s")
	b.ReportMetric(apart, "best-cpu-s-gradient")
}
