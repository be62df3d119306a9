package protect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// TestMomentsArePaidOnce: the first round pays for them before they are drawn, later
// ones do not, and a first round that is made again pays the same and draws nothing.
func TestMomentsArePaidOnce(t *testing.T) {
	train, _ := fltest.Silos(2, 40, fltest.Features, 0.2)
	for _, relation := range bothRelations {
		run := paidRun("mr-mtl", relation, 3)
		run.Privacy.Noise = "exact"
		s, _, p := preparedSilo(t, run, &train[0])
		b, err := s.Broadcast(s.Start())
		if err != nil {
			t.Fatal(err)
		}
		b.Round = 4 // whichever is the silo's first
		out := make([]float64, s.ReleaseLength())
		purse := &fltest.Purse{Err: fmt.Errorf("too much: %w", fl.ErrRefused)}
		p.Purse = purse
		before := slices.Clone(p.Personal)
		if released, err := s.Respond(new(fl.Worker), b, p, out); released || err != nil || p.Paid != (fl.Paid{}) || !slices.Equal(p.Personal, before) {
			t.Fatalf("%s: drawn before it was paid for: %+v", relation, p.Paid)
		}
		var kept fl.Participant
		p.Purse = new(fltest.Purse)
		p.Keep = func(p *fl.Participant) error {
			kept = *p
			kept.Personal, kept.Scaling = slices.Clone(p.Personal), slices.Clone(p.Scaling)
			return errors.New("killed")
		}
		if _, err := s.Respond(new(fl.Worker), b, p, out); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%s: %v", relation, err)
		}
		if kept.Paid != (fl.Paid{Moments: 5}) || !slices.Equal(out, make([]float64, len(out))) {
			t.Fatalf("%s: kept %+v, released %v", relation, kept.Paid, out)
		}
		again := &fltest.Purse{}
		revived := fl.Participant{Data: &train[0], Kept: kept.Kept, Plan: p.Plan, Purse: again}
		for round := 4; round < 6; round++ {
			b.Round = round
			if released, err := s.Respond(new(fl.Worker), b, &revived, out); err != nil || !released {
				t.Fatal(err)
			}
		}
		if len(kept.Scaling) != 2*fltest.Features || !slices.Equal(revived.Scaling, kept.Scaling) {
			t.Errorf("%s: moments were drawn twice", relation)
		}
		if first := p.Purse.(*fltest.Purse).Asked[0]; fmt.Sprint(first) != fmt.Sprint(again.Asked[0]) {
			t.Errorf("%s: the round was paid as %v, then as %v", relation, first, again.Asked[0])
		}
		for i, want := range []float64{p.Plan.Moments, 0} {
			found := 0.0
			for _, part := range again.Asked[i].What.(event.Composed).Parts {
				if g, ok := part.(event.Gaussian); ok {
					found = g.Noise
				}
			}
			if found != want {
				t.Errorf("%s, round %d: moments of noise %v are charged, want %v", relation, i+5, found, want)
			}
		}
		// What the purse was asked for is what the plan says that it spent.
		total, err := account.NewRDP(account.TermsOf(again.Asked[0]), account.WithExactNoise())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range again.Asked {
			if err := total.Compose(r); err != nil {
				t.Fatal(err)
			}
		}
		asked, err := total.Guarantee(run.Privacy.Delta)
		if err != nil {
			t.Fatal(err)
		}
		if g, _, err := p.Plan.Spend(revived.Paid); err != nil || math.Abs(g.Epsilon/asked.Epsilon-1) > 1e-9 {
			t.Errorf("%s: spent %v by the plan, %v by the purse (%v)", relation, g.Epsilon, asked.Epsilon, err)
		}
	}
}

// TestMomentsTellNoSize: under add-remove two silos of different size plan and pay
// the same.
func TestMomentsTellNoSize(t *testing.T) {
	small, _ := fltest.Silos(1, 41, fltest.Features, 0.2)
	large, _ := fltest.Silos(1, 90, fltest.Features, 0.2)
	told := func(relation string, c *data.Client) string {
		_, s, p := preparedSilo(t, paidRun("fedavg", relation, 3), c)
		r, err := p.Plan.Release(false, s.owesMoments(0, p))
		return fmt.Sprint(p.Plan.Moments, p.Plan.Noise, r, err)
	}
	if a, b := told("add-remove", &small[0]), told("add-remove", &large[0]); a != b {
		t.Errorf("41 rows give %s, 90 rows %s", a, b)
	}
	if told("replace-one", &small[0]) == told("replace-one", &large[0]) {
		t.Error("the test cannot see a size")
	}
}

// TestMomentsWithEveryMethod: all methods that protect examples keep their target,
// and without privacy the moments are the rows' own.
func TestMomentsWithEveryMethod(t *testing.T) {
	train, _ := fltest.Silos(3, 45, fltest.Features, 0.2)
	for name, variant := range fltest.Variants() {
		run := paidRun(variant.Algorithm.Kind, "replace-one", 3)
		variant.Algorithm.Mode, run.Algorithm = "sound", variant.Algorithm
		run.Algorithm.Mode = "sound"
		if run.Privacy.Protects = variant.Privacy.Protects; run.Privacy.Protects == "client" {
			if faults := fl.Check(run); !strings.Contains(faults.Error(), "data.standardise") {
				t.Errorf("%s: nobody pays for its moments, but %v", name, faults)
			}
			continue
		}
		_, ps, _ := fltest.Federate(t, run, train)
		if g, _, err := ps[0].Plan.Spend(ps[0].Paid); err != nil || g.Epsilon > 6 || g.Epsilon < 0.999*6 {
			t.Errorf("%s: spent %v (%v)", name, g.Epsilon, err)
		}
		run.Privacy.Epsilon = 0 // others may have a target of their own
		_, ps, _ = fltest.Federate(t, run, train)
		mean := 0.0
		for i := range ps[0].Data.Len() {
			mean += ps[0].Data.X[i*fltest.Features] / float64(ps[0].Data.Len())
		}
		if math.Abs(mean) > 0.01 { // some rows lie outside their range
			t.Errorf("%s: without privacy the mean is %v, want 0", name, mean)
		}
	}
}

// TestMomentsAreRefused where nobody could pay for them, or there is nothing to
// scale.
func TestMomentsAreRefused(t *testing.T) {
	for path, spoil := range map[string]func(*config.Run){
		"data.standardise":         func(r *config.Run) { r.Algorithm.Mode = "paper" },
		"privacy.noise_multiplier": func(r *config.Run) { r.Privacy.NoiseMultiplier, r.Privacy.Epsilon = 1, 0 },
		"privacy.moments_share":    func(r *config.Run) { r.Privacy.MomentsShare = 1 },
	} {
		run := paidRun("mr-mtl", "replace-one", 3)
		if faults := fl.Check(run); faults != nil {
			t.Fatal(faults)
		}
		spoil(&run)
		if faults := fl.Check(run); faults == nil || !strings.Contains(faults.Error(), path) {
			t.Errorf("%s: %v", path, faults)
		}
		if _, err := newMoments(run); err == nil {
			t.Errorf("%s: built all the same", path)
		}
	}
	good, _ := fltest.Silos(1, 20, fltest.Features, 0)
	for name, c := range map[string]*data.Client{
		"no rows here": {Rows: data.Rows{Y: make([]float64, 5)}},
		"other width":  {Rows: data.Rows{Features: 2, X: make([]float64, 10), Y: make([]float64, 5)}},
		"cut off":      {Rows: data.Rows{Features: fltest.Features, X: good[0].X[:7], Y: make([]float64, 5)}},
	} {
		s := fltest.New(t, paidRun("mr-mtl", "replace-one", 3), 1)
		if err := s.Prepare(&fl.Participant{Data: c}); err == nil {
			t.Errorf("%s: prepared all the same", name)
		}
	}
}
