package audit

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/model"
)

// matcher is the loss that deep leakage from gradients makes small: the squared
// distance between the gradient of a dummy example and the observed one, over the
// observed one's squared length. It is not safe for concurrent use.
//
// A dummy is a picture x and the free variables z of its target. With g(x, z) the
// dummy's gradient and v = g - g* held fixed,
//
//	d/dx |g - g*|^2 = 2 d/dx <grad_theta L, v> = 2 |v| d/dt grad_x L(theta + t v/|v|)
//
// at t = 0, because second derivatives commute: a central difference of two input
// gradients, no second-order engine. In the same way d/dz follows from the
// derivative of the outputs along v.
type matcher struct {
	engine  *model.Engine[float64]
	loss    residual
	theta   []float64
	target  []float64 // observed gradient
	weight  float64   // 1/|target|^2
	reach   float64   // how far theta is moved to both sides
	inputs  int
	outputs int

	grad, moved      []float64
	out, d, trick    []float64
	plus, minus      []float64 // input gradients
	outPlus, outLess []float64
	evaluations      int
}

// relativeReach is the length of the central difference's step over |theta|. Its
// error is about reach^2 from the third derivative and 1e-16/reach from rounding.
const relativeReach = 2e-6

func newMatcher(n Network, loss string, theta, gradient []float64) (*matcher, error) {
	engine, net, err := squaredEngine(n)
	if err != nil {
		return nil, err
	}
	if len(theta) != net.Parameters() || len(gradient) != len(theta) {
		return nil, fmt.Errorf("audit: %d parameters and a gradient of %d for a network of %d", len(theta), len(gradient), net.Parameters())
	}
	res, err := newResidual(loss)
	if err != nil {
		return nil, err
	}
	in, out, p := net.Input().Len(), net.Output().Len(), len(theta)
	m := &matcher{
		engine: engine, loss: res, theta: theta, target: gradient, inputs: in, outputs: out,
		weight: 1 / max(squared(gradient), math.SmallestNonzeroFloat64),
		reach:  relativeReach * (1 + math.Sqrt(squared(theta))),
		grad:   make([]float64, p), moved: make([]float64, p),
		out: make([]float64, out), d: make([]float64, out), trick: make([]float64, out),
		plus: make([]float64, in), minus: make([]float64, in),
		outPlus: make([]float64, out), outLess: make([]float64, out),
	}
	if math.IsInf(m.weight, 0) {
		return nil, fmt.Errorf("audit: the observed gradient is 0: there is nothing to match")
	}
	return m, nil
}

// seen runs the network at theta and makes the engine's squared error behave as
// the attack's loss: its output gradient is 2 (out - t)/n, so the target t = out -
// n d/2 gives d.
func (m *matcher) seen(theta, x, z, out []float64) (model.Examples[float64], error) {
	ex := model.Examples[float64]{X: x}
	if err := m.engine.Outputs(out, theta, ex, one); err != nil {
		return ex, err
	}
	m.loss.at(m.d, out, z)
	for i, d := range m.d {
		m.trick[i] = out[i] - float64(m.outputs)/2*d
	}
	ex.Targets = m.trick
	return ex, nil
}

// one names the only row of a batch of one.
var one = []int{0}

// value is the matching loss of a dummy (x, z) and, if dx is not nil, its
// gradient.
func (m *matcher) value(x, z, dx, dz []float64) (float64, error) {
	m.evaluations++
	ex, err := m.seen(m.theta, x, z, m.out)
	if err != nil {
		return 0, err
	}
	if _, err := m.engine.Gradient(m.grad, m.theta, ex, one); err != nil {
		return 0, err
	}
	kernel.Sub(m.grad, m.grad, m.target)
	distance := squared(m.grad)
	if dx == nil {
		return distance * m.weight, nil
	}
	length := math.Sqrt(distance)
	if length == 0 {
		clear(dx)
		clear(dz)
		return 0, nil
	}
	if err := m.side(m.reach/length, x, z, m.outPlus, m.plus); err != nil {
		return 0, err
	}
	if err := m.side(-m.reach/length, x, z, m.outLess, m.minus); err != nil {
		return 0, err
	}
	scale := m.weight * 2 * length / (2 * m.reach)
	for i := range dx {
		dx[i] = scale * (m.plus[i] - m.minus[i])
	}
	for i := range m.outPlus { // the outputs' derivative along v
		m.outPlus[i] = scale * (m.outPlus[i] - m.outLess[i])
	}
	m.loss.pull(dz, m.out, z, m.outPlus)
	return distance * m.weight, nil
}

// side is the output and the input gradient at theta + t*v.
func (m *matcher) side(t float64, x, z, out, gradient []float64) error {
	copy(m.moved, m.theta)
	kernel.Axpy(t, m.grad, m.moved)
	ex, err := m.seen(m.moved, x, z, out)
	if err != nil {
		return err
	}
	_, err = m.engine.InputGradient(gradient, m.moved, ex, 0)
	return err
}
