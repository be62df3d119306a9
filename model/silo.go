package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// SiloLearner is a learner whose steps protect single examples: what a silo with
// its own privacy target needs.
type SiloLearner interface {
	Learner
	// Gradient sets dst to the batch's gradient: every example's (plus Shift, if
	// there is one) clipped to Clip, summed, noised, divided by Divisor. Clip 0:
	// plain mean without noise. A batch may be empty: Poisson batches can be.
	Gradient(dst, theta []float64, c *data.Client, batch []int, s SiloStep) error
	// Judge is the mean loss (squared error for regression: the MSE; cross entropy
	// or hinge for classes) and the number of wrong answers (0 for regression) on c.
	Judge(theta []float64, c *data.Client) (loss float64, wrong int)
	// Losses sets dst to every example's loss.
	Losses(dst, theta []float64, c *data.Client)
}

// SiloStep says how one step protects examples.
type SiloStep struct {
	Clip    float64   // largest norm of an example's gradient; 0: no protection
	Noise   float64   // standard deviation divided by Clip; 0: clipped only
	Divisor int       // public: the noised sum is divided by it, whatever was drawn
	Shift   []float64 // added to every example's gradient before it is clipped; nil: nothing
	Terms   mech.Terms
	Source  rand.Source   // of simulated noise
	Exact   *mech.Entropy // not nil: integer sums and exact noise on the lattice
}

// check refuses what cannot be a step on n parameters.
func (s SiloStep) check(n int) error {
	switch {
	case !(s.Clip >= 0) || math.IsInf(s.Clip, 0):
		return fmt.Errorf("silo step: clip %v; allowed: 0 (none) or positive and finite", s.Clip)
	case !(s.Noise >= 0) || math.IsInf(s.Noise, 0):
		return fmt.Errorf("silo step: noise %v; allowed: 0 or more, finite", s.Noise)
	case s.Clip == 0 && s.Noise > 0:
		return fmt.Errorf("silo step: noise %v without a clip protects nothing; set the clip", s.Noise)
	case s.Clip > 0 && s.Divisor < 1:
		return fmt.Errorf("silo step: divisor %d; allowed: 1 or more, the public batch size", s.Divisor)
	case s.Noise > 0 && s.Exact == nil && s.Source == nil:
		return fmt.Errorf("silo step: noise %v without a source to draw it from", s.Noise)
	case s.Shift != nil && len(s.Shift) != n:
		return fmt.Errorf("silo step: a shift of %d values for %d parameters", len(s.Shift), n)
	}
	return nil
}

// siloSum keeps the sums that a silo's steps reuse.
type siloSum[F Float] struct {
	lanes    *mech.LaneSum[F]
	exact    *mech.ClippedSum
	noise    mech.Gaussian // that the exact sum's lattice is for
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
	if step.Noise == 0 {
		return s.lanes.Unprotected(dst)
	}
	_, err := mech.SimulateLanes(mech.Gaussian{Multiplier: step.Noise}, dst, s.lanes, step.Terms, step.Source)
	return err
}

// integers is an empty integer sum on the step's lattice.
func (s *siloSum[F]) integers(n int, step SiloStep) (*mech.ClippedSum, error) {
	g := mech.Gaussian{Multiplier: step.Noise}
	if s.exact == nil || s.exact.Bound() != step.Clip || s.noise != g {
		lattice, err := g.Lattice(step.Clip)
		if err != nil {
			return nil, fmt.Errorf("silo step: %w", err)
		}
		sum, err := mech.NewClippedSum(n, step.Clip, lattice)
		if err != nil {
			return nil, fmt.Errorf("silo step: %w", err)
		}
		s.exact, s.noise, s.released = sum, g, make([]int64, n)
	}
	s.exact.Reset()
	return s.exact, nil
}

// releaseExact sets dst to the integer sum with exact noise.
func (s *siloSum[F]) releaseExact(dst []float64, step SiloStep) error {
	if _, err := s.noise.Release(s.released, s.exact, step.Terms, step.Exact); err != nil {
		return fmt.Errorf("silo step: %w", err)
	}
	s.exact.Lattice().Float(dst, s.released)
	return nil
}
