package protect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestNothingPublicTellsTheSize is DESIGN's erratum 14: under add-remove two silos
// of different size, and one without rows, plan and declare the same. In paper mode they
// do not.
func TestNothingPublicTellsTheSize(t *testing.T) {
	small, _ := fltest.Silos(1, 21, fltest.Features, 0.2)
	large, _ := fltest.Silos(1, 90, fltest.Features, 0.2)
	declares := func(run config.Run, c *data.Client) string {
		s := fltest.New(t, run, 2)
		p := fl.Participant{Data: c}
		if err := s.Prepare(&p); err != nil {
			t.Fatal(err)
		}
		e := s.Protection().(*example)
		r, err := p.Plan.Release(e.choosing(0), e.owesMoments(0, &p))
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float64, fl.DeclarationLength)
		p.Declare(out, 0)
		return fmt.Sprint(p.Plan.Batch, p.Plan.Steps, p.Plan.Noise, p.Plan.Rate, r, out)
	}
	for _, kind := range []string{"mr-mtl", "fedavg", "ditto", "ifca"} {
		run := fltest.Run(kind)
		if declares(run, &small[0]) == declares(run, &large[0]) {
			t.Errorf("%s, paper mode: the test cannot see a size", kind)
		}
		run.Algorithm.Mode, run.Privacy.Relation = "sound", "add-remove"
		run.Privacy.PublicSize, run.Algorithm.Weights = 40, "equal"
		if a, b := declares(run, &small[0]), declares(run, &large[0]); a != b {
			t.Errorf("%s: 21 rows give %s, 90 rows %s", kind, a, b)
		}
		none := data.Client{Rows: data.Rows{Features: fltest.Features}}
		if a, b := declares(run, &small[0]), declares(run, &none); a != b {
			t.Errorf("%s: 21 rows give %s, none %s", kind, a, b)
		}
		run.Privacy.Relation, run.Privacy.PublicSize = "replace-one", 0
		if err := fltest.New(t, run, 2).Prepare(&fl.Participant{Data: &none}); err == nil || !strings.Contains(err.Error(), "it has no examples") {
			t.Errorf("%s: no rows, where their number is public: %v", kind, err)
		}
	}
}

// TestPrivateChoiceIsPaidFor: what a choosing round pays for names it.
func TestPrivateChoiceIsPaidFor(t *testing.T) {
	train, _ := fltest.Silos(2, 40, fltest.Features, 0.2)
	run := fltest.Run("ifca")
	_, ps, _ := fltest.Federate(t, run, train)
	if want := 1; ps[0].Paid.Choices != want || ps[0].Paid.Rounds != run.Algorithm.Rounds {
		t.Errorf("paid for %+v, want %d choice in %d rounds", ps[0].Paid, want, run.Algorithm.Rounds)
	}
	r, err := ps[0].Plan.Release(true, false)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, part := range r.What.(event.Composed).Parts {
		if again, ok := part.(event.Repeated); ok {
			if s, ok := again.Of.(event.Selection); ok {
				found = s.Mechanism == event.Exponential && s.Epsilon == 0.03*6
			}
		}
	}
	if !found {
		t.Errorf("a choosing round pays for %+v", r.What)
	}
}
