package protect_test

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// modelOf trains a run to its end.
func modelOf(t *testing.T, run config.Run) []float64 {
	t.Helper()
	s, err := sim.New(run, data.NewFolder(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return append([]float64(nil), s.Returned()...)
}

// TestThinningIsSecret: under exact noise which contacts a step keeps does not follow from
// the seed, which everybody may read in a result; seeded noise repeats it. The noise is made
// too small to tell runs apart by it.
func TestThinningIsSecret(t *testing.T) {
	train := func(noise string, seed string) []float64 {
		run, err := peopleRun(t, "privacy.nodes.contacts=thinned", "privacy.nodes.degree=300", "privacy.nodes.keep=0.3",
			"privacy.epsilon=0", "privacy.noise_multiplier=0.00001", "privacy.noise="+noise, "seed="+seed)
		if err != nil {
			t.Fatal(err)
		}
		return modelOf(t, run)
	}
	apart := func(a, b []float64) (most float64) {
		for i := range a {
			most = math.Max(most, math.Abs(a[i]-b[i]))
		}
		return most
	}
	const byNoise = 1e-5 // ten steps of size 10, noise of 3e-5 on sums of 2000: 1e-6 and momentum
	if far := apart(train("exact", "1"), train("exact", "1")); far < 100*byNoise {
		t.Errorf("two runs with exact noise are %v apart: they kept the same contacts", far)
	}
	seeded := train("exact-seeded", "1")
	if far := apart(seeded, train("exact-seeded", "1")); far != 0 {
		t.Errorf("a run that is to be repeatable is %v from itself", far)
	}
	if far := apart(seeded, train("exact-seeded", "2")); far < 100*byNoise {
		t.Errorf("another seed keeps the same contacts: %v apart", far)
	}
}

// TestWeightsAreDeclared: what a participant weighs is seen by the server, so that it is the
// size that was declared and not how many persons there are.
func TestWeightsAreDeclared(t *testing.T) {
	run, err := peopleRun(t, "data.partition=region", "algorithm.kind=fedavg")
	if err != nil {
		t.Fatal(err)
	}
	federation, err := data.NewFolder("").Load(run.Data, run.Seed)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Of(run, federation.Shape())
	if err != nil {
		t.Fatal(err)
	}
	a, err := fl.New(run, m, len(federation.Train))
	if err != nil {
		t.Fatal(err)
	}
	differ := false
	for i, size := range []float64{680, 380, 260, 180, 140, 120, 90, 70, 50, 30} {
		p := &fl.Participant{ID: i, Name: federation.Train[i].Name, Data: &federation.Train[i]}
		if err := a.Prepare(p); err != nil {
			t.Fatal(err)
		}
		if p.Plan.Weight != size || float64(p.Plan.Batch) != size {
			t.Errorf("%s weighs %v and divides by %d, declared is %v", p.Name, p.Plan.Weight, p.Plan.Batch, size)
		}
		differ = differ || float64(federation.Train[i].Len()) != size
	}
	if !differ {
		t.Error("the test could not tell declared sizes from counts")
	}
}

// TestBrokenPromise: people with more contacts than was promised are refused before
// anything is trained, with the number that would do.
func TestBrokenPromise(t *testing.T) {
	run, err := peopleRun(t, "privacy.nodes.contacts=thinned", "privacy.nodes.degree=20")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(run, data.NewFolder(""))
	if err == nil {
		_, err = s.Step()
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "nobody has more than 20 contacts") || !strings.Contains(err.Error(), "promise 89") {
		t.Errorf("a broken promise: %v", err)
	}
}
