package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// RowLoss is what a linear model's one output is judged by.
type RowLoss int

// The losses of linear models in paper 002.
const (
	// HalfSquare is trained on half the squared error; Judge and Losses report the
	// squared error itself.
	HalfSquare RowLoss = iota
	// Logistic is the cross entropy of labels 0 and 1.
	Logistic
	// Hinge is the linear SVM's: max(0, 1 - y*output), y being 1 or -1.
	Hinge
)

// SiloLinear is a linear model whose every example's gradient is the slope of its
// loss times its features, so that clipping needs two products and no vector.
type SiloLinear struct {
	Linear
	Loss RowLoss
}

// Learner is the model with one worker's memory; it is a SiloLearner.
func (m SiloLinear) Learner() Learner {
	l := &siloLinear{SiloLinear: m}
	l.addTo = l.addWeighted // made once: a closure a step would be memory a step
	return l
}

type siloLinear struct {
	SiloLinear
	sum     siloSum[float64]
	scratch []float64 // slopes, norms and factors of a batch
	slopes  []float64
	rows    data.Rows
	batch   []int
	shift   []float64
	vector  []float64 // exact sums: one example's gradient
	order   []int
	grad    []float64
	addTo   func(dst, factors []float64)
	_       [128]byte // the next worker's fields lie on other cache lines
}

func (l *siloLinear) check(dst, theta []float64, c *data.Client, batch []int, s SiloStep) error {
	n, rows := l.Parameters(), c.Rows.Len()
	if err := s.check(n); err != nil {
		return err
	}
	if len(dst) != n || len(theta) != n || len(c.X) != rows*l.Features {
		return fmt.Errorf("silo step: %d values and %d parameters for a model of %d; %d features in %d rows of %d", len(dst), len(theta), n, len(c.X), rows, l.Features)
	}
	for _, i := range batch {
		if i < 0 || i >= rows {
			return fmt.Errorf("silo step: row %d of %d", i, rows)
		}
	}
	return nil
}

func (l *siloLinear) Gradient(dst, theta []float64, c *data.Client, batch []int, s SiloStep) error {
	if err := l.check(dst, theta, c, batch, s); err != nil {
		return err
	}
	if len(l.scratch) < 3*len(batch) {
		l.scratch = make([]float64, 3*max(len(batch), apart))
	}
	n := len(batch)
	l.slopes = l.scratch[:n]
	l.rows, l.batch, l.shift = c.Rows, batch, s.Shift
	if s.bound() == 0 {
		l.plain(dst, theta)
		return nil
	}
	scale := 1 / float64(s.Divisor)
	if s.exact() {
		if err := l.exact(dst, theta, s); err != nil {
			return err
		}
		kernel.Scale(dst, scale, dst)
		return nil
	}
	sum, err := l.sum.floats(len(dst), 1, s.bound())
	if err != nil {
		return err
	}
	norms, factors := l.scratch[n:2*n], l.scratch[2*n:3*n]
	l.norms(norms, theta)
	if err := sum.AddWeighted(0, norms, factors, l.addTo); err != nil {
		return fmt.Errorf("silo step: %w", err)
	}
	if err := l.sum.release(dst, s); err != nil {
		return fmt.Errorf("silo step: %w", err)
	}
	kernel.Scale(dst, scale, dst)
	return nil
}

// row is the features of row i.
func (l *siloLinear) row(i int) []float64 { return l.rows.X[i*l.Features : (i+1)*l.Features] }

// output is the model's value for a row.
func (l *siloLinear) output(theta, x []float64) float64 {
	out := kernel.Dot(theta[:l.Features], x)
	if l.Intercept {
		out += theta[l.Features]
	}
	return out
}

// norms sets dst to the norm of every example's gradient, slope*(x, 1) + shift,
// and keeps the slopes. |a*x + s|^2 = a^2*|x|^2 + 2*a*<x, s> + |s|^2.
func (l *siloLinear) norms(dst, theta []float64) {
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
func (l *siloLinear) addWeighted(dst, factors []float64) {
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

// plain sets dst to the mean gradient.
func (l *siloLinear) plain(dst, theta []float64) {
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

// slope is the derivative of the training loss with respect to the output.
func (m SiloLinear) slope(out, y float64) float64 {
	switch m.Loss {
	case Logistic:
		return 1/(1+math.Exp(-out)) - y
	case Hinge:
		if sign := 2*y - 1; sign*out < 1 {
			return -sign
		}
		return 0
	}
	return out - y
}

// loss is what Judge reports of one row, and whether the answer is wrong.
func (m SiloLinear) loss(out, y float64) (loss float64, wrong bool) {
	switch m.Loss {
	case Logistic:
		return softplus(out) - y*out, (out > 0) != (y > 0.5)
	case Hinge:
		return max(0, 1-(2*y-1)*out), (out > 0) != (y > 0.5)
	}
	return (out - y) * (out - y), false
}

func (l *siloLinear) Judge(theta []float64, c *data.Client) (loss float64, wrong int, err error) {
	if err := l.fits(c); err != nil {
		return 0, 0, err
	}
	l.rows = c.Rows
	for i, y := range c.Y {
		e, missed := l.loss(l.output(theta, l.row(i)), y)
		loss += e
		if missed {
			wrong++
		}
	}
	return loss / float64(max(1, len(c.Y))), wrong, nil
}

func (l *siloLinear) Losses(dst, theta []float64, c *data.Client) error {
	if err := l.fits(c); err != nil {
		return err
	}
	l.rows = c.Rows
	for i, y := range c.Y {
		dst[i], _ = l.loss(l.output(theta, l.row(i)), y)
	}
	return nil
}
