package audit

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// DLG is deep leakage from gradients (Zhu, Liu and Han 2019): find a picture and
// a label whose gradient is the observed one.
type DLG struct {
	Loss        string
	Evaluations int    // of the matching loss, a restart
	Restarts    int    // dummies drawn afresh at most; the best match counts
	Seed        uint64 // of the dummies
	// Floor is the match that the true example would have because of the noise:
	// NoiseFloor. A dummy that reaches it cannot be told from the true one, so no
	// further one is tried.
	Floor float64
}

// NoiseFloor is the match of the true example under noise of multiplier nu: the
// noise's squared length is about nu^2 times the update's, and both make up what is
// observed.
func NoiseFloor(nu float64) float64 { return nu * nu / (1 + nu*nu) }

// The match at which a descent ends, and the one at which restarts do, beside the
// floor.
const (
	exactMatch = 1e-10
	goodMatch  = 1e-6
)

// Recovered is what an attack made of an update.
type Recovered struct {
	Picture []float64 // or row; not clipped to a range
	Label   int       // -1: the attack does not tell
	// Match is the squared distance of the gradients over the observed one's
	// squared length: all that DLG can judge its result by.
	Match       float64
	Evaluations int
	// Features is the closed form's: the input of the first linear layer. Scaled
	// says that its length is known too, and not only its direction.
	Features []float64
	Scaled   bool
}

// Attack recovers the example behind an update.
func (a DLG) Attack(ctx context.Context, n Network, u Update) (Recovered, error) {
	if a.Evaluations < 1 || a.Restarts < 1 {
		return Recovered{}, fmt.Errorf("dlg: %d evaluations and %d restarts; allowed: 1 or more", a.Evaluations, a.Restarts)
	}
	gradient, err := u.Gradient()
	if err != nil {
		return Recovered{}, err
	}
	m, err := newMatcher(n, a.Loss, u.Before, gradient)
	if err != nil {
		return Recovered{}, err
	}
	best := Recovered{Label: -1, Match: math.Inf(1), Scaled: true}
	family := rng.NewFamily(a.Seed, "audit: dummies")
	for restart := 0; restart < a.Restarts && best.Match > 1.02*a.Floor+goodMatch; restart++ {
		s := family.Stream(restart, 0)
		start := make([]float64, m.inputs+m.outputs)
		for i := range start {
			start[i] = s.Normal() // picture and label alike, as the authors draw them
		}
		found, match, err := minimise(ctx, m.joint, start, a.Evaluations, exactMatch)
		if err != nil {
			return Recovered{}, fmt.Errorf("dlg, restart %d: %w", restart, err)
		}
		if match < best.Match {
			best.Picture, best.Match, best.Label = found[:m.inputs], match, floats.MaxIdx(found[m.inputs:])
		}
	}
	if best.Picture == nil {
		return Recovered{}, fmt.Errorf("dlg: the matching loss is not a number at any start")
	}
	best.Evaluations = m.evaluations
	return best, nil
}

// joint is the matching loss of picture and target in one vector.
func (m *matcher) joint(xz, gradient []float64) (float64, error) {
	n := m.inputs
	return m.value(xz[:n], xz[n:], gradient[:n], gradient[n:])
}

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
