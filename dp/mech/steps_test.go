package mech

import (
	"errors"
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
