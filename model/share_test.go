package model

import (
	"slices"
	"sync"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// Workers train other parameters of one model at the same time: what a learner
// derives from its parameters must be its own, or gradients are those of another
// worker's model.
func TestLearnersOfOneModelShareNothing(t *testing.T) {
	small, c := smallPictures(t, 3, 64)
	grey := &data.Client{Pictures: data.Pictures{Images: &data.Images{Height: 7, Width: 12, Pixels: c.Images.Pixels, Labels: c.Images.Labels}, Index: c.Index}}
	layers := []Layer{
		{Kind: "conv", Channels: 4, Kernel: 3}, {Kind: "relu"}, {Kind: "conv", Channels: 4, Kernel: 3}, {Kind: "relu"},
		{Kind: "linear", Units: 3},
	}
	pictures, err := Of(runOf(config.Model{Kind: "network", Layers: layers}, CrossEntropy), data.Shape{Classes: 3, Height: grey.Images.Height, Width: grey.Images.Width})
	if err != nil {
		t.Fatal(err)
	}
	dense := []Layer{{Kind: "linear", Units: 9}, {Kind: "tanh"}, {Kind: "linear", Units: 9}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}
	rows, err := Of(runOf(config.Model{Kind: "network", Layers: dense}, SquaredError), data.Shape{Features: 5})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]struct {
		m Model
		c *data.Client
		d Pass
	}{
		"silo's pictures":  {small, c, Pass{StepSize: 0.05, Epochs: 60, Batch: 32}},
		"client's picture": {pictures, grey, Pass{StepSize: 0.05, Epochs: 60, Batch: 16, Single: true}},
		"rows":             {rows, &data.Client{Rows: someRows(5, 128)}, Pass{StepSize: 0.05, Epochs: 1000}},
	} {
		train := func(worker int) []float64 {
			theta := make([]float64, v.m.Parameters())
			v.m.Initialise(theta, stream([]string{"a", "b"}[worker]))
			pass := v.d
			pass.Shuffle = stream("shuffle")
			l, err := v.m.Learner()
			if err != nil {
				t.Error(err)
				return nil
			}
			if err := l.Train(theta, v.c, &pass); err != nil {
				t.Error(err)
			}
			return theta
		}
		alone := [2][]float64{train(0), train(1)}
		var together [2][]float64
		var done sync.WaitGroup
		for w := range 2 {
			done.Go(func() { together[w] = train(w) })
		}
		done.Wait()
		for w := range 2 {
			if !slices.Equal(alone[w], together[w]) {
				t.Errorf("%s: worker %d comes to another model beside the other one", name, w)
			}
		}
	}
}
