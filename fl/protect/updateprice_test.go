package protect

import (
	"math"
	"reflect"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/fltest"
)

// total adds up the switch losses, leaks and epsilons of an event.
func total(e event.Event) (change, leak, epsilon float64) {
	switch e := e.(type) {
	case event.MetricLaplace:
		return e.Switch(), e.Leak() + e.Slack, e.Epsilon()
	case event.Repeated:
		c, l, p := total(e.Of)
		return float64(e.Times) * c, float64(e.Times) * l, float64(e.Times) * p
	case event.Composed:
		for _, part := range e.Parts {
			c, l, p := total(part)
			change, leak, epsilon = change+c, leak+l, epsilon+p
		}
	}
	return change, leak, epsilon
}

// twoNetworks are two hypotheses of a layered network, 3 apart in its first layer and
// 4 in its second.
func twoNetworks(t *testing.T, noise string) (*fl.Algorithm, *fl.State) {
	run := layered("sound", fl.SanitiseLayers)
	run.Algorithm.Hypotheses, run.Data.Groups = 2, 2
	run.Privacy.Noise = noise
	g := fltest.New(t, run, 100)
	s := g.Start()
	n := g.ReleaseLength()
	clear(s.Hypotheses)
	s.Hypotheses[n], s.Hypotheses[n+40] = 3, 4
	return g, s
}

// TestPriceIsWhatIsPaid: the broadcast alone tells what a release will cost, to the
// last bit, and how far apart the hypotheses are is part of it.
func TestPriceIsWhatIsPaid(t *testing.T) {
	groups := map[string]func() (*fl.Algorithm, *fl.State){
		"layers, exact":     func() (*fl.Algorithm, *fl.State) { return twoNetworks(t, "exact") },
		"layers, simulated": func() (*fl.Algorithm, *fl.State) { return twoNetworks(t, "simulated") },
		"one piece": func() (*fl.Algorithm, *fl.State) {
			run := config.Default("synthetic", "group-private", "sound")
			run.Privacy.Noise, run.Privacy.RadiusDecay = "exact", 0.9
			return fltest.New(t, run, 100), fltest.TwoHypotheses()
		},
		"without noise": func() (*fl.Algorithm, *fl.State) {
			return fltest.New(t, config.Default("synthetic", "ifca", "paper"), 100), fltest.TwoHypotheses()
		},
	}
	for name, build := range groups {
		g, s := build()
		s.Round = 2
		b, err := g.Broadcast(s)
		if err != nil {
			t.Fatal(err)
		}
		price, ok, err := g.Price(b)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		run := config.Default("synthetic", "group-private", "sound")
		run.Data.Dimension = g.Model().Parameters()
		if name[:6] == "layers" {
			run.Data.Dimension = 3
		}
		purse := &fltest.Purse{}
		p := fl.Participant{Data: &data.Synthetic(run.Data, 1).Train[0], Purse: purse}
		if released, err := g.Respond(new(fl.Worker), b, &p, make([]float64, g.ReleaseLength())); err != nil || !released {
			t.Fatalf("%s: %v, %v", name, released, err)
		}
		if !reflect.DeepEqual(purse.Asked[0], price) {
			t.Errorf("%s: paid %+v, priced %+v", name, purse.Asked[0], price)
		}
		if change, _, _ := total(price.What); math.Abs(change-p.Switch) > 1e-9*change {
			t.Errorf("%s: the ledger is charged %v for a switch, the account %v", name, change, p.Switch)
		}
	}
	g, s := twoNetworks(t, "simulated")
	b, err := g.Broadcast(s)
	if err != nil {
		t.Fatal(err)
	}
	price, _, err := g.Price(b)
	if err != nil {
		t.Fatal(err)
	}
	// Radius 1 in shares of 0.9 and 0.1: epsilon_l = n_l/(3*r_l); distances 3 and 4.
	radius := g.Protection().(*update).privacy.Radius
	want := 40/(3*0.9*radius)*(2*0.9*radius+3) + 11/(3*0.1*radius)*(2*0.1*radius+4)
	if change, _, _ := total(price.What); math.Abs(change-want) > 1e-9 {
		t.Errorf("a switch costs %v, want %v", change, want)
	}
}

// TestPriceAheadIsTheSumOfTheRounds adds the rounds up one by one.
func TestPriceAheadIsTheSumOfTheRounds(t *testing.T) {
	for _, decay := range []float64{1, 0.9, 0.999} {
		run := config.Default("synthetic", "group-private", "sound")
		run.Algorithm.Rounds = 40
		run.Privacy.Noise, run.Privacy.RadiusDecay = "exact", decay
		g := fltest.New(t, run, 100)
		whole, rounds, err := g.PriceAhead(new(fl.Participant), 7)
		if err != nil || rounds != 33 {
			t.Fatalf("%d rounds, %v", rounds, err)
		}
		var change, leak, epsilon float64
		for round := 7; round < 40; round++ {
			one, _, err := g.Price(fl.Broadcast{Round: round, Radius: run.Privacy.Radius * math.Pow(decay, float64(round))})
			if err != nil {
				t.Fatal(err)
			}
			c, l, e := total(one.What)
			change, leak, epsilon = change+c, leak+l, epsilon+e
		}
		c, l, e := total(whole.What)
		for name, pair := range map[string][2]float64{"switch": {c, change}, "at the radii": {l, leak}, "per distance": {e, epsilon}} {
			if math.Abs(pair[0]-pair[1]) > 1e-9*pair[1] {
				t.Errorf("decay %v, %s: %v, one by one %v", decay, name, pair[0], pair[1])
			}
		}
		if err := whole.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestPriceAheadKeepsItsHead: a hundred million rounds are priced at once, and never
// below what they cost.
func TestPriceAheadKeepsItsHead(t *testing.T) {
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Rounds = 100_000_000
	run.Privacy.RadiusDecay = 1 - 1e-8
	g := fltest.New(t, run, 100)
	whole, _, err := g.PriceAhead(new(fl.Participant), 0)
	if err != nil {
		t.Fatal(err)
	}
	if parts := whole.What.(event.Composed).Parts; len(parts) > mostBlocks {
		t.Errorf("%d parts", len(parts))
	}
	// The sum of decay^-t over t < T is decay*(decay^-T - 1)/(1 - decay).
	_, _, per := total(whole.What)
	d := run.Privacy.RadiusDecay
	want := 2 / (run.Privacy.NoiseMultiplier * run.Privacy.Radius) * d * math.Expm1(-1e8*math.Log(d)) / (1 - d)
	if per < want || per > 1.001*want {
		t.Errorf("per unit of distance %v, in truth %v", per, want)
	}
}

// TestPriceAheadStopsAtTheRunsOwnCeiling: what the plan itself rules out is not asked.
func TestPriceAheadStopsAtTheRunsOwnCeiling(t *testing.T) {
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Rounds = 100
	ceiling := 2.4
	run.Privacy.Ceiling = &ceiling
	g := fltest.New(t, run, 100)
	if _, rounds, err := g.PriceAhead(new(fl.Participant), 0); err != nil || rounds != 6 {
		t.Errorf("%d releases of 0.4 fit 2.4, %v", rounds, err)
	}
	var spent fl.Participant
	for range 6 {
		spent.Account.Add(event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 1})
	}
	if _, rounds, err := g.PriceAhead(&spent, 50); err != nil || rounds != 0 {
		t.Errorf("%d releases are left, %v", rounds, err)
	}
	if _, _, err := g.PriceAhead(&spent, 100); err == nil {
		t.Error("a round after the last was priced")
	}
}
