package audit

import (
	"context"
	"flag"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

var soak = flag.Bool("soak", false, "run the long tests too")

// drawn is a picture with a stroke on a white ground, as handwriting has.
func drawn(n Network, sample int) []float64 {
	h, w := n.Input.Height, n.Input.Width
	x := make([]float64, h*w)
	family := rng.NewFamily(11, "test strokes")
	s := family.Stream(0, sample)
	cy, cx := 0.3+0.4*s.Float64(), 0.3+0.4*s.Float64()
	turn := 2 * math.Pi * s.Float64()
	for i := range h {
		for j := range w {
			y, z := float64(i)/float64(h)-cy, float64(j)/float64(w)-cx
			along, across := y*math.Cos(turn)+z*math.Sin(turn), z*math.Cos(turn)-y*math.Sin(turn)
			ring := math.Abs(math.Hypot(along/1.5, across) - 0.2)
			x[i*w+j] = 1 - math.Exp(-ring*ring/0.004)
		}
	}
	return x
}

// attacked sends a drawn picture through a network.
func attacked(t *testing.T, n Network, nu float64, sample int) (x []float64, label int, r Release) {
	t.Helper()
	v, err := NewVictim(n, "cross-entropy", 0.1, uint64(sample+1))
	if err != nil {
		t.Fatal(err)
	}
	x = drawn(n, sample)
	family := rng.NewFamily(13, "test noise")
	label = (3 * sample) % v.net.Output().Len()
	if r, err = v.Send(x, label, Sanitiser{Multiplier: nu}, family.Stream(0, sample)); err != nil {
		t.Fatal(err)
	}
	return x, label, r
}

func quality(t *testing.T, n Network, x []float64, got Recovered) Quality {
	t.Helper()
	q, err := Judge(x, got.Picture, n.Input.Height, n.Input.Width)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestDenseFirstShowsThePicture: without noise the closed form is exact, and equal
// to a column of the weights' gradient over its bias entry; at nu = 1, where DLG
// fails, the picture is still there.
func TestDenseFirstShowsThePicture(t *testing.T) {
	n := DenseFirst(62)
	closed := ClosedForm{Loss: "cross-entropy"}
	for sample := range 3 {
		x, label, r := attacked(t, n, 0, sample)
		got, err := closed.Attack(context.Background(), n, r.Update)
		if err != nil {
			t.Fatal(err)
		}
		if q := quality(t, n, x, got); q.PSNR < 90 || got.Label != label || !got.Scaled {
			t.Errorf("without noise: %+v, label %d of %d", q, got.Label, label)
		}
		g, _ := r.Gradient()
		bias := g[784*128 : 785*128]
		best := 0
		for j, b := range bias {
			if math.Abs(b) > math.Abs(bias[best]) {
				best = j
			}
		}
		for i := range x {
			near(t, "column over bias", g[i*128+best]/bias[best], got.Picture[i], 1e-6)
		}
		x, _, r = attacked(t, n, 1, sample)
		if got, err = closed.Attack(context.Background(), n, r.Update); err != nil {
			t.Fatal(err)
		}
		if q := quality(t, n, x, got); q.PSNR < 14 || q.SSIM < 0.6 {
			t.Errorf("at nu 1: %+v", q)
		}
		// Much more noise must hide it: the figures above mean something.
		x, _, r = attacked(t, n, 100, sample)
		if got, err = closed.Attack(context.Background(), n, r.Update); err != nil {
			t.Fatal(err)
		}
		if q := quality(t, n, x, got); q.SSIM > 0.3 {
			t.Errorf("at nu 100: %+v", q)
		}
	}
}

// TestLeadingIsTheLargestSingularTriple on matrices of both shapes, against the
// power method.
func TestLeadingIsTheLargestSingularTriple(t *testing.T) {
	for _, shape := range [][2]int{{9, 4}, {4, 9}, {7, 1}, {1, 7}, {5, 5}} {
		l := denseLayer{in: shape[0], out: shape[1]}
		m := l.matrix(normals(uint64(10*shape[0]+shape[1]), shape[0]*shape[1]))
		left, right, value, err := leading(m)
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float64, m.Cols)
		for i := range v {
			v[i] = 1 + float64(i)
		}
		var sigma float64
		for range 2000 {
			u := make([]float64, m.Rows)
			for i := range u {
				u[i] = dot(m.Data[i*m.Cols:(i+1)*m.Cols], v)
			}
			clear(v)
			for i := range u {
				add(v, u[i], m.Data[i*m.Cols:(i+1)*m.Cols])
			}
			sigma = math.Sqrt(math.Sqrt(squared(v)))
			norm := math.Sqrt(squared(v))
			for i := range v {
				v[i] /= norm
			}
		}
		near(t, "singular value", value, sigma, 1e-9*sigma)
		near(t, "right vector", math.Abs(dot(v, right)), 1, 1e-9)
		near(t, "length of the left vector", squared(left), 1, 1e-12)
	}
	if _, _, _, err := leading((denseLayer{in: 2, out: 2}).matrix(make([]float64, 4))); err == nil {
		t.Error("a gradient of 0 shows something")
	}
}

// TestWithoutBiasTheScaleIsUnknown, and said to be.
func TestWithoutBiasTheScaleIsUnknown(t *testing.T) {
	n := DenseFirst(10)
	n.Layers = append([]model.Layer(nil), n.Layers...)
	n.Layers[0].NoBias = true
	x, _, r := attacked(t, n, 0, 1)
	got, err := ClosedForm{Loss: "cross-entropy"}.Attack(context.Background(), n, r.Update)
	if err != nil {
		t.Fatal(err)
	}
	if got.Scaled {
		t.Error("without bias the length is not known")
	}
	near(t, "cosine", Cosine(x, got.Picture), 1, 1e-9)
}

// TestFeaturesBehindConvolutions: the closed form finds the linear layer's input,
// and the least squares a picture near the original.
func TestFeaturesBehindConvolutions(t *testing.T) {
	n := LeNet(10)
	for _, c := range []struct {
		nu, cosine, ssim float64
	}{{0, 1 - 1e-9, 0.8}, {0.1, 0.999, 0.5}, {1, 0.9, -1}} {
		x, label, r := attacked(t, n, c.nu, 0)
		got, err := ClosedForm{Loss: "cross-entropy", Evaluations: 240}.Attack(context.Background(), n, r.Update)
		if err != nil {
			t.Fatal(err)
		}
		truth, err := Features(n, r.Before, x)
		if err != nil {
			t.Fatal(err)
		}
		if cosine := Cosine(truth, got.Features); cosine < c.cosine {
			t.Errorf("nu %v: features have the cosine %v", c.nu, cosine)
		}
		if q := quality(t, n, x, got); q.SSIM < c.ssim || got.Label != label {
			t.Errorf("nu %v: %+v, label %d of %d", c.nu, q, got.Label, label)
		}
	}
}

// TestLinearLayersInsideOthers are not taken for the first one.
func TestLinearLayersInsideOthers(t *testing.T) {
	n := Network{
		Input: model.Shape{Height: 1, Width: 1, Channels: 12},
		Layers: []model.Layer{
			{Kind: "residual", Inner: []model.Layer{{Kind: "linear", Units: 12}, {Kind: "tanh"}}},
			{Kind: "linear", Units: 9}, {Kind: "sigmoid"}, {Kind: "linear", Units: 4},
		},
	}
	x, label, r, _ := sent(t, n, "cross-entropy", 0, 0)
	got, err := ClosedForm{Loss: "cross-entropy", Evaluations: 30}.Attack(context.Background(), n, r.Update)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := Features(n, r.Before, x)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "cosine of the features", Cosine(truth, got.Features), 1, 1e-9)
	if got.Label != label {
		t.Errorf("label %d, want %d", got.Label, label)
	}
}

// TestFeatureFitDerivative: with the line's best point held fixed, the gradient is
// that of the whole cost; a planted bug in the prior is seen.
func TestFeatureFitDerivative(t *testing.T) {
	n := small()
	x, _, r, _ := sent(t, n, "cross-entropy", 0.5, 0)
	g, _ := r.Gradient()
	net, _ := n.build()
	input, err := denseLayers(net.Views())[0].recover(g)
	if err != nil {
		t.Fatal(err)
	}
	engine, prefix, err := squaredEngine(Network{Input: n.Input, Layers: n.Layers[:3]})
	if err != nil {
		t.Fatal(err)
	}
	k := prefix.Output().Len()
	f := &featureFit{
		engine: engine, theta: r.Before[:prefix.Parameters()], line: input.line, shape: n.Input, weight: 3,
		features: make([]float64, k), target: make([]float64, k),
	}
	x[0], x[1] = 1.3, -0.2 // outside the range: the prior has something to say
	gradient, scratch := make([]float64, len(x)), make([]float64, len(x))
	if _, err := f.value(x, gradient); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i := range x {
		const h = 1e-6
		x[i] += h
		up, _ := f.value(x, scratch)
		x[i] -= 2 * h
		down, _ := f.value(x, scratch)
		x[i] += h
		near(t, "derivative", gradient[i], (up-down)/(2*h), 1e-4)
		if math.Abs(gradient[i]-edgeCost*0.01-(up-down)/(2*h)) > 1e-4 {
			wrong++
		}
	}
	if wrong != len(x) {
		t.Errorf("an error of a hundredth of an edge is seen at %d of %d pixels", wrong, len(x))
	}
}

func TestClosedFormRefusesWhatDoesNotFit(t *testing.T) {
	n := DenseFirst(10)
	_, _, r := attacked(t, n, 0, 0)
	convOnly := Network{Input: grey, Layers: []model.Layer{{Kind: "conv", Channels: 2, Kernel: 3}}}
	still := r.Update
	still.After = still.Before
	for what, err := range map[string]error{
		"no linear layer":  second(ClosedForm{}.Attack(context.Background(), convOnly, Update{make([]float64, 20), make([]float64, 20), 1, 1})),
		"another network":  second(ClosedForm{}.Attack(context.Background(), DenseFirst(11), r.Update)),
		"an update of 0":   second(ClosedForm{}.Attack(context.Background(), n, still)),
		"no evaluations":   second(ClosedForm{}.Attack(context.Background(), LeNet(10), zeroed(t, LeNet(10)))),
		"a short picture":  second(Features(n, r.Before, make([]float64, 3))),
		"short parameters": second(Features(LeNet(10), r.Before[:5], make([]float64, 784))),
	} {
		if err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func zeroed(t *testing.T, n Network) Update {
	t.Helper()
	_, _, r := attacked(t, n, 0, 0)
	return r.Update
}
