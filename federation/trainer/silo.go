package trainer

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/model"
)

// gradientSum is what a learner's private steps reuse.
type gradientSum struct {
	sum    *mech.StepSum
	noised []int64
}

// Gradient asks for every example's gradient, and clips, sums and noises here: methods
// that protect single examples work with a trainer as with a model. Noise must be
// exact. If the trainer fails, the gradient is noise alone, and Failure says so.
func (l *learner) Gradient(dst, theta []float64, _ *data.Client, batch []int, s *model.Step) error {
	t := l.trainer
	switch {
	case len(dst) != t.parameters || len(theta) != t.parameters:
		return fmt.Errorf("trainer: %d values and %d parameters for a model of %d", len(dst), len(theta), t.parameters)
	case s.Shift != nil && len(s.Shift) != t.parameters:
		return fmt.Errorf("trainer: a shift of %d values for %d parameters", len(s.Shift), t.parameters)
	case s.Paid == nil && s.Clip == 0:
		l.plain(dst, theta, batch)
		return nil
	case s.Paid == nil || !s.Paid.Exact() || s.Divisor < 1:
		return fmt.Errorf("trainer: divisor %d; a trainer's gradients are protected with exact noise (privacy.noise) or not at all", s.Divisor)
	}
	x := &l.steps
	var err error
	if x.sum, err = s.Paid.PrepareSum(x.sum, t.parameters); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	if len(x.noised) != t.parameters {
		x.noised = make([]int64, t.parameters)
	}
	if err := l.sumGradients(theta, batch, s); err != nil { // the trainer keeps the reason
		if x.sum, err = s.Paid.PrepareSum(x.sum, t.parameters); err != nil {
			return fmt.Errorf("trainer: %w", err)
		}
	}
	if err := s.Paid.Release(x.noised, x.sum); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	x.sum.Lattice().Float(dst, x.noised)
	for i := range dst {
		dst[i] /= float64(s.Divisor)
	}
	return nil
}

// sumGradients adds a batch's clipped gradients up.
func (l *learner) sumGradients(theta []float64, batch []int, s *model.Step) error {
	if l.trainer.hasFailed() {
		return errPending
	}
	var check probe
	if !l.checked && len(batch) > 1 {
		l.checked, check = true, newProbe(len(batch))
	}
	err := l.trainer.gradients(theta, batch, func(k int, gradient []float64) error {
		check.see(k, gradient)
		for i, v := range s.Shift {
			gradient[i] += v
		}
		return l.steps.sum.Add(gradient)
	})
	if err != nil {
		return err
	}
	return check.alone(l.trainer, theta, batch)
}

// plain is the mean gradient, without protection; none, if the trainer fails.
func (l *learner) plain(dst, theta []float64, batch []int) {
	clear(dst)
	err := errPending
	if !l.trainer.hasFailed() {
		err = l.trainer.gradients(theta, batch, func(_ int, gradient []float64) error {
			for i, g := range gradient {
				dst[i] += g / float64(len(batch))
			}
			return nil
		})
	}
	if err != nil {
		clear(dst)
	}
}

// Outputs are not among what a trainer tells.
func (l *learner) Outputs(dst, _ []float64, _ *data.Client) ([]float64, int, error) {
	return dst, 0, errors.New("trainer: it tells losses, no outputs")
}

// Judge is the trainer's loss and its number of wrong answers.
func (l *learner) Judge(theta []float64, _ *data.Client) (loss float64, wrong int, err error) {
	if l.trainer.hasFailed() {
		return 0, 0, errPending
	}
	return l.trainer.loss(theta)
}

// Losses are every example's, as the trainer says.
func (l *learner) Losses(dst, theta []float64, _ *data.Client) error {
	if l.trainer.hasFailed() {
		return errPending
	}
	return l.trainer.losses(dst, theta)
}

// losses fetches every example's loss.
func (t *Trainer) losses(dst, theta []float64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for done := 0; done < len(dst); {
		some := make([]int, min(len(dst)-done, maxIndices))
		for k := range some {
			some[k] = done + k
		}
		if _, err := t.ask(request{Op: "losses", Examples: some}, theta, dst[done:done+len(some)]); err != nil {
			return err
		}
		done += len(some)
	}
	return nil
}

// loss fetches what models are compared by.
func (t *Trainer) loss(theta []float64) (loss float64, wrong int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, err := t.ask(request{Op: "loss"}, theta, nil)
	switch {
	case err != nil:
		return 0, 0, err
	case a.Loss == nil || math.IsInf(*a.Loss, 0):
		return 0, 0, t.end("loss", errors.New("its header has no loss"))
	case a.Wrong < 0 || a.Wrong > t.examples:
		return 0, 0, t.end("loss", fmt.Errorf("it counts %d wrong answers to %d examples", a.Wrong, t.examples))
	}
	return *a.Loss, a.Wrong, nil
}
