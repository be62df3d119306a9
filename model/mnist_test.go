package model

import (
	"os"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
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
	m, err := Of(runOf(config.Model{Kind: "network", Name: "mnist"}, CrossEntropy), data.Shape{Classes: 10, Height: 28, Width: 28})
	if err != nil {
		t.Fatal(err)
	}
	l, theta := learnerOf(t, m), make([]float64, m.Parameters())
	m.Initialise(theta, stream("theta"))
	const size = 256
	steps := sampledSteps(t, mech.StepRule{Clip: 1, Noise: 0.6, Sampling: event.Poisson, Rate: size / 6000.0}, stream("batches"), mech.Randomness{Keyed: stream("noise")})
	p := &Pass{Step: Step{Paid: steps, Divisor: size}, Count: 30, StepSize: 0.25}
	if p.Optimiser, err = NewOptimiser(config.Local{Optimiser: "momentum", Momentum: 0.5}); err != nil {
		t.Fatal(err)
	}
	if err := l.Train(theta, train, p); err != nil {
		t.Fatal(err)
	}
	_, wrong, err := l.Judge(theta, test)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of 1000 wrong after 30 private steps", wrong)
	if wrong > 400 {
		t.Errorf("%d of 1000 wrong, want 400 or fewer", wrong)
	}
}

func pictures(t *testing.T, folder, part string, n int) *data.Client {
	t.Helper()
	im, err := data.LoadIDXImages(folder, "mnist", part, 10)
	if err != nil {
		t.Fatal(err)
	}
	c := &data.Client{Pictures: data.Pictures{Images: im}}
	c.Index = identity(&c.Index, n)
	return c
}
