package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
)

// releasedWhole is what a step of a rule releases of a batch, with noise that is the same every
// time, and what is kept of it for the next one. It says how long a lattice step is.
func releasedWhole[F Float](t *testing.T, e *Engine[F], theta []F, ex Examples[F], order []int, rule mech.StepRule) (sum []int64, state mech.ClipState, step float64) {
	t.Helper()
	paid := sampledSteps(t, rule, stream("batches"), mech.Randomness{Exact: mech.NewEntropy(stream("noise"))})
	if err := paid.Blank(); err != nil {
		t.Fatal(err)
	}
	s, err := paid.PrepareSum(nil, len(theta))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Weighted() {
		t.Fatalf("a sum with noise %v is not of whole numbers", rule.Noise)
	}
	step = s.Lattice().Step
	if err := e.WholeSum(s, theta, ex, order); err != nil {
		t.Fatal(err)
	}
	sum = make([]int64, len(theta))
	if err := paid.Release(sum, s); err != nil {
		t.Fatal(err)
	}
	paid.Save(&state)
	return sum, state, step
}

// wholeSum is the integer sum of a batch's clipped gradients: what is released, less the noise,
// which is all that an empty batch releases.
func wholeSum[F Float](t *testing.T, e *Engine[F], theta []F, ex Examples[F], order []int, rule mech.StepRule) (sum []int64, step float64) {
	t.Helper()
	sum, _, step = releasedWhole(t, e, theta, ex, order, rule)
	noise, _, _ := releasedWhole(t, e, theta, ex, nil, rule)
	for i, v := range noise {
		sum[i] -= v
	}
	return sum, step
}

// TestWholeSums: what a row adds to a sum is the same to the last bit whatever rows are taken
// with it, in whatever order and by however many workers; it is no longer than the clip, by
// integers, and the row's own gradient, clipped.
func TestWholeSums(t *testing.T) {
	wide := map[string]struct {
		in     Shape
		layers []Layer
	}{
		"long dots":   {Shape{1, 1, 130}, []Layer{{Kind: "linear", Units: 1}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
		"wide":        {Shape{1, 1, 40}, []Layer{{Kind: "linear", Units: 150}, {Kind: "relu"}, {Kind: "linear", Units: 70}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
		"tiny places": {Shape{1, 1, 2}, []Layer{{Kind: "embedding", Vocabulary: 4, Units: 2}, {Kind: "linear", Units: 2, Each: true}, {Kind: "linear", Units: 12}, {Kind: "tanh"}, {Kind: "linear", Units: 2}}},
		"many steps":  {Shape{1, 1, 300}, []Layer{{Kind: "linear", Units: 20, NoBias: true}, {Kind: "relu"}, {Kind: "linear", Units: 2}}},
	}
	tried := 0
	for _, networks := range []map[string]struct {
		in     Shape
		layers []Layer
	}{small, wide} {
		for name, n := range networks {
			t.Run(name, func(t *testing.T) {
				if wholeSums[float32](t, n.in, n.layers) && wholeSums[float64](t, n.in, n.layers) {
					tried++
				}
			})
		}
	}
	if tried < 35 {

		t.Errorf("%d networks alone add whole numbers", tried)
	}
}

func wholeSums[F Float](t *testing.T, in Shape, layers []Layer) bool {
	one, theta := newEngine(t, in, layers, crossEntropy[F]{}, 1)
	if !one.canAddWhole() {
		return false
	}
	two, _ := newEngine(t, in, layers, crossEntropy[F]{}, 3)
	const rows = 80 // more than from where on weights are turned
	ex, order := examples(one, rows)
	all, own := make([]int64, len(theta)), make([]F, len(theta))
	norms := make([]float64, rows)
	for k := range rows {
		if _, err := one.Gradient(own, theta, ex, []int{k}); err != nil {
			t.Fatal(err)
		}
		for _, v := range own {
			norms[k] += float64(v) * float64(v)
		}
		norms[k] = math.Sqrt(norms[k])
	}
	clip := median(slices.Clone(norms))
	rule := mech.StepRule{Clip: clip, Noise: 0.7, Sampling: event.Poisson, Rate: 1}
	part := order[10:17]
	ofPart := make([]int64, len(theta))
	for _, k := range order {
		sum, step := wholeSum(t, one, theta, ex, []int{k}, rule)
		var square float64
		for i, v := range sum {
			square += float64(v) * float64(v)
			all[i] += v
			if slices.Contains(part, k) {
				ofPart[i] += v
			}
		}
		length := math.Sqrt(square) * step
		if length > clip || length < min(clip, norms[k])*(1-1e-5)-step*math.Sqrt(float64(len(theta))) {
			t.Fatalf("row %d of norm %v adds %v, clipped to %v", k, norms[k], length, clip)
		}
		if _, err := one.Gradient(own, theta, ex, []int{k}); err != nil {
			t.Fatal(err)
		}
		for i, v := range own {
			want := float64(v) * min(1, clip/norms[k])
			if off := float64(sum[i])*step - want; math.Abs(off) > 2*step+2e-6*clip {
				t.Fatalf("row %d, value %d: %v, want %v", k, i, float64(sum[i])*step, want)
			}
		}
	}
	turned := slices.Clone(order)
	slices.Reverse(turned)
	for what, c := range map[string]struct {
		e     *Engine[F]
		order []int
		want  []int64
	}{
		"all rows": {one, order, all}, "by three workers": {two, order, all}, "in another order": {one, turned, all}, "seven rows": {one, part, ofPart},
	} {
		if got, _ := wholeSum(t, c.e, theta, ex, c.order, rule); !slices.Equal(got, c.want) {
			t.Errorf("%T, %s: the sum is not that of rows alone", own[0], what)
		}
	}
	withoutAVX512(func() {
		if got, _ := wholeSum(t, one, theta, ex, order, rule); !slices.Equal(got, all) {
			t.Errorf("%T, without AVX-512: the sum is not that of rows alone", own[0])
		}
	})
	return true
}

// TestSquaresThatAreLost: inputs whose squares are no numbers, before slopes that make up for
// it, are clipped nevertheless.
func TestSquaresThatAreLost(t *testing.T) {
	for _, units := range []int{1, 3} {
		e, theta := newEngine(t, Shape{1, 1, 2}, []Layer{{Kind: "linear", Units: units, NoBias: true}}, halfSquaredError[float64]{}, 1)
		ex := Examples[float64]{X: []float64{0x1p-540, -0x1p-541}, Targets: slices.Repeat([]float64{0x1p509}, units)}
		rule := mech.StepRule{Clip: 0x1p-45, Noise: 1, Sampling: event.Poisson, Rate: 1}
		sum, step := wholeSum(t, e, theta, ex, []int{0}, rule)
		var square float64
		for _, v := range sum {
			square += float64(v) * step * float64(v) * step
		}
		if length := math.Sqrt(square); length > rule.Clip || length == 0 {
			t.Errorf("%d units: the row adds %v, clipped to %v", units, length, rule.Clip)
		}
	}
}

// TestExactStepsAreTaken: what a learner releases is the clipped sum, whether rows are added by
// their norms or one by one, as where noise is too small for whole numbers.
func TestExactStepsAreTaken(t *testing.T) {
	m, c := smallPictures(t, 3, 50)
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, stream("start"))
	l := learnerOf(t, m)
	batch := []int{4, 49, 0, 17, 30, 8, 9, 9, 21}
	want := oneByOne(t, l, theta, c, batch, 0.4, nil)
	for _, noise := range []float64{1e-6, 1e-9} {
		for _, rule := range []mech.ClipRule{{}, {Signal: mech.SignalCount, GradientNoise: 1.01, Quantile: 0.5}, {Signal: mech.SignalDirections, GradientNoise: 1.01}} {
			steps := sampledSteps(t, mech.StepRule{Clip: 0.4, Noise: noise, Clipping: rule, Sampling: event.Poisson, Rate: 1}, stream("batches"), mech.Randomness{Exact: mech.SystemEntropy()})
			got := make([]float64, len(theta))
			if err := l.Gradient(got, theta, c, batch, begin(t, Step{Paid: steps, Divisor: 1})); err != nil {
				t.Fatal(err)
			}
			for j := range want {
				if math.Abs(got[j]-want[j]) > 4e-6 {
					t.Fatalf("noise %v, rule %d: coordinate %d is %v, want %v", noise, rule.Signal, j, got[j], want[j])
				}
			}
		}
	}
}

// TestDirectionsOfWholeSums: a rule that goes by directions sums those of the rows beyond the
// clip alone, each of length 1.
func TestDirectionsOfWholeSums(t *testing.T) {
	n := small["residual"]
	e, theta := newEngine(t, n.in, n.layers, crossEntropy[float64]{}, 1)
	ex, order := examples(e, 9)
	own, norms := make([]float64, len(theta)), make([]float64, len(order))
	for k := range order {
		if _, err := e.Gradient(own, theta, ex, order[k:k+1]); err != nil {
			t.Fatal(err)
		}
		norms[k], _ = mech.Norm(own)
	}
	clip := 1.01 * median(slices.Clone(norms)) // no row's own
	rule := mech.StepRule{Clip: clip, Noise: 0.7, Clipping: mech.ClipRule{Signal: mech.SignalDirections, GradientNoise: 1.01}, Sampling: event.Poisson, Rate: 1}
	_, got, _ := releasedWhole(t, e, theta, ex, order, rule)
	_, noise, _ := releasedWhole(t, e, theta, ex, nil, rule)
	want := make([]float64, len(theta))
	for k, norm := range norms {
		if norm <= clip {
			continue
		}
		if _, err := e.Gradient(own, theta, ex, order[k:k+1]); err != nil {
			t.Fatal(err)
		}
		for i, v := range own {
			want[i] += v / norm
		}
	}
	for i := range want {
		if off := float64(got.Direction[i]) - float64(noise.Direction[i]) - want[i]; math.Abs(off) > 1e-4 {
			t.Errorf("value %d is %v, want %v", i, got.Direction[i]-noise.Direction[i], want[i])
		}
	}
}

// TestPlacesThatCancel: a norm on places is that of their sum, also where they nearly cancel and
// others allow for rounding; and so is that of words' vectors.
func TestPlacesThatCancel(t *testing.T) {
	e, theta := newEngine(t, Shape{1, 1, 2}, []Layer{{Kind: "embedding", Vocabulary: 4, Units: 6}, {Kind: "linear", Units: 5, Each: true}, {Kind: "linear", Units: 3}}, crossEntropy[float32]{}, 1)
	last := theta[4*6+6*5+5:][:2*5*3]
	for i, v := range last[:15] {
		last[15+i] = -v * (1 - 0x1p-10)
	}
	for i := range last {
		last[i] *= 100 // what cancels is most of it
	}
	ex, _ := examples(e, 1)
	ex.X[1] = ex.X[0]
	own := make([]float32, len(theta))
	if _, err := e.Gradient(own, theta, ex, []int{0}); err != nil {
		t.Fatal(err)
	}
	var places, all float64
	for i, v := range own {
		if all += float64(v) * float64(v); i >= 24 && i < 24+30+5 {
			places += float64(v) * float64(v)
		}
	}
	clip := math.Sqrt(all) / 2
	sum, step := wholeSum(t, e, theta, ex, []int{0}, mech.StepRule{Clip: clip, Noise: 0.7, Sampling: event.Poisson, Rate: 1})
	var square float64
	for _, v := range sum {
		square += float64(v) * float64(v)
	}
	if length := math.Sqrt(square) * step; length > clip || length < clip*(1-3e-6) || places < all/1000 {
		t.Errorf("a row of norm %v, %v of it on places, adds %v, clipped to %v", math.Sqrt(all), math.Sqrt(places), length, clip)
	}
}

// TestEveryLayerForms: layers that can form gradients are told to, wherever they are, while whole
// numbers are added, and then no more.
func TestEveryLayerForms(t *testing.T) {
	told := 0
	var look func(c *chainCell[float64], on bool)
	look = func(c *chainCell[float64], on bool) {
		for _, one := range c.cells {
			switch one := one.(type) {
			case *placesCell[float64]:
				if told++; one.forms != on {
					t.Errorf("places form: %v", one.forms)
				}
			case *wordsCell[float64]:
				if told++; one.forms != on {
					t.Errorf("words form: %v", one.forms)
				}
				look(one.inner, on)
			case *residualCell[float64]:
				look(one.inner, on)
				if one.shortcut != nil {
					look(one.shortcut, on)
				}
			}
		}
	}
	for _, n := range small {
		e, _ := newEngine(t, n.in, n.layers, crossEntropy[float64]{}, 1)
		for _, on := range []bool{true, false} {
			e.formsWhole(on)
			look(e.work[0].cell, on)
		}
	}
	if told < 10 {
		t.Errorf("%d layers were told", told)
	}
}
