package account

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// ofThinned is so many steps, on the terms that they are accounted on.
func ofThinned(e event.NodeThinned, steps int64) event.Release {
	return event.Release{Unit: event.UnitNode, Relation: event.Removal, Claim: event.ClaimProved, Trust: event.TrustHolder, What: event.Repeated{Times: steps, Of: e}}
}

// binomial is the chance of x of n, by products.
func binomial(n, x int, p float64) float64 {
	chance := math.Pow(1-p, float64(n-x))
	for k := range x {
		chance *= p * float64(n-k) / float64(x-k)
	}
	return chance
}

// TestThinnedCurve: the curve is the mean over the binomial as the proof words it, summed up
// term by term.
func TestThinnedCurve(t *testing.T) {
	for _, c := range []event.NodeThinned{{Degree: 3, Keep: 0.25, Noise: 9}, {Degree: 160, Keep: 0.05, Noise: 290}, {Degree: 1, Keep: 0.5, Noise: 2}} {
		curve := nodeThinned{c}.curve(nil)
		for _, a := range []float64{1.5, 2, 7, 20} {
			mean := 0.0
			for x := range int(c.Degree) + 1 {
				moves := float64(2*x+1) / c.Noise
				mean += binomial(int(c.Degree), x, c.Keep) * math.Expm1(a*(a-1)/2*moves*moves)
			}
			want := math.Log1p(mean) / (a - 1)
			if got := curve.RDP(a); got < want*(1-1e-12) || got > want*(1+1e-9) {
				t.Errorf("%+v at order %v: %v, want %v", c, a, got, want)
			}
		}
	}
	whole := nodeThinned{event.NodeThinned{Degree: 7, Keep: 1, Noise: 40}}.curve(nil)
	if got, want := whole.RDP(5), (gaussian{40.0 / 15}).curve(nil).RDP(5); math.Abs(got-want) > 1e-9*want {
		t.Errorf("without thinning %v, and 8 examples that change cost %v", got, want)
	}
}

// worstDelta is the least delta at epsilon between the worst that one step can tell apart:
// noise around 0 without a person, and around 2x+1 clips with it, x binomial and unseen; the
// larger of both ways. It integrates densities and asks no accountant.
func worstDelta(e event.NodeThinned, epsilon float64) float64 {
	density := func(y, moved float64) float64 { return normalDensity((y-moved)/e.Noise) / e.Noise }
	const pieces = 40_000
	from, to := -12*e.Noise, 12*e.Noise+2*float64(e.Degree)+1
	step := (to - from) / pieces
	var with, without float64
	chances := make([]float64, e.Degree+1)
	for x := range chances {
		chances[x] = binomial(int(e.Degree), x, e.Keep)
	}
	for i := range pieces {
		y := from + (float64(i)+0.5)*step
		p, q := density(y, 0), 0.0
		for x, chance := range chances {
			if chance > 1e-30 {
				q += chance * density(y, float64(2*x+1))
			}
		}
		without += step * math.Max(0, p-math.Exp(epsilon)*q)
		with += step * math.Max(0, q-math.Exp(epsilon)*p)
	}
	return math.Max(with, without)
}

// TestThinnedHolds: no price of one step lies below what an adversary can tell in the worst
// case. What prices that forget something would say does: the mean number of moves instead
// of the mixture, or a person's own example alone.
func TestThinnedHolds(t *testing.T) {
	const delta = 1e-6
	for _, e := range []event.NodeThinned{{Degree: 40, Keep: 0.05, Noise: 18}, {Degree: 12, Keep: 0.02, Noise: 4}} {
		told, err := Spend(ofThinned(e, 1), MethodRDP, delta)
		if err != nil {
			t.Fatal(err)
		}
		if truth := worstDelta(e, told.Epsilon); truth > delta*1.001 {
			t.Errorf("%+v: epsilon %v is told, where delta is %v", e, told.Epsilon, truth)
		}
		for name, moves := range map[string]float64{"the mean of moves": 2*float64(e.Degree)*e.Keep + 1, "its own example": 1} {
			forgetful := gaussianEpsilon(moves/e.Noise, delta)
			if worstDelta(e, forgetful) <= delta {
				t.Errorf("%+v: the test could not tell a price by %s, epsilon %v", e, name, forgetful)
			}
		}
	}
}

// TestThinnedRunIsItsMixture: steps with secrets of their own cost no more than the mixture,
// over the joint law of all draws, of what a run's Gaussians lose, and not much less than
// one secret for the whole run would.
func TestThinnedRunIsItsMixture(t *testing.T) {
	const steps, epsilon = 3, 1.0
	e := event.NodeThinned{Degree: 6, Keep: 0.2, Noise: 60}
	told := math.Inf(1)
	for a := 1.5; a < 200; a *= 1.05 {
		told = math.Min(told, Improved.delta(a, steps*nodeThinned{e}.curve(nil).RDP(a), epsilon))
	}
	mixture, shared := 0.0, 0.0
	var walk func(step int, chance, squares float64)
	walk = func(step int, chance, squares float64) {
		if step == steps {
			mixture += chance * gaussianDelta(math.Sqrt(squares)/e.Noise, epsilon)
			return
		}
		for x := range int(e.Degree) + 1 {
			walk(step+1, chance*binomial(int(e.Degree), x, e.Keep), squares+float64((2*x+1)*(2*x+1)))
		}
	}
	walk(0, 1, 0)
	for x := range int(e.Degree) + 1 {
		shared += binomial(int(e.Degree), x, e.Keep) * gaussianDelta(math.Sqrt(steps)*float64(2*x+1)/e.Noise, epsilon)
	}
	if told < mixture {
		t.Errorf("delta %v is told, and the mixture of runs has %v", told, mixture)
	}
	if !(mixture < shared) {
		t.Errorf("fresh secrets have delta %v, one for all steps %v", mixture, shared)
	}
}

// TestThinnedTerms: what no proof covers is refused.
func TestThinnedTerms(t *testing.T) {
	e := event.NodeThinned{Degree: 160, Keep: 0.05, Noise: 290}
	for name, change := range map[string]struct {
		change func(*event.Release)
		want   error
	}{
		"of an example":     {func(r *event.Release) { r.Unit = event.UnitExample }, ErrUnit},
		"of an own record":  {func(r *event.Release) { r.Relation = event.OwnRecord }, ErrRelation},
		"of a replacement":  {func(r *event.Release) { r.Relation = event.ReplaceOne }, ErrRelation},
		"under add-remove":  {func(r *event.Release) { r.Relation = event.AddRemove }, ErrRelation},
		"on a sample":       {func(r *event.Release) { r.What = event.Sampled{Sampling: event.Poisson, Rate: 0.5, Of: e} }, ErrSampling},
		"with many friends": {func(r *event.Release) { r.What = event.NodeThinned{Degree: maxSeries + 1, Keep: 0.1, Noise: 1} }, ErrUnsupported},
	} {
		r := ofThinned(e, 10)
		change.change(&r)
		if _, err := Spend(r, MethodRDP, 1e-7); !errors.Is(err, change.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Spend(ofThinned(e, 10), MethodPLD, 1e-7); !errors.Is(err, ErrUnsupported) {
		t.Errorf("by losses: %v", err)
	}
	plan := Training{
		Terms: Terms{event.UnitNode, event.Removal, event.ClaimProved}, Trust: event.TrustLocal, Sampling: event.FullBatch,
		Nodes: 161, Keep: 0.05, Steps: 10, Lattice: &Lattice{Coordinates: 18},
	}
	solved, g, err := plan.WithNoiseFor(MethodRDP, 1, 5e-7)
	if err != nil || g.Epsilon > 1 || g.Epsilon < 0.9999 {
		t.Fatalf("noise for epsilon 1: %+v, %v", g, err)
	}
	if again, err := Spend(ofThinned(event.NodeThinned{Degree: 160, Keep: 0.05, Noise: solved.Noise}, 10), MethodRDP, 5e-7); err != nil || math.Abs(again.Epsilon-g.Epsilon) > 1e-12 {
		t.Errorf("the plan costs %v, its steps %v, %v", g.Epsilon, again.Epsilon, err)
	}
	f, err := NewRenyiFilter(plan.Terms, 1.0001, 5e-7, g.Order)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Spend(ofThinned(event.NodeThinned{Degree: 160, Keep: 0.05, Noise: solved.Noise}, 10)); err != nil {
		t.Errorf("a ledger's filter does not let the plan pass: %v", err)
	}
}
