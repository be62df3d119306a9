//go:build linux

package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// BenchmarkStep is a step's gradient through a Learner, private and plain, without noise,
// on a GPU: COTERIE_CUDA=1 go test -run - -bench Step ./internal/cuda
func BenchmarkStep(b *testing.B) {
	if !cudatest.OnDevice() {
		b.Skip("COTERIE_CUDA is not set")
	}
	cudatest.Use(b)
	onNetworks(b, func(name string, shape data.Shape, m model.Model, l model.Learner) {
		theta, g := make([]float64, m.Parameters()), make([]float64, m.Parameters())
		m.Initialise(theta, rand.NewPCG(1, 2))
		c := examplesOf(shape, 8192)
		for _, batch := range batches(shape, 1, 512, 4096) {
			rows := rand.New(rand.NewPCG(1, 3)).Perm(8192)[:batch]
			for _, step := range []struct {
				name string
				s    model.Step
			}{{"private", model.Step{Clip: 0.1, Divisor: batch}}, {"plain", model.Step{}}} {
				b.Run(fmt.Sprintf("%s/%d/%s", name, batch, step.name), func(b *testing.B) {
					for b.Loop() {
						if err := l.Gradient(g, theta, c, rows, &step.s); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	})
}

// BenchmarkPass is a whole step of training, with batches that are drawn, noise and update:
// COTERIE_CUDA=1 go test -run - -bench Pass ./internal/cuda
func BenchmarkPass(b *testing.B) {
	if !cudatest.OnDevice() {
		b.Skip("COTERIE_CUDA is not set")
	}
	cudatest.Use(b)
	onNetworks(b, func(name string, shape data.Shape, m model.Model, l model.Learner) {
		theta := make([]float64, m.Parameters())
		c := examplesOf(shape, 8192)
		for _, batch := range batches(shape, 512, 4096) {
			for kind, rule := range map[string]mech.StepRule{
				"plain": {}, "private": {Clip: 0.1, Noise: 1},
				"online": {Clip: 0.1, Noise: 1, Clipping: mech.ClipRule{Signal: mech.SignalDirections, GradientNoise: 1.01, Rate: 0.001, StepRate: 0.001}},
			} {
				b.Run(fmt.Sprintf("%s/%d/%s", name, batch, kind), func(b *testing.B) {
					m.Initialise(theta, rand.NewPCG(1, 2))
					p := model.Pass{Step: model.Step{Divisor: batch}, Count: b.N, StepSize: 1e-6}
					if rule.Sampling, rule.Rate = event.Poisson, float64(batch)/8192; rule.Noise > 0 {
						p.Paid = paid(b, rule)
					} else {
						p.Sampler = new(mech.Sampler)
						family := rng.NewFamily(7, "batches")
						if err := p.Sampler.Open(rule.Sampling, rule.Rate, 0, mech.NewEntropy(family.Stream(0, 0))); err != nil {
							b.Fatal(err)
						}
					}
					b.ResetTimer()
					if err := l.Train(theta, c, &p); err != nil {
						b.Fatal(err)
					}
				})
			}
		}
	})
}

// examplesOf draws pictures, or texts.
func examplesOf(s data.Shape, n int) *data.Client {
	src := rand.New(rand.NewPCG(1, 1))
	if s.Vocabulary == 0 {
		return client(s, n, src)
	}
	c := &data.Client{}
	c.Features, c.Y = s.Features, make([]float64, n)
	for range n * s.Features {
		c.X = append(c.X, float64(src.IntN(s.Vocabulary)))
	}
	return c
}

// batches are the sizes that networks of pictures are timed with, or those of texts: the quick
// membership study's, and that of examples/wikitext-private.yaml.
func batches(s data.Shape, pictures ...int) []int {
	if s.Vocabulary > 0 {
		return []int{16, 512}
	}
	return pictures
}

// onNetworks has a device ready for each of the papers' networks of pictures, the residual
// network and the membership study's transformer.
func onNetworks(b *testing.B, do func(name string, shape data.Shape, m model.Model, l model.Learner)) {
	for _, n := range []struct {
		name, loss string
		shape      data.Shape
	}{
		{"mnist", "cross-entropy", data.Shape{Height: 28, Width: 28, Classes: 10}},
		{"autoencoder", "squared-error", data.Shape{Height: 28, Width: 28, Reconstruct: true}},
		{"femnist", "cross-entropy", data.Shape{Height: 28, Width: 28, Classes: 62}},
		{"resnet8", "cross-entropy", data.Shape{Height: 32, Width: 32, Channels: 3, Classes: 10}},
		{"gpt", "next-word", data.Shape{Features: 64, Vocabulary: 2048}},
	} {
		block := config.Model{Kind: "network", Name: n.name}
		if n.shape.Vocabulary > 0 {
			block = config.Model{Kind: "transformer", Blocks: 2, Width: 128, Heads: 4}
		}
		m, err := model.Of(config.Run{Model: block, Algorithm: config.Algorithm{Local: config.Local{Loss: n.loss}}}, n.shape)
		if err != nil {
			b.Fatal(err)
		}
		p, err := model.PlanOf(m)
		if err != nil {
			b.Fatal(err)
		}
		d, err := cuda.Open(0, p)
		if err != nil {
			b.Fatal(err)
		}
		l, err := model.On(m, d).Learner()
		if err != nil {
			b.Fatal(err)
		}
		do(n.name, n.shape, m, l)
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	}
}
