package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// Model is what clients train on their own data, its parameters in one vector.
type Model interface {
	Parameters() int
	// Initialise draws the parameters that training starts from.
	Initialise(theta []float64, src rand.Source)
	// Learner is the model with one worker's memory.
	Learner() (Learner, error)
}

// Learner trains and judges on one client's data. It is not safe for concurrent
// use. Errors are of data that do not fit the model, of what a loss cannot do, and of
// trainers that fail; values that leave the finite numbers are none.
type Learner interface {
	// Loss is what clients compare hypotheses by: the root mean squared error of
	// values, the mean loss of classes.
	Loss(theta []float64, c *data.Client) (float64, error)
	// Judge is the mean of Losses, and the number of wrong answers (0 for values).
	Judge(theta []float64, c *data.Client) (loss float64, wrong int, err error)
	// Losses sets dst to every example's loss: the squared error of values, whichever
	// of its forms is trained; the cross entropy or the hinge loss of classes.
	Losses(dst, theta []float64, c *data.Client) error
	// Outputs appends every example's raw outputs to dst, one after another, and says
	// how many each has: one value or logit, or a score for every class.
	Outputs(dst, theta []float64, c *data.Client) (outputs []float64, each int, err error)
	// Gradient sets dst to the batch's gradient: every example's (plus Shift, if
	// there is one) clipped, summed, noised by Paid, divided by Divisor. Without
	// Paid and Clip it is the plain mean. A batch may be empty: Poisson batches can
	// be. An example whose gradient is not finite counts as zero where examples are
	// clipped: a failure would tell of it.
	Gradient(dst, theta []float64, c *data.Client, batch []int, s *Step) error
	// Train moves theta downhill, in place, by one pass. After an error theta is
	// anywhere.
	Train(theta []float64, c *data.Client, p *Pass) error
}

// Step says which examples make one step's gradient, and how it protects them.
type Step struct {
	// Paid clips and noises by what was paid for; the batch must be the one that it
	// drew last. Nil: no noise.
	Paid    *mech.Steps
	Clip    float64   // without Paid: the largest norm of an example's gradient; 0: any
	Divisor int       // public: the sum of clipped gradients is divided by it, whatever was drawn
	Shift   []float64 // added to every example's gradient before it is clipped; nil: nothing
	Whole   bool      // the batch is all examples, in their order: what is given as one is not read
	Planted *Planted  // for audits; nil: nothing
	// Number is the step's own in a training: what is drawn for single steps follows from it.
	Number uint64

	present []int // of Planted, those that are in the batch: a pass draws them
}

// check refuses what cannot be a step on n parameters under a loss.
func (s *Step) check(n int, loss Loss) error {
	if s.Paid == nil && s.Clip == 0 && s.Shift == nil && s.Planted == nil {
		return nil
	}
	return s.checkProtection(n, loss)
}

func (s *Step) checkProtection(n int, loss Loss) error {
	bound := s.bound()
	switch {
	case !(s.Clip >= 0) || math.IsInf(s.Clip, 0):
		return fmt.Errorf("step: clip %v; allowed: 0 (none) or positive and finite", s.Clip)
	case s.Paid != nil && s.Clip != 0:
		return fmt.Errorf("step: clip %v, but the paid steps have a clip of their own, %v", s.Clip, bound)
	case bound > 0 && s.Divisor < 1:
		return fmt.Errorf("step: divisor %d; allowed: 1 or more, the public batch size", s.Divisor)
	case bound > 0 && loss == RMSE:
		return fmt.Errorf("step: the loss rmse is a root over all examples, no sum over them: single examples cannot be clipped; use squared-error")
	case s.Shift != nil && len(s.Shift) != n:
		return fmt.Errorf("step: a shift of %d values for %d parameters", len(s.Shift), n)
	}
	if s.Planted != nil {
		if err := s.Planted.check(n, bound); err != nil {
			return err
		}
	}
	for i, v := range s.Shift {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("step: value %d of the shift is %v", i, v)
		}
	}
	return nil
}

// bound is what gradients are clipped to; 0: they are not.
func (s *Step) bound() float64 {
	if s.Paid != nil {
		return s.Paid.Clip()
	}
	return s.Clip
}

// exact says whether the sum is one of integers.
func (s *Step) exact() bool { return s.Paid != nil && s.Paid.Exact() }

// stepSum keeps the sums that protected steps reuse.
type stepSum[F Float] struct {
	lanes    *mech.LaneSum[F]
	exact    *mech.StepSum
	released []int64
}

// floats is a float sum, clipped to the step's bound: of what is planted, if something is.
func (s *stepSum[F]) floats(n, lanes int, step *Step) (*mech.LaneSum[F], error) {
	sum, err := s.emptyFloats(n, lanes, step)
	if err != nil {
		return nil, err
	}
	return sum, plantFloats(sum, step)
}

func (s *stepSum[F]) emptyFloats(n, lanes int, step *Step) (sum *mech.LaneSum[F], err error) {
	if step.Paid != nil {
		s.lanes, err = mech.PrepareLanes(step.Paid, s.lanes, n, lanes)
		return s.lanes, err
	}
	bound := step.bound()
	if s.lanes == nil || s.lanes.Bound() != bound || s.lanes.Lanes() != lanes {
		sum, err := mech.NewLaneSum[F](n, lanes, bound)
		if err != nil {
			return nil, err
		}
		s.lanes = sum
	}
	s.lanes.Reset()
	return s.lanes, nil
}

// release sets dst to the float sum, noised if the step has noise.
func (s *stepSum[F]) release(dst []F, step *Step) error {
	if step.Paid == nil {
		return s.lanes.Unprotected(dst)
	}
	return mech.SimulateStep(step.Paid, dst, s.lanes)
}

// integers is an integer sum on the step's lattice: of what is planted, if something is.
func (s *stepSum[F]) integers(n int, step *Step) (sum *mech.StepSum, err error) {
	if len(s.released) != n {
		s.released = make([]int64, n)
	}
	if s.exact, err = step.Paid.PrepareSum(s.exact, n); err != nil {
		return nil, err
	}
	return s.exact, plantIntegers(s.exact, n, step)
}

// releaseExact sets dst to the integer sum with exact noise.
func (s *stepSum[F]) releaseExact(dst []float64, step *Step) error {
	if err := step.Paid.Release(s.released, s.exact); err != nil {
		return err
	}
	s.exact.Lattice().Float(dst, s.released)
	return nil
}

// identity is 0, 1, … n-1, grown in kept.
func identity(kept *[]int, n int) []int {
	for i := len(*kept); i < n; i++ {
		*kept = append(*kept, i)
	}
	return (*kept)[:n]
}
