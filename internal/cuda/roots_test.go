//go:build linux

package cuda_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// TestRoots: the root mean squared error is one root over a batch, against classes and values, of
// pictures and rows.
func TestRoots(t *testing.T) {
	cudatest.Use(t)
	for name, n := range map[string]struct {
		shape  data.Shape
		layers layers
	}{
		"pictures of classes": {data.Shape{Height: 6, Width: 5, Classes: 4}, layers{{Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 4}}},
		"pictures of values":  {data.Shape{Height: 6, Width: 5}, layers{{Kind: "conv", Channels: 4, Kernel: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}},
		"rows of values":      {data.Shape{Features: 6}, layers{{Kind: "linear", Units: 7}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}},
		"rows of two classes": {data.Shape{Features: 6, Classes: 2}, layers{{Kind: "linear", Units: 7}, {Kind: "tanh"}, {Kind: "linear", Units: 1}, {Kind: "sigmoid"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m, theta := build(t, n.shape, "rmse", n.layers)
			checkRoots(t, m, theta, examplesFor(n.shape, 40, rand.New(rand.NewPCG(3, 4))))
		})
	}
}

// checkRoots holds roots against the processor's, in single gradients and in passes whose parameters
// stay on the device; what is no whole batch, or would have to be clipped, is refused.
func checkRoots(t *testing.T, m model.Model, theta []float64, c *data.Client) {
	t.Helper()
	there, here := learner(t, model.On(m, open(t, m, 16))), learner(t, m)
	got, want := make([]float64, len(theta)), make([]float64, len(theta))
	for _, batch := range [][]int{{3, 1, 38, 17, 20, 5}, {7}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}} {
		if err := there.Gradient(got, theta, c, batch, &model.Step{}); err != nil {
			t.Fatal(err)
		}
		if err := here.Gradient(want, theta, c, batch, &model.Step{}); err != nil {
			t.Fatal(err)
		}
		if off := apart(got, want); off > 5e-6 {
			t.Errorf("%d rows: off by %.2g", len(batch), off)
		}
	}
	train := func(l model.Learner) []float64 {
		p, err := model.NewPass(config.Local{Epochs: 3, Batch: 9, Step: 0.1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		family := rng.NewFamily(1, "order")
		p.Memory, p.Shuffle = new(model.Memory), family.Stream(0, 0)
		end := append([]float64(nil), theta...)
		if err := l.Train(end, c, &p); err != nil {
			t.Fatal(err)
		}
		for i := range end {
			end[i] -= theta[i]
		}
		return end
	}
	if off := apart(train(there), train(here)); off > 5e-6 {
		t.Errorf("after a pass they are %.2g of their way apart", off)
	}
	if err := there.Gradient(got, theta, c, make([]int, 17), &model.Step{}); err == nil || !strings.Contains(err.Error(), "one root over a batch of 17 examples") {
		t.Error(err)
	}
	if err := there.Gradient(got, theta, c, []int{1}, &model.Step{Clip: 1, Divisor: 1}); err == nil || !strings.Contains(err.Error(), "cannot be clipped") {
		t.Error(err)
	}
}
