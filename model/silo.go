package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// SiloLearner is a learner whose steps protect single examples: what a silo with
// its own privacy target needs.
type SiloLearner interface {
	Learner
	// Gradient sets dst to the batch's gradient: every example's (plus Shift, if
	// there is one) clipped, summed, noised by Steps, divided by Divisor. Without
	// Steps and Clip it is the plain mean. A batch may be empty: Poisson batches can
	// be. An example whose gradient is not finite counts as zero where examples are
	// clipped: a failure would tell of it.
	Gradient(dst, theta []float64, c *data.Client, batch []int, s SiloStep) error
	// Judge is the mean loss (squared error for regression: the MSE; cross entropy
	// or hinge for classes) and the number of wrong answers (0 for regression) on c.
	Judge(theta []float64, c *data.Client) (loss float64, wrong int, err error)
	// Losses sets dst to every example's loss.
	Losses(dst, theta []float64, c *data.Client) error
}

// SiloStep says how one step protects examples.
type SiloStep struct {
	// Steps clip and noise by what was paid for; the batch must be the one that they
	// drew last. Nil: no noise.
	Steps   *mech.Steps
	Clip    float64   // without Steps: the largest norm of an example's gradient; 0: any
	Divisor int       // public: the sum of clipped gradients is divided by it, whatever was drawn
	Shift   []float64 // added to every example's gradient before it is clipped; nil: nothing
}

// check refuses what cannot be a step on n parameters.
func (s SiloStep) check(n int) error {
	switch {
	case !(s.Clip >= 0) || math.IsInf(s.Clip, 0):
		return fmt.Errorf("silo step: clip %v; allowed: 0 (none) or positive and finite", s.Clip)
	case s.Steps != nil && s.Clip != 0:
		return fmt.Errorf("silo step: clip %v, but the steps have a clip of their own, %v", s.Clip, s.Steps.Clip())
	case s.bound() > 0 && s.Divisor < 1:
		return fmt.Errorf("silo step: divisor %d; allowed: 1 or more, the public batch size", s.Divisor)
	case s.Shift != nil && len(s.Shift) != n:
		return fmt.Errorf("silo step: a shift of %d values for %d parameters", len(s.Shift), n)
	}
	for i, v := range s.Shift {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("silo step: value %d of the shift is %v", i, v)
		}
	}
	return nil
}

// bound is what gradients are clipped to; 0: they are not.
func (s SiloStep) bound() float64 {
	if s.Steps != nil {
		return s.Steps.Clip()
	}
	return s.Clip
}

// exact says whether the sum is one of integers.
func (s SiloStep) exact() bool { return s.Steps != nil && s.Steps.Exact() }

// siloSum keeps the sums that a silo's steps reuse.
type siloSum[F Float] struct {
	lanes    *mech.LaneSum[F]
	exact    *mech.ClippedSum
	released []int64
}

// floats is an empty float sum, clipped to a bound.
func (s *siloSum[F]) floats(n, lanes int, bound float64) (*mech.LaneSum[F], error) {
	if s.lanes == nil || s.lanes.Bound() != bound {
		sum, err := mech.NewLaneSum[F](n, lanes, bound)
		if err != nil {
			return nil, fmt.Errorf("silo step: %w", err)
		}
		s.lanes = sum
	}
	s.lanes.Reset()
	return s.lanes, nil
}

// release sets dst to the float sum, noised if the step has noise.
func (s *siloSum[F]) release(dst []F, step SiloStep) error {
	if step.Steps == nil {
		return s.lanes.Unprotected(dst)
	}
	return mech.SimulateStep(step.Steps, dst, s.lanes)
}

// integers is an empty integer sum on the step's lattice.
func (s *siloSum[F]) integers(n int, step SiloStep) (*mech.ClippedSum, error) {
	if !step.Steps.Fits(s.exact, n) {
		sum, err := step.Steps.NewSum(n)
		if err != nil {
			return nil, fmt.Errorf("silo step: %w", err)
		}
		s.exact, s.released = sum, make([]int64, n)
	}
	s.exact.Reset()
	return s.exact, nil
}

// releaseExact sets dst to the integer sum with exact noise.
func (s *siloSum[F]) releaseExact(dst []float64, step SiloStep) error {
	if err := step.Steps.Release(s.released, s.exact); err != nil {
		return fmt.Errorf("silo step: %w", err)
	}
	s.exact.Lattice().Float(dst, s.released)
	return nil
}
