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

// Linear predicts x·theta, with a last parameter added if it has an intercept. With
// the cross entropy it is logistic regression, with the hinge loss a linear SVM;
// both are of targets 0 and 1.
type Linear struct {
	Features  int
	Intercept bool
	InitSD    float64
	Loss      Loss
	Classes   int // 2: targets are classes; 0: values
	Emphasis  Emphasis
	stopped   func() bool // nil: nobody stops it
}

// Parameters is the length of theta.
func (m Linear) Parameters() int {
	if m.Intercept {
		return m.Features + 1
	}
	return m.Features
}

// Initialise draws from N(0, InitSD^2).
func (m Linear) Initialise(theta []float64, src rand.Source) {
	for i := range theta {
		theta[i] = m.InitSD * rng.Normal(src)
	}
}

// Learner is the model with one worker's memory.
func (m Linear) Learner() (Learner, error) {
	if m.Features < 1 {
		return nil, fmt.Errorf("a linear model of %d features; allowed: 1 or more", m.Features)
	}
	l := &linearLearner{Linear: m, n: m.Parameters()}
	l.addTo = l.addWeighted // made once: a closure a step would be memory a step
	return l, nil
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
func (m *Linear) SquaredError(theta []float64, rows data.Rows) float64 {
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

// output is the model's value for a row.
func (m *Linear) output(theta, x []float64) float64 {
	out := kernel.Dot(theta[:m.Features], x)
	if m.Intercept {
		out += theta[m.Features]
	}
	return out
}

// slope is the derivative of the training loss with respect to the output.
func (m *Linear) slope(out, y float64) float64 {
	switch m.Loss {
	case CrossEntropy:
		return m.Emphasis.times(1/(1+math.Exp(-out))-y, y)
	case Focal:
		sign := 2*y - 1
		_, slope := m.Emphasis.focal(sign*out, 2, int(y))
		return m.Emphasis.times(sign*slope, y)
	case Hinge:
		if sign := 2*y - 1; sign*out < 1 {
			return m.Emphasis.times(-sign, y)
		}
		return 0
	case HalfSquaredError:
		return out - y
	}
	return 2 * (out - y)
}

// judge is one row's loss, and whether the answer is wrong.
func (m *Linear) judge(out, y float64) (loss float64, wrong bool) {
	switch m.Loss {
	case CrossEntropy, Focal:
		return softplus(out) - y*out, (out > 0) != (y > 0.5)
	case Hinge:
		return max(0, 1-(2*y-1)*out), (out > 0) != (y > 0.5)
	}
	return (out - y) * (out - y), m.Classes > 0 && (out > 0.5) != (y > 0.5)
}

// linearLearner is a linear model with memory. Every example's gradient is the slope
// of its loss times its features, so that clipping needs two products and no vector.
type linearLearner struct {
	Linear
	n       int // parameters
	sum     stepSum[float64]
	scratch []float64 // slopes, norms and factors of a batch
	slopes  []float64
	rows    data.Rows
	batch   []int
	shift   []float64
	vector  []float64 // exact sums: one example's gradient
	every   []int
	addTo   func(dst, factors []float64)
	pause   pause
	_       [128]byte // the next worker's fields lie on other cache lines
}

// fits says whether a client's rows are of as many features as the model has.
func (l *linearLearner) fits(theta []float64, c *data.Client) bool {
	return len(c.X) == len(c.Y)*l.Features && len(theta) == l.n
}

// ready says why so many of a client's rows cannot be read now.
func (l *linearLearner) ready(theta []float64, c *data.Client, rows int) error {
	if !l.fits(theta, c) {
		return l.unfit(theta, c)
	}
	return l.pause.after(rows*l.Features, l.stopped)
}

func (l *linearLearner) unfit(theta []float64, c *data.Client) error {
	return fmt.Errorf("%d values in %d rows and %d parameters for a linear model of %d features and %d parameters",
		len(c.X), len(c.Y), len(theta), l.Features, l.n)
}

func (l *linearLearner) Loss(theta []float64, c *data.Client) (float64, error) {
	if !l.Linear.Loss.OfClasses() {
		if err := l.ready(theta, c, len(c.Y)); err != nil {
			return 0, err
		}
		return math.Sqrt(l.SquaredError(theta, c.Rows)), nil
	}
	loss, _, err := l.Judge(theta, c)
	return loss, err
}

func (l *linearLearner) Judge(theta []float64, c *data.Client) (loss float64, wrong int, err error) {
	if err := l.ready(theta, c, len(c.Y)); err != nil {
		return 0, 0, err
	}
	l.rows = c.Rows
	for i, y := range c.Y {
		e, missed := l.judge(l.output(theta, l.row(i)), y)
		loss += e
		if missed {
			wrong++
		}
	}
	return loss / float64(max(1, len(c.Y))), wrong, nil
}

func (l *linearLearner) Losses(dst, theta []float64, c *data.Client) error {
	if err := l.ready(theta, c, len(c.Y)); err != nil {
		return err
	}
	l.rows = c.Rows
	for i, y := range c.Y {
		dst[i], _ = l.judge(l.output(theta, l.row(i)), y)
	}
	return nil
}

func (l *linearLearner) Outputs(dst, theta []float64, c *data.Client) ([]float64, int, error) {
	if err := l.ready(theta, c, len(c.Y)); err != nil {
		return dst, 1, err
	}
	l.rows = c.Rows
	for i := range c.Y {
		dst = append(dst, l.output(theta, l.row(i)))
	}
	return dst, 1, nil
}

func (l *linearLearner) Train(theta []float64, c *data.Client, p *Pass) error {
	return p.Descend(l, theta, c)
}

// row is the features of row i.
func (l *linearLearner) row(i int) []float64 { return l.rows.X[i*l.Features : (i+1)*l.Features] }
