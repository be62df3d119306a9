package mech

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

var stepTerms = Terms{Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal}

func paidFor(t *testing.T, claim event.Claim, parts ...event.Event) *Paid {
	t.Helper()
	p, err := NewPaid(event.Release{
		Unit: stepTerms.Unit, Relation: stepTerms.Relation, Trust: stepTerms.Trust, Claim: claim, What: event.Composed{Parts: parts},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var poissonRule = StepRule{Clip: 2, Noise: 1.5, Sampling: event.Poisson, Rate: 0.25}

func randomness() Randomness {
	family := rng.NewFamily(3, "noise")
	return Randomness{Keyed: family.Stream(0, 0)}
}

// TestOnlyPaidStepsAreDrawn: less noise, another rate, another sampling, a step more,
// noise twice on a batch and a wider clip are refused before anything is drawn.
func TestOnlyPaidStepsAreDrawn(t *testing.T) {
	three := func() *Paid {
		return paidFor(t, event.ClaimProved, event.Repeated{Times: 3, Of: poissonRule.Event(event.ClaimProved)})
	}
	for name, change := range map[string]func(*StepRule){
		"noise times 0.8": func(r *StepRule) { r.Noise *= 0.8 },
		"rate times 1.2":  func(r *StepRule) { r.Rate *= 1.2 },
		"another sampling": func(r *StepRule) {
			r.Sampling, r.Batch, r.Examples = event.WithoutReplacement, 1, 4
		},
	} {
		rule := poissonRule
		change(&rule)
		if err := new(Steps).Open(three(), rule, SystemEntropy(), randomness()); !errors.Is(err, ErrUnpaid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	paid := three()
	var s Steps
	if err := s.Open(paid, poissonRule, SystemEntropy(), randomness()); err != nil {
		t.Fatal(err)
	}
	sum, err := NewLaneSum[float64](2, 1, s.Clip())
	if err != nil {
		t.Fatal(err)
	}
	wide, err := NewLaneSum[float64](2, 1, 1.2*s.Clip())
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float64, 2)
	if err := SimulateStep(&s, dst, sum); !errors.Is(err, ErrUnpaid) {
		t.Errorf("noise before a batch: %v", err)
	}
	for step := range 3 {
		if _, err := s.Batch(10); err != nil {
			t.Fatal(err)
		}
		if err := SimulateStep(&s, dst, wide); err == nil {
			t.Error("a sum clipped to 1.2 times the clip was noised")
		}
		sum.Reset()
		if err := SimulateStep(&s, dst, sum); err != nil || dst[0] == 0 {
			t.Fatalf("step %d: %v, %v", step, dst, err)
		}
		sum.Reset()
		if err := SimulateStep(&s, dst, sum); !errors.Is(err, ErrUnpaid) {
			t.Errorf("two noises on one batch: %v", err)
		}
	}
	if _, err := s.Batch(10); !errors.Is(err, ErrUnpaid) || paid.Left() != 0 {
		t.Errorf("a fourth step: %v; %d left", err, paid.Left())
	}
	if err := s.Blank(); !errors.Is(err, ErrUnpaid) {
		t.Errorf("a fourth step without examples: %v", err)
	}
}

// TestShuffledBatchesArePricedAsPoissonOnlyHeuristically: the papers' reading must not
// pass as a proof.
func TestShuffledBatchesArePricedAsPoissonOnlyHeuristically(t *testing.T) {
	rule := StepRule{Clip: 1, Noise: 1, Sampling: event.Shuffle, Rate: 0.25, Batch: 5, Examples: 20}
	poisson := event.Sampled{Sampling: event.Poisson, Rate: 0.25, Of: event.Gaussian{Noise: 1}}
	if err := new(Steps).Open(paidFor(t, event.ClaimHeuristic, poisson), rule, SystemEntropy(), randomness()); err != nil {
		t.Error(err)
	}
	if err := new(Steps).Open(paidFor(t, event.ClaimProved, poisson), rule, SystemEntropy(), randomness()); !errors.Is(err, ErrUnpaid) {
		t.Errorf("proved: %v", err)
	}
	public := rule
	public.Sampling = event.WithoutReplacement
	var s Steps
	if err := s.Open(paidFor(t, event.ClaimProved, public.Event(event.ClaimProved)), public, SystemEntropy(), randomness()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Batch(21); err == nil {
		t.Error("a batch of another number of examples than was accounted")
	}
}

// TestOtherDrawsArePaidForToo: choices and full batches.
func TestOtherDrawsArePaidForToo(t *testing.T) {
	selection := Selection{Mechanism: event.Exponential, Epsilon: 0.5}
	g := Gaussian{Multiplier: 2}
	p := paidFor(t, event.ClaimProved, event.Repeated{Times: 2, Of: selection.Event()}, g.Event())
	scores, err := ErrorCounts([]int64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Choose(Selection{Mechanism: event.Exponential, Epsilon: 0.6}, scores, randomness()); !errors.Is(err, ErrUnpaid) {
		t.Errorf("a dearer choice: %v", err)
	}
	for range 2 {
		if _, err := p.Choose(selection, scores, Randomness{Exact: SystemEntropy()}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Choose(selection, scores, randomness()); !errors.Is(err, ErrUnpaid) {
		t.Errorf("a third choice: %v", err)
	}
	sum, err := NewSimulatedSum(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Simulate(Gaussian{Multiplier: 1.6}, make([]float64, 1), sum, randomness().Keyed); !errors.Is(err, ErrUnpaid) {
		t.Errorf("less noise: %v", err)
	}
	if err := p.Simulate(g, make([]float64, 1), sum, randomness().Keyed); err != nil {
		t.Fatal(err)
	}
	if p.Left() != 0 {
		t.Errorf("%d draws left", p.Left())
	}
}

// TestThinnedSteps: contacts are thinned by a secret of every step's own, to the share that
// was paid for, and by nothing before a step has begun.
func TestThinnedSteps(t *testing.T) {
	rule := StepRule{Clip: 2, Noise: 30, Sampling: event.FullBatch, Nodes: 161, Keep: 0.05}
	pay := func(relation event.Relation, what event.Event) *Paid {
		p, err := NewPaid(event.Release{Unit: event.UnitNode, Relation: relation, Claim: event.ClaimProved, Trust: event.TrustHolder, What: event.Repeated{Times: 3, Of: what}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, p := range map[string]*Paid{
		"for fewer contacts":  pay(event.Removal, event.NodeThinned{Degree: 159, Keep: 0.05, Noise: 30}),
		"for a smaller share": pay(event.Removal, event.NodeThinned{Degree: 160, Keep: 0.04, Noise: 30}),
		"for more noise":      pay(event.Removal, event.NodeThinned{Degree: 160, Keep: 0.05, Noise: 31}),
		"for a fixed number":  pay(event.Removal, event.NodeSum{Examples: 161, Noise: 30}),
	} {
		if err := new(Steps).Open(p, rule, SystemEntropy(), randomness()); !errors.Is(err, ErrUnpaid) {
			t.Errorf("paid %s: %v", name, err)
		}
	}
	paid := event.NodeThinned{Degree: 160, Keep: 0.05, Noise: 30}
	for _, relation := range []event.Relation{event.OwnRecord, event.ReplaceOne, event.AddRemove} {
		if err := new(Steps).Open(pay(relation, paid), rule, SystemEntropy(), randomness()); err == nil {
			t.Errorf("thinned steps are drawn under %s, which nobody prices", relation)
		}
	}
	for _, keep := range []float64{-0.1, 1.1, math.NaN()} {
		bad := rule
		bad.Keep = keep
		if err := new(Steps).Open(pay(event.Removal, paid), bad, SystemEntropy(), randomness()); err == nil {
			t.Errorf("steps keep a share of %v", keep)
		}
	}
	some := rule
	some.Sampling, some.Batch, some.Examples = event.WithoutReplacement, 3, 9
	if err := new(Steps).Open(pay(event.Removal, paid), some, SystemEntropy(), randomness()); err == nil {
		t.Error("steps on batches of people with thinned contacts, which nobody prices")
	}
	var s Steps
	if err := s.Open(pay(event.Removal, paid), rule, SystemEntropy(), randomness()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Thinning(); !errors.Is(err, ErrUnpaid) {
		t.Errorf("contacts before a step: %v", err)
	}
	seen := map[[16]byte]bool{{}: true}
	for range 3 {
		if _, err := s.Batch(9); err != nil {
			t.Fatal(err)
		}
		secret, keep, err := s.Thinning()
		if err != nil || keep != 0.05 || seen[secret] {
			t.Errorf("secret %x, share %v, %v; seen before: %v", secret, keep, err, seen[secret])
		}
		seen[secret] = true
	}
	if _, keep, err := (*Steps)(nil).Thinning(); keep != 0 || err != nil {
		t.Errorf("where nothing is paid, a share of %v is kept: %v", keep, err)
	}
}

// TestNodeSteps: steps for nodes are drawn by what nodes paid for alone, on everybody,
// with noise that is the multiplier times the clip whatever the number of examples.
func TestNodeSteps(t *testing.T) {
	rule := StepRule{Clip: 2, Noise: 30, Sampling: event.FullBatch, Nodes: 6}
	pay := func(relation event.Relation, what event.Event) *Paid {
		p, err := NewPaid(event.Release{Unit: event.UnitNode, Relation: relation, Claim: event.ClaimProved, Trust: event.TrustHolder, What: event.Repeated{Times: 1, Of: what}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	paid := event.NodeSum{Examples: 6, Noise: 30}
	for name, p := range map[string]*Paid{
		"for fewer examples": pay(event.OwnRecord, event.NodeSum{Examples: 5, Noise: 30}),
		"for more noise":     pay(event.OwnRecord, event.NodeSum{Examples: 6, Noise: 31}),
		"for single rows":    pay(event.OwnRecord, event.Gaussian{Noise: 30}),
	} {
		if err := new(Steps).Open(p, rule, SystemEntropy(), randomness()); !errors.Is(err, ErrUnpaid) {
			t.Errorf("paid %s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*StepRule){
		"on samples":          func(r *StepRule) { r.Sampling, r.Rate = event.Poisson, 0.5 },
		"with a learned clip": func(r *StepRule) { r.Clipping = ClipRule{Signal: SignalCount} },
	} {
		bad := rule
		change(&bad)
		if err := new(Steps).Open(pay(event.OwnRecord, paid), bad, SystemEntropy(), randomness()); err == nil {
			t.Errorf("steps %s are drawn", name)
		}
	}
	if err := new(Steps).Open(pay(event.AddRemove, paid), rule, SystemEntropy(), randomness()); err == nil {
		t.Error("steps for nodes are drawn under add-remove, which nobody prices")
	}
	for _, exact := range []bool{false, true} {
		from := randomness()
		if exact {
			from = Randomness{Exact: SystemEntropy()}
		}
		var s Steps
		if err := s.Open(pay(event.Removal, paid), rule, SystemEntropy(), from); err != nil {
			t.Fatal(err)
		}
		if batch, err := s.Batch(9); err != nil || len(batch) != 9 {
			t.Fatal(batch, err)
		}
		const n = 4000
		noise := make([]float64, n)
		if exact {
			sum, err := s.PrepareSum(nil, n)
			if err != nil {
				t.Fatal(err)
			}
			whole := make([]int64, n)
			if err := s.Release(whole, sum); err != nil {
				t.Fatal(err)
			}
			sum.Lattice().Float(noise, whole)
		} else {
			sum, err := NewLaneSum[float64](n, 1, s.Clip())
			if err != nil {
				t.Fatal(err)
			}
			if err := SimulateStep(&s, noise, sum); err != nil {
				t.Fatal(err)
			}
		}
		squares := 0.0
		for _, v := range noise {
			squares += v * v
		}
		// A share of squares over n is 1 with a deviation of sqrt(2/n): at six of them one
		// run in 5e8 fails.
		if share := squares / n / (60 * 60); share < 0.86 || share > 1.14 {
			t.Errorf("exact %v: the noise has %v of its variance", exact, share)
		}
	}
}
