package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// Train takes the pass's steps; see Pass.Single.
func (l *networkLearner[F]) Train(theta []float64, c *data.Client, p *Pass) error {
	if l.stays(p) {
		return l.trainThere(theta, c, p)
	}
	if !l.pictures || !p.Single || !p.plain() || l.device != nil {
		return p.Descend(l, theta, c)
	}
	all := c.Len()
	if err := l.lay(theta, c, identity(&l.every, all), l.trained); err != nil {
		return err
	}
	if err := p.begin(all); err != nil || all == 0 {
		return err
	}
	l.engine.chunk = l.chunk // no picture's own gradient is kept
	for {
		batch, more, err := p.next()
		if err != nil {
			return err
		}
		if !more {
			toDouble(theta, l.theta)
			return nil
		}
		if p.Whole {
			batch = l.rows
		}
		if _, err := l.engine.Descend(l.theta, l.ex, batch, p.StepSize); err != nil {
			return err
		}
	}
}

func (l *networkLearner[F]) Gradient(dst, theta []float64, c *data.Client, batch []int, s *Step) error {
	if len(dst) != len(l.theta) {
		return fmt.Errorf("step: room for %d values of %d", len(dst), len(l.theta))
	}
	return l.gradientParts(theta, c, batch, s, func(from int, part []float64) { copy(dst[from:], part) })
}

// partLength is how many values of a gradient are in double precision at a time: what a
// core's first-level cache holds.
const partLength = 1 << 11

// gradientParts hands the gradient to use part by part: nobody need hold all of it in
// double precision. Use may change a part, and theta up to its end.
func (l *networkLearner[F]) gradientParts(theta []float64, c *data.Client, batch []int, s *Step, use func(from int, part []float64)) error {
	if err := s.check(len(l.theta), l.loss); err != nil {
		return err
	}
	if s.Whole {
		batch = identity(&l.every, c.Len())
	}
	if l.people && c.People != nil {
		c = &data.Client{Rows: c.Rows, People: data.InStep(c.People, s.Number)}
	}
	if s.bound() > 0 {
		batch = l.readable(c, batch)
	}
	var sum []F
	err, factor, shift := error(nil), 1.0, s.Shift
	if l.device == nil {
		err = l.lay(theta, c, batch, l.trained)
	}
	switch {
	case err != nil:
	case l.device != nil:
		shift = nil
		sum, factor, err = l.onDevice(theta, c, batch, s)
	case s.bound() == 0 && len(l.rows) == 0:
		sum, shift = l.single(), nil
		clear(sum)
	case s.bound() == 0:
		sum = l.single()
		_, err = l.engine.Gradient(sum, l.theta, l.ex, l.rows)
	case s.exact():
		factor, shift = 1/float64(s.Divisor), nil
		err = l.exact(s)
	default:
		factor, shift = 1/float64(s.Divisor), nil
		sum, err = l.protected(s)
	}
	if err != nil {
		return fmt.Errorf("step: %w", err)
	}
	for from := 0; from < len(l.theta); from += partLength {
		to := min(from+partLength, len(l.theta))
		part := l.part[:to-from]
		if s.exact() {
			copy(part, l.vector[from:to])
		} else if single, is := any(sum).([]float32); is && l.device != nil {
			clear(part)
			kernel.AddSingle(single[from:to], part)
		} else {
			toDouble(part, sum[from:to])
		}
		if shift != nil {
			kernel.Axpy(1, shift[from:to], part)
		}
		if factor != 1 {
			kernel.Scale(part, factor, part)
		}
		use(from, part)
	}
	return nil
}

// single is room for a gradient.
func (l *networkLearner[F]) single() []F {
	if l.gradient == nil {
		l.gradient = make([]F, len(l.theta))
	}
	return l.gradient
}

// protected is the clipped sum, noised if the step has noise, until the next step.
func (l *networkLearner[F]) protected(s *Step) ([]F, error) {
	sum, err := l.sum.floats(len(l.theta), lanes, s)
	if err != nil {
		return nil, err
	}
	if s.Shift != nil {
		err = l.shifted(sum, s.Shift)
	} else {
		_, err = l.engine.ClippedSum(sum, l.theta, l.ex, l.rows)
	}
	if err != nil {
		return nil, err
	}
	released := sum.Room()
	return released, l.sum.release(released, s)
}

// own sets l.vector to one example's gradient plus the shift.
func (l *networkLearner[F]) own(k int, shift []float64) error {
	gradient := l.single()
	if _, err := l.engine.Gradient(gradient, l.theta, l.ex, l.rows[k:k+1]); err != nil {
		return err
	}
	toDouble(l.double(), gradient)
	if shift != nil {
		kernel.Axpy(1, shift, l.vector)
	}
	return nil
}

// shifted adds examples' gradients to sum one by one: the norm of a shifted
// gradient needs its product with the shift, which the engine's norms do not give.
func (l *networkLearner[F]) shifted(sum *mech.LaneSum[F], shift []float64) error {
	var norm [1]float64
	var factor [1]F
	for k := range l.rows {
		if err := l.own(k, shift); err != nil {
			return err
		}
		norm[0] = math.Sqrt(kernel.SquaredNorm(l.vector))
		for i, v := range l.vector {
			l.gradient[i] = F(v)
		}
		err := sum.AddWeighted(0, norm[:], factor[:], func(dst, factors []F) {
			if factors[0] != 0 { // 0 times a gradient that is not finite is no number
				kernel.Axpy(factors[0], l.gradient, dst)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// double is room for a gradient in double precision.
func (l *networkLearner[F]) double() []float64 {
	if l.vector == nil {
		l.vector = make([]float64, len(l.theta))
	}
	return l.vector
}

// exact sets l.vector to the batch's sum with exact noise. Where layers or the lattice do not
// allow for sums of whole numbers, or gradients are shifted, it takes every example's own
// gradient.
func (l *networkLearner[F]) exact(s *Step) error {
	sum, err := l.sum.integers(len(l.theta), s)
	if err != nil {
		return err
	}
	sum.Spread(l.engine.runner)
	if s.Shift == nil && sum.Weighted() && l.engine.canAddWhole() {
		if err := l.engine.WholeSum(sum, l.theta, l.ex, l.rows); err != nil {
			return err
		}
		return l.sum.releaseExact(l.double(), s)
	}
	for k := range l.rows {
		if err := l.own(k, s.Shift); err != nil {
			return err
		}
		if err := sum.Add(l.vector); err != nil {
			return fmt.Errorf("example %d of the batch: %w", k, err)
		}
	}
	return l.sum.releaseExact(l.double(), s)
}
