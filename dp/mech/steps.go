package mech

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
)

// Randomness is where noise comes from: exact noise on the lattice from entropy, or,
// for simulation, floats from a keyed source.
type Randomness struct {
	Exact *Entropy
	Keyed rand.Source
}

// StepRule says how noised gradient steps draw their batches and protect examples.
type StepRule struct {
	Clip     float64 // largest norm of an example's gradient
	Noise    float64 // standard deviation divided by Clip
	Sampling event.Sampling
	Rate     float64 // of Poisson batches; and of shuffled ones, as the papers account for them
	Batch    int     // examples of a step, but for Poisson
	Examples int     // how many there are, but for Poisson: a public number
}

// Event is what one step costs. Where the claim is heuristic, shuffled batches are
// priced as the papers do, as if they were Poisson samples (DESIGN, erratum 10).
func (r StepRule) Event(claim event.Claim) event.Sampled {
	e := event.Sampled{Sampling: r.Sampling, Of: Gaussian{Multiplier: r.Noise}.Event()}
	switch {
	case r.Sampling == event.Poisson, r.Sampling == event.Shuffle && claim == event.ClaimHeuristic:
		e.Sampling, e.Rate = event.Poisson, r.Rate
	default:
		e.Batch, e.Examples = int64(r.Batch), int64(r.Examples)
	}
	return e
}

// Steps are the gradient steps that a release has paid for: they draw each batch, say
// what its gradients are clipped to, and noise their sum, all by the rule that was
// charged. A step more than was paid for is refused. Not safe for concurrent use.
type Steps struct {
	rule    StepRule
	noise   Gaussian
	terms   Terms
	paid    *Paid
	at      int // where paid lists a step
	sampler Sampler
	from    Randomness
	begun   bool // a step's batch is out and not noised
}

// Open prepares to draw steps of a rule; it refuses a rule that was not paid for.
func (s *Steps) Open(paid *Paid, rule StepRule, batches *Entropy, from Randomness) error {
	noise := Gaussian{Multiplier: rule.Noise}
	if err := noise.check(); err != nil {
		return err
	}
	switch {
	case !(rule.Clip > 0) || math.IsInf(rule.Clip, 0):
		return fmt.Errorf("steps: clip %v must be positive and finite", rule.Clip)
	case from.Exact == nil && from.Keyed == nil:
		return fmt.Errorf("steps: no source to draw noise from")
	}
	if _, err := paid.terms.release(noise.Event(), false); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	at, err := paid.find(rule.Event(paid.claim))
	if err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	if err := s.sampler.Open(rule.Sampling, rule.Rate, rule.Batch, batches); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	s.rule, s.noise, s.terms, s.paid, s.at, s.from, s.begun = rule, noise, paid.terms, paid, at, from, false
	return nil
}

// Clip is what every example's gradient is clipped to.
func (s *Steps) Clip() float64 { return s.rule.Clip }

// Exact says whether sums are integers on a lattice, with exact noise.
func (s *Steps) Exact() bool { return s.from.Exact != nil }

// NewSum is an empty integer sum of n coordinates for the steps' gradients.
func (s *Steps) NewSum(n int) (*ClippedSum, error) {
	lattice, err := s.noise.Lattice(s.rule.Clip)
	if err != nil {
		return nil, err
	}
	return NewClippedSum(n, s.rule.Clip, lattice)
}

// Fits says whether a sum that an earlier step made can serve again.
func (s *Steps) Fits(sum *ClippedSum, n int) bool {
	lattice, err := s.noise.Lattice(s.rule.Clip)
	return err == nil && sum != nil && len(sum.sum) == n && sum.bound == s.rule.Clip && sum.lattice == lattice && sum.sector == nil && !sum.positive
}

// Batch begins a step: it draws which of size examples are in it. Under samplings with
// a public number of examples size must be that number.
func (s *Steps) Batch(size int) ([]int, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	if s.rule.Sampling != event.Poisson && size != s.rule.Examples {
		return nil, fmt.Errorf("steps: %d examples, accounted were %d", size, s.rule.Examples)
	}
	return s.sampler.Batch(size)
}

// Blank begins a step without any example: what is released is noise alone.
func (s *Steps) Blank() error { return s.begin() }

func (s *Steps) begin() error {
	if err := s.paid.take(s.at); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	s.begun = true
	return nil
}

// end is asked right before noise is drawn: one noise a batch, on a sum with the
// rule's bound.
func (s *Steps) end(bound float64) error {
	switch {
	case !s.begun:
		return fmt.Errorf("steps: %w: noise without a batch", ErrUnpaid)
	case bound != s.rule.Clip:
		return fmt.Errorf("steps: a sum clipped to %v, accounted was %v", bound, s.rule.Clip)
	}
	s.begun = false
	return nil
}

// Release ends a step: it sets dst to the sum with exact noise, in lattice steps.
func (s *Steps) Release(dst []int64, sum *ClippedSum) error {
	if err := s.end(sum.bound); err != nil {
		return err
	}
	_, err := s.noise.Release(dst, sum, s.terms, s.from.Exact)
	return err
}

// SimulateStep ends a step in a simulation: it sets dst to the sum with float noise.
func SimulateStep[F float32 | float64](s *Steps, dst []F, sum *LaneSum[F]) error {
	if err := s.end(sum.bound); err != nil {
		return err
	}
	_, err := SimulateLanes(s.noise, dst, sum, s.terms, s.from.Keyed)
	return err
}
