// Package model holds networks with per-example gradients, losses and optimisers, on flat parameter vectors.
package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Kernel names the arithmetic in use: results are the same, bit for bit, on one
// kernel set only.
func Kernel() string { return kernel.Name() }

// Linear predicts x·theta, with a last parameter added if it has an intercept.
type Linear struct {
	Features  int
	Intercept bool
	InitSD    float64
}

// Learner is the model with memory for its gradient.
func (m Linear) Learner() Learner { return &linearLearner{Linear: m} }

type linearLearner struct {
	Linear
	scratch Scratch
}

// fits says whether a client's rows are of as many features as the model has.
func (m *Linear) fits(c *data.Client) error {
	if len(c.X) != len(c.Y)*m.Features {
		return m.unfit(c)
	}
	return nil
}

func (m *Linear) unfit(c *data.Client) error {
	return fmt.Errorf("%d values are not %d rows of %d features", len(c.X), len(c.Y), m.Features)
}

func (l *linearLearner) Loss(theta []float64, c *data.Client) (float64, error) {
	if err := l.fits(c); err != nil {
		return 0, err
	}
	return math.Sqrt(l.SquaredError(theta, c.Rows)), nil
}

// RowErrors sets dst to every row's squared error.
func (l *linearLearner) RowErrors(dst, theta []float64, c *data.Client) error {
	if err := l.fits(c); err != nil {
		return err
	}
	for i := range c.Rows.Len() {
		r := l.residual(theta, c.Rows, i)
		dst[i] = r * r
	}
	return nil
}

func (l *linearLearner) Train(d Descent, theta []float64, c *data.Client, shuffle Shuffler) error {
	if err := l.fits(c); err != nil {
		return err
	}
	return d.train(l, theta, c.Rows, shuffle, &l.scratch)
}

// Initialise draws from N(0, InitSD^2).
func (m Linear) Initialise(theta []float64, src rand.Source) {
	for i := range theta {
		theta[i] = m.InitSD * rng.Normal(src)
	}
}

// Parameters is the length of theta.
func (m Linear) Parameters() int {
	if m.Intercept {
		return m.Features + 1
	}
	return m.Features
}

// Predict is the value for row i.
func (m Linear) Predict(theta []float64, rows data.Rows, i int) float64 {
	return m.residual(theta, rows, i) + rows.Y[i]
}

// residual is the prediction less y for row i.
func (m Linear) residual(theta []float64, rows data.Rows, i int) float64 {
	x := rows.X[i*m.Features : (i+1)*m.Features]
	sum := -rows.Y[i]
	if m.Intercept {
		sum += theta[m.Features]
	}
	for j, v := range x {
		sum += theta[j] * v
	}
	return sum
}

// SquaredError is the mean of the squared residuals.
func (m Linear) SquaredError(theta []float64, rows data.Rows) float64 {
	var sum float64
	if m.Features == 2 && !m.Intercept {
		x, y := rows.X, rows.Y
		a, b := theta[0], theta[1]
		for i := 0; i < len(y) && 2*i+1 < len(x); i++ {
			r := a*x[2*i] + b*x[2*i+1] - y[i]
			sum += r * r
		}
	} else {
		for i := range rows.Y {
			r := m.residual(theta, rows, i)
			sum += r * r
		}
	}
	return sum / float64(len(rows.Y))
}

// gradient sets grad to that of the loss on the rows that order names (all rows,
// in turn, if order is nil).
func (m Linear) gradient(grad, theta []float64, rows data.Rows, order []int, loss Loss) error {
	clear(grad)
	n := len(order)
	if order == nil {
		n = rows.Len()
	}
	var squares float64
	for k := range n {
		i := k
		if order != nil {
			i = order[k]
		}
		r := m.residual(theta, rows, i)
		squares += r * r
		x := rows.X[i*m.Features : (i+1)*m.Features]
		for j, v := range x {
			grad[j] += r * v
		}
		if m.Intercept {
			grad[m.Features] += r
		}
	}
	scale := 2 / float64(n)
	if loss == RMSE {
		// d sqrt(S/n) = X'r / sqrt(n*S); at a perfect fit the gradient is taken as 0.
		scale = 0
		if squares > 0 {
			scale = 1 / math.Sqrt(float64(n)*squares)
		}
	}
	for j := range grad {
		grad[j] *= scale
	}
	return nil
}
