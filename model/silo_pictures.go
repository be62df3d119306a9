package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// siloPictures trains and judges on one silo's pictures.
type siloPictures struct {
	*siloNetwork
	engine      *Engine[float32]
	sum         siloSum[float32]
	theta, grad []float32
	ex          Examples[float32]
	rows, every []int
	order       []int
	outputs     []float32
	losses      []float64
	vector      []float64
	grey        [256]float32 // of every byte
}

// judged is how many pictures are laid out at a time to be judged.
const judged = 256

// load lays some of c's pictures out, with their targets.
func (l *siloPictures) load(c *data.Client, batch []int) error {
	if c.Images == nil {
		return fmt.Errorf("the network needs pictures, the client has rows")
	}
	ex, size := &l.ex, l.input.Len()
	ex.Labels, ex.Targets, l.rows = ex.Labels[:0], ex.Targets[:0], l.rows[:0]
	if cap(ex.X) < len(batch)*size {
		ex.X = make([]float32, len(batch)*size)
	}
	ex.X = ex.X[:len(batch)*size]
	for k, i := range batch {
		if i < 0 || i >= len(c.Index) {
			return fmt.Errorf("picture %d of %d", i, len(c.Index))
		}
		at := c.Index[i]
		x := ex.X[k*size : (k+1)*size]
		for j, b := range c.Images.Pixels[at*size : (at+1)*size] {
			x[j] = l.grey[b]
		}
		l.rows = append(l.rows, k)
		if l.labelled {
			ex.Labels = append(ex.Labels, c.Images.Labels[at])
		} else {
			ex.Targets = append(ex.Targets, float32(c.Images.Targets[at]))
		}
	}
	return nil
}

// narrow keeps the parameters in single precision.
func (l *siloPictures) narrow(theta []float64) {
	if cap(l.theta) < len(theta) {
		l.theta, l.grad = make([]float32, len(theta)), make([]float32, len(theta))
	}
	l.theta, l.grad = l.theta[:len(theta)], l.grad[:len(theta)]
	for i, v := range theta {
		l.theta[i] = float32(v)
	}
}

func (l *siloPictures) Gradient(dst, theta []float64, c *data.Client, batch []int, s SiloStep) error {
	n := l.Parameters()
	if err := s.check(n); err != nil {
		return err
	}
	if len(dst) != n || len(theta) != n {
		return fmt.Errorf("silo step: %d values and %d parameters for a network of %d", len(dst), len(theta), n)
	}
	if err := l.load(c, batch); err != nil {
		return fmt.Errorf("silo step: %w", err)
	}
	l.narrow(theta)
	if err := l.step(dst, s); err != nil {
		return fmt.Errorf("silo step: %w", err)
	}
	return nil
}

func (l *siloPictures) step(dst []float64, s SiloStep) error {
	if s.bound() == 0 {
		return l.plain(dst, s.Shift)
	}
	scale := 1 / float64(s.Divisor)
	if s.exact() {
		err := l.exact(dst, s)
		kernel.Scale(dst, scale, dst)
		return err
	}
	sum, err := l.sum.floats(len(dst), lanes, s.bound())
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
	if err := l.sum.release(l.grad, s); err != nil {
		return err
	}
	toDouble(dst, l.grad)
	kernel.Scale(dst, scale, dst)
	return nil
}

// plain sets dst to the mean gradient.
func (l *siloPictures) plain(dst, shift []float64) error {
	clear(dst)
	if len(l.rows) == 0 {
		return nil
	}
	if _, err := l.engine.Gradient(l.grad, l.theta, l.ex, l.rows); err != nil {
		return err
	}
	toDouble(dst, l.grad)
	if shift != nil {
		kernel.Axpy(1, shift, dst)
	}
	return nil
}

// own sets l.vector to one picture's gradient plus the shift.
func (l *siloPictures) own(k int, shift []float64) error {
	if _, err := l.engine.Gradient(l.grad, l.theta, l.ex, l.rows[k:k+1]); err != nil {
		return err
	}
	if len(l.vector) != len(l.grad) {
		l.vector = make([]float64, len(l.grad))
	}
	toDouble(l.vector, l.grad)
	if shift != nil {
		kernel.Axpy(1, shift, l.vector)
	}
	return nil
}

// shifted adds pictures' gradients to sum one by one: the norm of a shifted
// gradient needs its product with the shift, which the engine's norms do not give.
func (l *siloPictures) shifted(sum *mech.LaneSum[float32], shift []float64) error {
	var norm [1]float64
	var factor [1]float32
	for k := range l.rows {
		if err := l.own(k, shift); err != nil {
			return err
		}
		norm[0] = math.Sqrt(kernel.SquaredNorm(l.vector))
		for i, v := range l.vector {
			l.grad[i] = float32(v)
		}
		err := sum.AddWeighted(0, norm[:], factor[:], func(dst, factors []float32) {
			if factors[0] != 0 { // 0 times a gradient that is not finite is no number
				kernel.Axpy(factors[0], l.grad, dst)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// exact sets dst to the batch's sum with exact noise: an integer sum needs every
// picture's own gradient.
func (l *siloPictures) exact(dst []float64, s SiloStep) error {
	sum, err := l.sum.integers(len(dst), s)
	if err != nil {
		return err
	}
	for k := range l.rows {
		if err := l.own(k, s.Shift); err != nil {
			return err
		}
		clipped, err := mech.Clip(l.vector, s.bound())
		if err == nil {
			err = sum.Add(clipped)
		}
		if err != nil {
			return fmt.Errorf("picture %d of the batch: %w", k, err)
		}
	}
	return l.sum.releaseExact(dst, s)
}
