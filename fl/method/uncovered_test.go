package method_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	_ "github.com/coterie-fl/coterie/all"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// TestOwnModelsAreNotCoveredByReleases: where noise is on what is sent, a statement says
// that models which participants keep are not covered; where every step is noised, they
// are, and it does not.
func TestOwnModelsAreNotCoveredByReleases(t *testing.T) {
	for _, c := range []struct {
		method, protects string
		says             bool
	}{
		{"mr-mtl", "update", true}, {"ditto", "update", true}, {"fedavg", "update", false},
		{"mr-mtl", "client", true}, {"finetune", "client", true}, {"fedavg", "client", false},
		{"mr-mtl", "example", false}, {"ditto", "example", false},
	} {
		set := []string{"algorithm.kind=" + c.method, "privacy.protects=" + c.protects, "algorithm.rounds=1"}
		if c.protects != "update" {
			set = append(set, "privacy.epsilon=6")
		}
		run, err := config.Resolve(nil, set, sim.Checks()...)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		s, err := sim.New(run, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
		res, err := s.Result()
		s.Close()
		if err != nil {
			t.Fatal(err)
		}
		says := slices.ContainsFunc(res.Privacy.NotCovered, func(line string) bool { return strings.HasPrefix(line, "participants' own models") })
		if says != c.says {
			t.Errorf("%s under %s: %q", c.method, c.protects, res.Privacy.NotCovered)
		}
	}
}

// TestDrawnAsFarUnderEveryProtection: how far MR-MTL draws a model to the mean after a
// round follows from the steps of local training, whatever is paid for.
func TestDrawnAsFarUnderEveryProtection(t *testing.T) {
	for _, protects := range []string{"nothing", "update", "example", "client"} {
		set := []string{"algorithm.kind=mr-mtl", "privacy.protects=" + protects, "algorithm.prox=server", "algorithm.local.epochs=3", "algorithm.local.batch=2"}
		if protects == "example" || protects == "client" {
			set = append(set, "privacy.epsilon=6")
		}
		run, err := config.Resolve(nil, set, sim.Checks()...)
		if err != nil {
			t.Fatal(err)
		}
		m := model.Linear{Features: 2}
		a, err := fl.New(run, m, 1)
		if err != nil {
			t.Fatal(err)
		}
		p := &fl.Participant{Data: &data.Client{Rows: data.Rows{Features: 2, X: make([]float64, 16), Y: make([]float64, 8)}}}
		if err := a.Prepare(p); err != nil {
			t.Fatal(err)
		}
		copy(p.Personal, []float64{1, 1})
		got := make([]float64, 2)
		a.Adopt(got, fl.Broadcast{Round: 1, Hypotheses: []float64{0, 0}}, p, nil)
		// 12 steps of 0.1 at lambda 1: 1/(1 + 1.2).
		if want := 1 / 2.2; math.Abs(got[0]-want) > 1e-12 {
			t.Errorf("%s: drawn to %v, want %v", protects, got, want)
		}
	}
}
