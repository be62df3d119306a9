package model

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestNormsAgainstNaive writes both norms out, place by place, with factors and
// constants of their own.
func TestNormsAgainstNaive(t *testing.T) {
	in := Shape{3, 5, 12}
	for name, c := range map[string]struct {
		layer Layer
		same  func(place, channel, otherPlace, otherChannel int) bool // are normalised together
	}{
		"4 groups":     {Layer{Kind: "group-norm", Groups: 4}, func(_, a, _, b int) bool { return a/3 == b/3 }},
		"usual groups": {Layer{Kind: "group-norm"}, func(_, a, _, b int) bool { return a == b }},
		"one group":    {Layer{Kind: "group-norm", Groups: 1}, func(_, _, _, _ int) bool { return true }},
		"layer norm":   {Layer{Kind: "layer-norm"}, func(p, _, q, _ int) bool { return p == q }},
	} {
		x := normals[float64]("x", 2*in.Len(), 3)
		for i := range x {
			x[i] += 1e4 // a variance from squares would have lost it
		}
		e, theta := newEngine[float64](t, in, []Layer{c.layer}, squaredError[float64]{}, 1)
		if want := append(slices.Repeat([]float64{1}, 12), make([]float64, 12)...); !slices.Equal(theta, want) {
			t.Errorf("%s begins with %v", name, theta)
		}
		copy(theta, normals[float64]("theta", len(theta), 1))
		got := make([]float64, len(x))
		if err := e.Outputs(got, theta, Examples[float64]{X: x}, []int{0, 1}); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			row, place, channel := i/in.Len(), i%in.Len()/12, i%12
			var n, mean, variance float64
			each := func(use func(v float64)) {
				for k := range in.Len() {
					if c.same(place, channel, k/12, k%12) {
						use(x[row*in.Len()+k])
					}
				}
			}
			each(func(v float64) { n++; mean += v })
			mean /= n
			each(func(v float64) { variance += (v - mean) * (v - mean) / n })
			want := (x[i]-mean)/math.Sqrt(variance+1e-5)*theta[channel] + theta[12+channel]
			if math.Abs(got[i]-want) > 1e-9*(1+math.Abs(want)) {
				t.Fatalf("%s: value %d is %v, written out %v", name, i, got[i], want)
			}
		}
	}
}

func TestGroupsOf(t *testing.T) {
	for channels, want := range map[int]int{1: 1, 16: 16, 32: 32, 64: 32, 48: 24, 40: 20, 37: 1, 160: 32} {
		if got := GroupsOf(Layer{}, channels); got != want {
			t.Errorf("%d channels are parted into %d groups, want %d", channels, got, want)
		}
	}
	if got := GroupsOf(Layer{Groups: 4}, 64); got != 4 {
		t.Errorf("4 groups became %d", got)
	}
}

func TestEmbeddingAgainstNaive(t *testing.T) {
	e, theta := newEngine[float32](t, Shape{1, 1, 4}, []Layer{{Kind: "embedding", Vocabulary: 5, Units: 2}}, squaredError[float32]{}, 1)
	ex := Examples[float32]{X: []float32{4, 0, 4, 1, 2, 2, 2, 2}, Targets: make([]float32, 16)}
	got := make([]float32, 16)
	if err := e.Outputs(got, theta, ex, []int{0, 1}); err != nil {
		t.Fatal(err)
	}
	for i, word := range ex.X {
		if !slices.Equal(got[2*i:2*i+2], theta[2*int(word):2*int(word)+2]) {
			t.Errorf("word %v at place %d is %v of %v", word, i, got[2*i:2*i+2], theta)
		}
	}
	if n := e.network.Output(); n != (Shape{4, 1, 2}) {
		t.Errorf("four words come out as %v", n)
	}
}

// TestWordsThatCancel: large gradients of a word that stands twice must not leave their
// rounding in a sum that they were too small to be clipped for.
func TestWordsThatCancel(t *testing.T) {
	n, err := Build[float32](Shape{1, 1, 2}, []Layer{{Kind: "embedding", Vocabulary: 3, Units: 1}})
	if err != nil {
		t.Fatal(err)
	}
	const large = float32(1 << 24)
	c := n.chain.newCell(1)
	in, acc, norms := []float32{1, 1}, []float32{0, 1, 0}, make([]float64, 1)
	c.forward([]float32{1, 2, 3}, in, 1)
	c.backward([]float32{1, 2, 3}, []float32{large, -large + 1}, nil, norms, 1, false)
	c.add(acc, []float32{1}, 1)
	if norms[0] != 1 || !slices.Equal(acc, []float32{0, 2, 0}) {
		t.Errorf("the squared norm is %v, the sum %v; want 1 and 0, 2, 0", norms[0], acc)
	}
}

func TestNoWords(t *testing.T) {
	layers := []Layer{{Kind: "embedding", Vocabulary: 3, Units: 2}, {Kind: "linear", Units: 2}}
	e, theta := newEngine[float64](t, Shape{1, 1, 2}, layers, crossEntropy[float64]{}, 1)
	for _, v := range []float64{-1, 3, 0.5, math.NaN(), math.Inf(1), 1e300} {
		ex := Examples[float64]{X: []float64{1, 2, 0, v}, Labels: []int{0, 1}}
		_, err := e.Gradient(make([]float64, len(theta)), theta, ex, []int{0, 1})
		if err == nil || !strings.Contains(err.Error(), "row 1: value 1 is") || !strings.Contains(err.Error(), "allowed: whole numbers from 0 to 2") {
			t.Errorf("the word %v: error %v", v, err)
		}
		out := make([]float64, 4)
		if err := e.Outputs(out, theta, ex, []int{0, 1}); err != nil || !math.IsNaN(out[3]) || math.IsNaN(out[1]) {
			t.Errorf("the word %v gives %v (%v)", v, out, err)
		}
	}
}

// TestWordsWithin: layers within a residual that comes first read the example, too.
func TestWordsWithin(t *testing.T) {
	words := func(vocabulary int) []Layer { return []Layer{{Kind: "embedding", Vocabulary: vocabulary, Units: 2}} }
	for name, layers := range map[string][]Layer{
		"inner":    {{Kind: "residual", Inner: words(3), Shortcut: words(9)}},
		"shortcut": {{Kind: "residual", Inner: words(9), Shortcut: words(3)}},
	} {
		e, theta := newEngine[float64](t, Shape{1, 1, 1}, layers, squaredError[float64]{}, 1)
		losses, ex := make([]float64, 1), Examples[float64]{X: []float64{2, 3}, Targets: make([]float64, 4)}
		if err := e.Losses(losses, theta, ex, []int{0}); err != nil {
			t.Errorf("%s: a word of both: %v", name, err)
		}
		if err := e.Losses(losses, theta, ex, []int{1}); err == nil || !strings.Contains(err.Error(), "allowed: whole numbers from 0 to 2") {
			t.Errorf("%s: a word of one: error %v", name, err)
		}
	}
}

// TestValuesWithin: chunks are cut by all activations, those within residuals included.
func TestValuesWithin(t *testing.T) {
	c := small["shortcut"]
	n, err := Build[float32](c.in, c.layers)
	if err != nil {
		t.Fatal(err)
	}
	// The input; the sum, and a ReLU of its own behind it; two units. Within, of 3 by 3 by 4
	// each, convolution, norm, ReLU and convolution, and the shortcut's convolution and norm.
	if got, want := n.chain.values(), 60+2*36+2+6*36; got != want {
		t.Errorf("%d activations, want %d", got, want)
	}
}

func TestShortcutsNames(t *testing.T) {
	c := small["shortcut"]
	n, err := Build[float32](c.in, c.layers)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range LayerSpans(n.Views()) {
		names = append(names, s.Name)
	}
	if want := []string{"0.0", "0.1", "0.3", "0.shortcut.0", "0.shortcut.1", "2"}; !slices.Equal(names, want) {
		t.Errorf("layers are called %v, want %v", names, want)
	}
}
