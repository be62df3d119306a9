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
	if !l.pictures || !p.Single || !p.plain() {
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
	if err := s.check(len(l.theta), l.loss); err != nil {
		return err
	}
	if len(dst) != len(l.theta) {
		return fmt.Errorf("step: room for %d values of %d", len(dst), len(l.theta))
	}
	if s.Whole {
		batch = identity(&l.every, c.Len())
	}
	if err := l.lay(theta, c, batch, l.trained); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	if l.gradient == nil {
		l.gradient = make([]F, len(l.theta))
	}
	if s.bound() == 0 {
		return l.plain(dst, s.Shift)
	}
	if err := l.protected(dst, s); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	kernel.Scale(dst, 1/float64(s.Divisor), dst)
	return nil
}

// plain sets dst to the mean gradient.
func (l *networkLearner[F]) plain(dst, shift []float64) error {
	clear(dst)
	if len(l.rows) == 0 {
		return nil
	}
	if _, err := l.engine.Gradient(l.gradient, l.theta, l.ex, l.rows); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	toDouble(dst, l.gradient)
	if shift != nil {
		kernel.Axpy(1, shift, dst)
	}
	return nil
}

// protected sets dst to the clipped sum, noised if the step has noise.
func (l *networkLearner[F]) protected(dst []float64, s *Step) error {
	if s.exact() {
		return l.exact(dst, s)
	}
	sum, err := l.sum.floats(len(dst), lanes, s)
	if err != nil {
		return err
	}
	if s.Shift != nil {
		err = l.shifted(sum, s.Shift)
	} else {
		_, err = l.engine.ClippedSum(sum, l.theta, l.ex, l.rows)
	}
	if err != nil {
		return err
	}
	if err := l.sum.release(l.gradient, s); err != nil {
		return err
	}
	toDouble(dst, l.gradient)
	return nil
}

// own sets l.vector to one example's gradient plus the shift.
func (l *networkLearner[F]) own(k int, shift []float64) error {
	if _, err := l.engine.Gradient(l.gradient, l.theta, l.ex, l.rows[k:k+1]); err != nil {
		return err
	}
	if len(l.vector) != len(l.gradient) {
		l.vector = make([]float64, len(l.gradient))
	}
	toDouble(l.vector, l.gradient)
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

// exact sets dst to the batch's sum with exact noise: an integer sum needs every
// example's own gradient.
func (l *networkLearner[F]) exact(dst []float64, s *Step) error {
	sum, err := l.sum.integers(len(dst), s)
	if err != nil {
		return err
	}
	for k := range l.rows {
		if err := l.own(k, s.Shift); err != nil {
			return err
		}
		if err := sum.Add(l.vector); err != nil {
			return fmt.Errorf("example %d of the batch: %w", k, err)
		}
	}
	return l.sum.releaseExact(dst, s)
}
