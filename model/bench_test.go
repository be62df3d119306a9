package model

import (
	"math"
	"slices"
	"strings"
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
	loss := CrossEntropy
	switch name {
	case "femnist":
		s.Classes = 62
	case "autoencoder":
		s.Classes, s.Reconstruct, loss = 0, true, SquaredError
	}
	m, err := Of(runOf(config.Model{Kind: "network", Name: name}, loss), s)
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
	case "exact":
		o.Paid = sampledSteps(b, rule, stream("batches"), mech.Randomness{Exact: mech.SystemEntropy()})
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
		im.Labels = append(im.Labels, r.Below(max(1, s.Classes)))
	}
	c.Images, c.Index = im, identity(&c.Index, n)
	return c
}

// productFlops is what the products of one step on one example take: convolutions and
// linear layers forward, and back to parameters and, but for the first, to inputs.
func productFlops[F Float](c *chain[F]) float64 {
	flops, ways := 0.0, 2.0
	for _, l := range c.layers {
		switch l := l.(type) {
		case *conv[F]:
			g := l.geometry
			flops += 2 * ways * float64(g.OutH()*g.OutW()*g.FilterLen())
			ways = 3
		case *dense[F]:
			flops += 2 * ways * float64(l.in*l.out)
			ways = 3
		case *residual[F]:
			return 0 // not counted
		}
	}
	return flops
}

// flops is what a step's products on one example take, in units of single precision:
// half as many values of double precision fit into a vector. 0: not known.
func (o *onePass) flops() float64 {
	switch l := o.learner.(type) {
	case *networkLearner[float32]:
		return productFlops(l.engine.network.chain)
	case *networkLearner[float64]:
		return 2 * productFlops(l.engine.network.chain)
	}
	return 0
}

// median is that of some values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkStep is one step of training on a batch of 512, as runs take it: clipping
// and simulated noise for /private, gradients alone for /plain, and for /in-place what
// group runs do; /private-avx2 is the private step without AVX-512. The kinds take turns
// within one measurement, and right before each of them the machine's own speed is
// measured, fused multiply-adds alone, so that ratios do not depend on the minute.
// best-cpu-s is the best step's processor time, which a busy machine disturbs least;
// %peak is the median of the shares of what the fused multiply-adds reached, %avx2-peak
// of those in vectors of 32 bytes.
func BenchmarkStep(b *testing.B) {
	const batch = 512
	kinds := []string{"plain", "in-place", "private", "private-avx2"}
	for _, name := range []string{"mnist", "autoencoder", "agnews", "femnist", "resnet8"} {
		b.Run(name, func(b *testing.B) {
			var passes []*onePass
			for _, kind := range kinds {
				passes = append(passes, newPass(b, name, strings.TrimSuffix(kind, "-avx2"), batch))
				passes[len(passes)-1].step(b) // buffers grow in the first one
			}
			best := slices.Repeat([]float64{math.Inf(1)}, len(kinds))
			ofAVX2, ofWidest := make([][]float64, len(kinds)), make([][]float64, len(kinds))
			var ratios []float64
			b.ReportAllocs()
			for b.Loop() {
				var took [4]float64
				for i, p := range passes {
					avx2, widest := peakFlops()
					if kinds[i] == "private-avx2" {
						withoutAVX512(func() { took[i] = p.timed(b) })
					} else {
						took[i] = p.timed(b)
					}
					best[i] = min(best[i], took[i])
					reached := 100 * batch * p.flops() / took[i]
					ofAVX2[i], ofWidest[i] = append(ofAVX2[i], reached/avx2), append(ofWidest[i], reached/widest)
				}
				ratios = append(ratios, took[2]/took[0])
			}
			for i, kind := range kinds {
				b.ReportMetric(best[i], kind+"-best-cpu-s")
				if passes[i].flops() > 0 && Kernel() != "purego" {
					b.ReportMetric(median(ofAVX2[i]), kind+"-%avx2-peak")
					b.ReportMetric(median(ofWidest[i]), kind+"-%peak")
				}
			}
			b.ReportMetric(median(ratios), "private/plain")
		})
	}
}

// BenchmarkExactStep is a private step on a batch of 128 as simulations take it, and as what
// leaves a silo is made, with integer sums and exact noise from the system: in turns.
func BenchmarkExactStep(b *testing.B) {
	for _, name := range []string{"mnist", "autoencoder", "agnews", "femnist", "resnet8"} {
		b.Run(name, func(b *testing.B) {
			simulated, exact := newPass(b, name, "private", 128), newPass(b, name, "exact", 128)
			simulated.step(b)
			exact.step(b)
			var took, ratios []float64
			for b.Loop() {
				s, e := simulated.timed(b), exact.timed(b)
				took, ratios = append(took, e), append(ratios, e/s)
			}
			b.ReportMetric(median(took), "exact-cpu-s")
			b.ReportMetric(median(ratios), "exact/simulated")
		})
	}
}

// timed is the processor time of a step.
func (o *onePass) timed(b *testing.B) float64 {
	c := cpu()
	o.step(b)
	return (cpu() - c).Seconds()
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
