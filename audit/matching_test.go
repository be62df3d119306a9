package audit

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// small is a network that the tests can afford to differentiate numerically.
func small() Network {
	return Network{
		Name: "small", Input: model.Shape{Height: 5, Width: 4, Channels: 1}, Spread: 0.5,
		Layers: []model.Layer{
			{Kind: "conv", Channels: 3, Kernel: 3, Padding: 1}, {Kind: "sigmoid"},
			{Kind: "mean-pool", Kernel: 2, Stride: 1},
			{Kind: "linear", Units: 7}, {Kind: "tanh"}, {Kind: "linear", Units: 4},
		},
	}
}

// sent is one example and what its client sends.
func sent(t *testing.T, n Network, loss string, nu float64, sample int) (x []float64, label int, r Release, v *Victim) {
	t.Helper()
	v, err := NewVictim(n, loss, 0.1, uint64(sample+1))
	if err != nil {
		t.Fatal(err)
	}
	family := rng.NewFamily(7, "test pictures")
	s := family.Stream(0, sample)
	x = make([]float64, n.Input.Len())
	for i := range x {
		x[i] = s.Float64()
	}
	label = s.Below(v.net.Output().Len())
	r, err = v.Send(x, label, Sanitiser{Multiplier: nu}, s)
	if err != nil {
		t.Fatal(err)
	}
	return x, label, r, v
}

func normals(seed uint64, n int) []float64 {
	family := rng.NewFamily(seed, "test dummies")
	s := family.Stream(0, 0)
	out := make([]float64, n)
	for i := range out {
		out[i] = s.Normal()
	}
	return out
}

// derivativeError is the largest difference between the matcher's derivative and
// a central difference of its value, over the derivative's length.
func derivativeError(t *testing.T, m *matcher, at []float64) float64 {
	t.Helper()
	gradient := make([]float64, len(at))
	if _, err := m.joint(at, gradient); err != nil {
		t.Fatal(err)
	}
	const h = 1e-5
	worst, scratch := 0.0, make([]float64, len(at))
	for i := range at {
		old := at[i]
		at[i] = old + h
		up, err := m.joint(at, scratch)
		if err != nil {
			t.Fatal(err)
		}
		at[i] = old - h
		down, err := m.joint(at, scratch)
		if err != nil {
			t.Fatal(err)
		}
		at[i] = old
		worst = max(worst, math.Abs((up-down)/(2*h)-gradient[i]))
	}
	return worst / math.Sqrt(squared(gradient))
}

// TestMatchingDerivative: the derivative of the matching loss, taken through two
// input gradients, is that of its values; a planted error of 1 % is seen.
func TestMatchingDerivative(t *testing.T) {
	const tolerance = 1e-6
	for _, loss := range []string{"cross-entropy", "squared-error", "rmse"} {
		_, _, r, _ := sent(t, small(), loss, 0.1, 0)
		g, err := r.Gradient()
		if err != nil {
			t.Fatal(err)
		}
		m, err := newMatcher(small(), loss, r.Before, g)
		if err != nil {
			t.Fatal(err)
		}
		at := normals(3, m.inputs+m.outputs)
		if got := derivativeError(t, m, at); !(got < tolerance) {
			t.Errorf("%s: the derivative is off by %.2g", loss, got)
		}
		m.weight *= 1.01 // values and derivative grow alike: still right
		if got := derivativeError(t, m, at); !(got < tolerance) {
			t.Errorf("%s: the derivative of a scaled loss is off by %.2g", loss, got)
		}
		m.loss = skewed{m.loss}
		if got := derivativeError(t, m, at); got < tolerance {
			t.Errorf("%s: an error of 1 %% in the label's derivative is not seen", loss)
		}
	}
}

// skewed is a planted bug: the target's derivative is 1 % too large.
type skewed struct{ residual }

func (s skewed) pull(dz, out, z, q []float64) {
	s.residual.pull(dz, out, z, q)
	for i := range dz {
		dz[i] *= 1.01
	}
}

// TestMatchIsZeroAtTheTruth: the true example has the observed gradient.
func TestMatchIsZeroAtTheTruth(t *testing.T) {
	x, label, r, _ := sent(t, small(), "squared-error", 0, 1)
	g, _ := r.Gradient()
	m, err := newMatcher(small(), "squared-error", r.Before, g)
	if err != nil {
		t.Fatal(err)
	}
	z := make([]float64, m.outputs)
	z[label] = 1
	value, err := m.value(x, z, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !(value < 1e-20) {
		t.Errorf("the match of the true example is %v", value)
	}
	z[label] = 0.9
	if value, _ = m.value(x, z, nil, nil); value < 1e-6 {
		t.Errorf("the match of another target is %v", value)
	}
}

func TestMatcherRefusesWhatDoesNotFit(t *testing.T) {
	_, _, r, _ := sent(t, small(), "cross-entropy", 0, 0)
	g, _ := r.Gradient()
	zero := make([]float64, len(g))
	for what, err := range map[string]error{
		"a short gradient": second(newMatcher(small(), "cross-entropy", r.Before, g[1:])),
		"no gradient":      second(newMatcher(small(), "cross-entropy", r.Before, zero)),
		"another loss":     second(newMatcher(small(), "hinge", r.Before, g)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func second[T any](_ T, err error) error { return err }
