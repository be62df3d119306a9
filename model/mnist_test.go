package model

import (
	"os"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

// TestPrivateTrainingOnMNIST takes a few private steps on real pictures: accuracy
// on others must leave chance (10 %) far behind. The run is keyed, so it repeats.
func TestPrivateTrainingOnMNIST(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	train, test := pictures(t, folder, "train", 6000), pictures(t, folder, "t10k", 1000)
	n := named["mnist"]
	e, theta := newEngine[float32](t, n.Input, n.Layers, crossEntropy[float32]{}, 2)
	batches, err := NewBatches(event.Poisson, 6000, 256, 1)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := NewPrivateSteps(e, 1, 0.6, batches.Size(), exampleTerms)
	if err != nil {
		t.Fatal(err)
	}
	opt := &SGD[float32]{Step: 0.25, Momentum: 0.5}
	grad := make([]float32, len(theta))
	noise := rng.NewFamily(1, "noise")
	for s := range 30 {
		if _, err := steps.Gradient(grad, theta, train, batches.Step(s), noise.Stream(s, 0)); err != nil {
			t.Fatal(err)
		}
		opt.Apply(theta, grad)
	}
	order := make([]int, 1000)
	for i := range order {
		order[i] = i
	}
	out := make([]float32, 10*len(order))
	if err := e.Outputs(out, theta, test, order); err != nil {
		t.Fatal(err)
	}
	right := 0
	for i := range order {
		best := 0
		for k, v := range out[10*i : 10*i+10] {
			if v > out[10*i+best] {
				best = k
			}
		}
		if best == test.Labels[i] {
			right++
		}
	}
	t.Logf("%d of 1000 right after 30 private steps", right)
	if right < 600 {
		t.Errorf("%d of 1000 right, want 600 or more", right)
	}
}

func pictures(t *testing.T, folder, part string, n int) Examples[float32] {
	t.Helper()
	im, err := data.LoadIDXImages(folder, "mnist", part, 10)
	if err != nil {
		t.Fatal(err)
	}
	ex := Examples[float32]{X: make([]float32, n*784), Labels: im.Labels[:n]}
	for i := range ex.X {
		ex.X[i] = float32(im.Pixels[i]) / 255
	}
	return ex
}
