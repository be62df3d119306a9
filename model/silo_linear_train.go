package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// Loss is the root mean squared error, or for classes the mean loss.
func (l *siloLinear) Loss(theta []float64, c *data.Client) (float64, error) {
	loss, _, err := l.Judge(theta, c)
	if l.SiloLinear.Loss == HalfSquare {
		loss = math.Sqrt(loss)
	}
	return loss, err
}

// Train follows the model's own loss; d.Loss is not asked.
func (l *siloLinear) Train(d Descent, theta []float64, c *data.Client, shuffle Shuffler) error {
	if len(l.grad) < len(theta) {
		l.grad = make([]float64, max(len(theta), apart))
	}
	return trainPlain(l, d, theta, l.grad[:len(theta)], c, shuffle, &l.order)
}

// exact sets dst to the batch's sum with exact noise: every example's gradient is
// formed, clipped and added as integers.
func (l *siloLinear) exact(dst, theta []float64, s SiloStep) error {
	sum, err := l.sum.integers(len(dst), s)
	if err != nil {
		return err
	}
	if len(l.vector) < len(dst) {
		l.vector = make([]float64, max(len(dst), apart))
	}
	v := l.vector[:len(dst)]
	for _, i := range l.batch {
		x := l.row(i)
		a := l.slope(l.output(theta, x), l.rows.Y[i])
		for j, value := range x {
			v[j] = a * value
		}
		if l.Intercept {
			v[l.Features] = a
		}
		for j, value := range l.shift {
			v[j] += value
		}
		clipped, err := mech.Clip(v, s.bound())
		if err != nil {
			return fmt.Errorf("silo step, row %d: %w", i, err)
		}
		if err := sum.Add(clipped); err != nil {
			return fmt.Errorf("silo step, row %d: %w", i, err)
		}
	}
	return l.sum.releaseExact(dst, s)
}
