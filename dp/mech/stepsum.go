package mech

import "fmt"

// StepSum is a step's sums as integers on a lattice: of the clipped gradients, and of
// what a clip rule goes by. It is for exact noise. Not safe for concurrent use, but for its
// lanes.
type StepSum struct {
	gradients *ClippedSum
	second    *ClippedSum // nil: the rule needs none
	signal    ClipSignal
	clip      float64
	direction []float64
	released  []int64
	values    []float64
	lanes     []stepLane
	runner    Runner     // of noise; nil: nobody else draws
	sources   []*Entropy // that all of its jobs but one draw from
}

// PrepareSum is an empty sum of n coordinates for the next of the steps: the one that is
// kept from an earlier step, if it fits, or a new one.
func (s *Steps) PrepareSum(kept *StepSum, n int) (*StepSum, error) {
	lattice, err := s.noise.Lattice(s.Clip())
	if err != nil {
		return nil, err
	}
	signal := s.rule.Clipping.Signal
	if kept == nil || len(kept.gradients.sum) != n || kept.signal != signal {
		kept = &StepSum{signal: signal}
	}
	kept.empty()
	kept.clip = s.Clip()
	if kept.gradients, err = rebound(kept.gradients, n, s.Clip(), lattice); err != nil {
		return nil, err
	}
	if signal == SignalNone {
		return kept, nil
	}
	length, bound := signal.Length(n), signal.Bound()
	if lattice, err = s.second.Lattice(bound); err != nil {
		return nil, err
	}
	kept.second, err = rebound(kept.second, length, bound, lattice)
	if len(kept.direction) != length {
		kept.direction, kept.released, kept.values = make([]float64, length), make([]int64, length), make([]float64, n)
	}
	return kept, err
}

// rebound is an empty sum with a bound on a lattice, in the memory of another one of the
// same length.
func rebound(kept *ClippedSum, n int, bound float64, l Lattice) (*ClippedSum, error) {
	if kept != nil && kept.bound == bound && kept.lattice == l {
		kept.Reset()
		return kept, nil
	}
	length := n
	if kept != nil {
		length = 0
	}
	sum, err := NewClippedSum(length, bound, l)
	if err == nil && kept != nil {
		kept.Reset()
		sum.sum, sum.term = kept.sum, kept.term
	}
	return sum, err
}

// Lattice is where the gradients' sum lives.
func (s *StepSum) Lattice() Lattice { return s.gradients.lattice }

// Add adds one example's gradient, clipped, and what it says to the clip rule. The caller
// gives v away.
func (s *StepSum) Add(v []float64) error {
	if s.signal != SignalNone {
		if err := s.addSecond(v); err != nil {
			return err
		}
	}
	clipped, err := Clip(v, s.clip)
	if err != nil {
		return err
	}
	return s.gradients.Add(clipped)
}

// addSecond adds what the gradient says to the rule's signal.
func (s *StepSum) addSecond(v []float64) error {
	clipped, err := s.signal.Of(s.direction, v, s.clip)
	if err != nil {
		return fmt.Errorf("step sum: %w", err)
	}
	return s.second.Add(clipped)
}

// Release ends a step: it sets dst to the gradients' sum with exact noise, in lattice
// steps, and moves the clip by what was released.
func (s *Steps) Release(dst []int64, sum *StepSum) error {
	if err := s.end(sum.gradients.bound, sum.signal); err != nil {
		return err
	}
	if err := sum.settle(); err != nil {
		return err
	}
	lattice := sum.gradients.lattice
	draw := func(dst []int64, sigma uint64) error { return sum.draw(s.from.Exact, dst, sigma) }
	if _, err := s.noise.release(dst, sum.gradients, s.terms, draw); err != nil {
		return err
	}
	rule := &s.rule.Clipping
	if rule.Signal != SignalNone {
		if _, err := s.second.release(sum.released, sum.second, s.terms, draw); err != nil {
			clear(dst)
			return err
		}
		sum.second.lattice.Float(sum.direction, sum.released)
	}
	switch rule.Signal {
	case SignalCount:
		rule.follow(&s.state, sum.direction[0], s.rule.Batch)
	case SignalDirections:
		lattice.Float(sum.values, dst)
		released := s.signs.release(len(sum.values))
		replaceBy(&released, 0, sum.values, sum.direction)
		s.turnBy(&released, &bareProducts{})
	}
	rule.fall(&s.state)
	return nil
}
