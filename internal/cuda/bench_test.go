//go:build linux

package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

// BenchmarkStep is a step's gradient through a Learner, private and plain, without noise,
// on a GPU: COTERIE_CUDA=1 go test -run - -bench Step ./internal/cuda
func BenchmarkStep(b *testing.B) {
	if !cudatest.OnDevice() {
		b.Skip("COTERIE_CUDA is not set")
	}
	cudatest.Use(b)
	for _, n := range []struct {
		name, loss string
		shape      data.Shape
	}{
		{"mnist", "cross-entropy", data.Shape{Height: 28, Width: 28, Classes: 10}},
		{"autoencoder", "squared-error", data.Shape{Height: 28, Width: 28, Reconstruct: true}},
		{"femnist", "cross-entropy", data.Shape{Height: 28, Width: 28, Classes: 62}},
	} {
		m, err := model.Of(config.Run{Model: config.Model{Kind: "network", Name: n.name}, Algorithm: config.Algorithm{Local: config.Local{Loss: n.loss}}}, n.shape)
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
		theta, g := make([]float64, m.Parameters()), make([]float64, m.Parameters())
		m.Initialise(theta, rand.NewPCG(1, 2))
		c := client(n.shape, 8192, rand.New(rand.NewPCG(1, 1)))
		for _, batch := range []int{1, 512, 4096} {
			rows := rand.New(rand.NewPCG(1, 3)).Perm(8192)[:batch]
			for _, step := range []struct {
				name string
				s    model.Step
			}{{"private", model.Step{Clip: 0.1, Divisor: batch}}, {"plain", model.Step{}}} {
				b.Run(fmt.Sprintf("%s/%d/%s", n.name, batch, step.name), func(b *testing.B) {
					for b.Loop() {
						if err := l.Gradient(g, theta, c, rows, &step.s); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	}
}
