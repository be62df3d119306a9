package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/kernel"
)

func (l *linearLearner) check(dst, theta []float64, c *data.Client, batch []int, s *Step) error {
	if err := s.check(len(theta), l.Linear.Loss); err != nil {
		return err
	}
	rows := len(batch)
	if s.Whole {
		rows = len(c.Y)
	}
	if err := l.ready(theta, c, rows); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	if len(dst) != len(theta) {
		return fmt.Errorf("step: room for %d values of %d", len(dst), len(theta))
	}
	if s.Whole {
		return nil
	}
	for _, i := range batch {
		if i < 0 || i >= len(c.Y) {
			return fmt.Errorf("step: row %d of %d", i, len(c.Y))
		}
	}
	return nil
}

func (l *linearLearner) Gradient(dst, theta []float64, c *data.Client, batch []int, s *Step) error {
	if err := l.check(dst, theta, c, batch, s); err != nil {
		return err
	}
	bound := s.bound()
	if bound == 0 && (l.Linear.Loss == SquaredError || l.Linear.Loss == RMSE) {
		if s.Whole {
			batch = nil
		} else if len(batch) == 0 {
			clear(dst)
			return nil
		}
		l.squares(dst, theta, c.Rows, batch)
		if s.Shift != nil {
			kernel.Axpy(1, s.Shift, dst)
		}
		return nil
	}
	if s.Whole {
		batch = identity(&l.every, len(c.Y))
	}
	n := len(batch)
	if len(l.scratch) < 3*n {
		l.scratch = make([]float64, 3*max(n, ownLine))
	}
	l.slopes = l.scratch[:n]
	l.rows, l.batch, l.shift = c.Rows, batch, s.Shift
	if bound == 0 {
		l.plain(dst, theta)
		return nil
	}
	if err := l.protected(dst, theta, s); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	kernel.Scale(dst, 1/float64(s.Divisor), dst)
	return nil
}

// squares sets dst to the gradient of the squared error or its root on the rows that
// order names (all rows, in turn, if it is nil): they are added up before they are
// scaled, for the root's scale is known only then.
func (m Linear) squares(dst, theta []float64, rows data.Rows, order []int) {
	clear(dst)
	n := len(order)
	if order == nil {
		n = rows.Len()
	}
	if n == 0 {
		return
	}
	var squares float64
	if m.Features == 2 && !m.Intercept && order == nil {
		squares = twoSquares(dst, theta, rows)
	} else {
		squares = m.addSquares(dst, theta, rows, order, n)
	}
	scale := 2 / float64(n)
	if m.Loss == RMSE {
		// d sqrt(S/n) = X'r / sqrt(n*S); at a perfect fit the gradient is taken as 0.
		scale = 0
		if squares > 0 {
			scale = 1 / math.Sqrt(float64(n)*squares)
		}
	}
	for j := range dst {
		dst[j] *= scale
	}
}

// addSquares adds the rows' residuals times their features to dst, and returns the sum
// of their squares.
func (m Linear) addSquares(dst, theta []float64, rows data.Rows, order []int, n int) (squares float64) {
	for k := range n {
		i := k
		if order != nil {
			i = order[k]
		}
		r := m.residual(theta, rows, i)
		squares += r * r
		for j, v := range rows.X[i*m.Features : (i+1)*m.Features] {
			dst[j] += r * v
		}
		if m.Intercept {
			dst[m.Features] += r
		}
	}
	return squares
}

// twoSquares is the same for all rows of two features, in the same order of sums.
func twoSquares(dst, theta []float64, rows data.Rows) (squares float64) {
	x, a, b := rows.X, theta[0], theta[1]
	var first, second float64
	for i, y := range rows.Y {
		if 2*i+1 >= len(x) {
			break
		}
		r := a*x[2*i] - y + b*x[2*i+1]
		squares += r * r
		first += r * x[2*i]
		second += r * x[2*i+1]
	}
	dst[0], dst[1] = first, second
	return squares
}

// plain sets dst to the mean gradient.
func (l *linearLearner) plain(dst, theta []float64) {
	clear(dst)
	if len(l.batch) == 0 {
		return
	}
	factors := l.scratch[len(l.batch) : 2*len(l.batch)]
	for k, i := range l.batch {
		l.slopes[k] = l.slope(l.output(theta, l.row(i)), l.rows.Y[i])
		factors[k] = 1 / float64(len(l.batch))
	}
	l.addWeighted(dst, factors)
}

// protected sets dst to the clipped sum, noised if the step has noise.
func (l *linearLearner) protected(dst, theta []float64, s *Step) error {
	if s.exact() {
		return l.exact(dst, theta, s)
	}
	sum, err := l.sum.floats(len(dst), 1, s)
	if err != nil {
		return err
	}
	n := len(l.batch)
	norms, factors := l.scratch[n:2*n], l.scratch[2*n:3*n]
	l.norms(norms, theta)
	if err := sum.AddWeighted(0, norms, factors, l.addTo); err != nil {
		return err
	}
	return l.sum.release(dst, s)
}

// norms sets dst to the norm of every example's gradient, slope*(x, 1) + shift,
// and keeps the slopes. |a*x + s|^2 = a^2*|x|^2 + 2*a*<x, s> + |s|^2.
func (l *linearLearner) norms(dst, theta []float64) {
	var constant float64
	if l.shift != nil {
		constant = kernel.SquaredNorm(l.shift)
	}
	for k, i := range l.batch {
		x := l.row(i)
		a := l.slope(l.output(theta, x), l.rows.Y[i])
		l.slopes[k] = a
		squares := kernel.SquaredNorm(x)
		if l.Intercept {
			squares++
		}
		squares *= a * a
		if l.shift != nil {
			squares += 2*a*l.output(l.shift, x) + constant
		}
		dst[k] = math.Sqrt(positive(squares))
	}
}

// positive is x, or 0 where rounding left a square below it; NaN stays.
func positive(x float64) float64 {
	if x < 0 {
		return 0
	}
	return x
}

// addWeighted adds the batch's gradients, times factors, to dst.
func (l *linearLearner) addWeighted(dst, factors []float64) {
	w := dst[:l.Features]
	var constant, shifts float64
	for k, i := range l.batch {
		if factors[k] == 0 {
			continue // a slope that is not finite, times 0, would be no number
		}
		a := l.slopes[k] * factors[k]
		kernel.Axpy(a, l.row(i), w)
		constant += a
		shifts += factors[k]
	}
	if l.Intercept {
		dst[l.Features] += constant
	}
	if l.shift != nil {
		kernel.Axpy(shifts, l.shift, dst)
	}
}

// exact sets dst to the batch's sum with exact noise: every example's gradient is
// formed, clipped and added as integers.
func (l *linearLearner) exact(dst, theta []float64, s *Step) error {
	sum, err := l.sum.integers(len(dst), s)
	if err != nil {
		return err
	}
	if len(l.vector) < len(dst) {
		l.vector = make([]float64, max(len(dst), ownLine))
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
		if err := sum.Add(v); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return l.sum.releaseExact(dst, s)
}
