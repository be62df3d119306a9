package fl

import (
	"math"
	"reflect"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
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
func twoNetworks(t *testing.T, noise string) (*Group, *State) {
	run := layered("sound", SanitiseLayers)
	run.Algorithm.Hypotheses, run.Data.Groups = 2, 2
	run.Privacy.Noise = noise
	g := newGroup(t, run)
	s := g.Start()
	n := g.ReleaseLength()
	clear(s.Hypotheses)
	s.Hypotheses[n], s.Hypotheses[n+40] = 3, 4
	return g, s
}

// TestPriceIsWhatIsPaid: the broadcast alone tells what a release will cost, to the
// last bit, and how far apart the hypotheses are is part of it.
func TestPriceIsWhatIsPaid(t *testing.T) {
	groups := map[string]func() (*Group, *State){
		"layers, exact":     func() (*Group, *State) { return twoNetworks(t, "exact") },
		"layers, simulated": func() (*Group, *State) { return twoNetworks(t, "simulated") },
		"one piece": func() (*Group, *State) {
			run := config.Default("synthetic", "group-private", "sound")
			run.Privacy.Noise, run.Privacy.RadiusDecay = "exact", 0.9
			return newGroup(t, run), twoHypotheses()
		},
		"without noise": func() (*Group, *State) {
			return newGroup(t, config.Default("synthetic", "ifca", "paper")), twoHypotheses()
		},
	}
	for name, build := range groups {
		g, s := build()
		s.Round = 2
		b, err := g.Broadcast(s)
		if err != nil {
			t.Fatal(err)
		}
		price, err := g.Price(b)
		if err != nil {
			t.Fatal(err)
		}
		run := config.Default("synthetic", "group-private", "sound")
		run.Data.Dimension = g.Model().Parameters()
		if name[:6] == "layers" {
			run.Data.Dimension = 3
		}
		purse := &purseStub{}
		p := Participant{Data: &data.Synthetic(run.Data, 1).Train[0], Purse: purse}
		if released, err := g.Respond(new(Worker), b, &p, make([]float64, g.ReleaseLength())); err != nil || !released {
			t.Fatalf("%s: %v, %v", name, released, err)
		}
		if !reflect.DeepEqual(purse.asked[0], price) {
			t.Errorf("%s: paid %+v, priced %+v", name, purse.asked[0], price)
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
	price, err := g.Price(b)
	if err != nil {
		t.Fatal(err)
	}
	// Radius 1 in shares of 0.9 and 0.1: epsilon_l = n_l/(3*r_l); distances 3 and 4.
	radius := g.privacy.Radius
	want := 40/(3*0.9*radius)*(2*0.9*radius+3) + 11/(3*0.1*radius)*(2*0.1*radius+4)
	if change, _, _ := total(price.What); math.Abs(change-want) > 1e-9 {
		t.Errorf("a switch costs %v, want %v", change, want)
	}
}

// TestPriceFromIsTheSumOfTheRounds adds the rounds up one by one.
func TestPriceFromIsTheSumOfTheRounds(t *testing.T) {
	for _, decay := range []float64{1, 0.9, 0.999} {
		run := config.Default("synthetic", "group-private", "sound")
		run.Algorithm.Rounds = 40
		run.Privacy.Noise, run.Privacy.RadiusDecay = "exact", decay
		g := newGroup(t, run)
		whole, rounds, err := g.PriceFrom(7, account.Metric{})
		if err != nil || rounds != 33 {
			t.Fatalf("%d rounds, %v", rounds, err)
		}
		var change, leak, epsilon float64
		for round := 7; round < 40; round++ {
			one, err := g.Price(Broadcast{Round: round, Radius: run.Privacy.Radius * math.Pow(decay, float64(round))})
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

// TestPriceFromKeepsItsHead: a hundred million rounds are priced at once, and never
// below what they cost.
func TestPriceFromKeepsItsHead(t *testing.T) {
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Rounds = 100_000_000
	run.Privacy.RadiusDecay = 1 - 1e-8
	g := newGroup(t, run)
	whole, _, err := g.PriceFrom(0, account.Metric{})
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

// TestPriceFromStopsAtTheRunsOwnCeiling: what the plan itself rules out is not asked.
func TestPriceFromStopsAtTheRunsOwnCeiling(t *testing.T) {
	run := config.Default("synthetic", "group-private", "sound")
	run.Algorithm.Rounds = 100
	ceiling := 2.4
	run.Privacy.Ceiling = &ceiling
	g := newGroup(t, run)
	if _, rounds, err := g.PriceFrom(0, account.Metric{}); err != nil || rounds != 6 {
		t.Errorf("%d releases of 0.4 fit 2.4, %v", rounds, err)
	}
	var spent account.Metric
	for range 6 {
		spent.Add(event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 1})
	}
	if _, rounds, err := g.PriceFrom(50, spent); err != nil || rounds != 0 {
		t.Errorf("%d releases are left, %v", rounds, err)
	}
	if _, _, err := g.PriceFrom(100, spent); err == nil {
		t.Error("a round after the last was priced")
	}
}
