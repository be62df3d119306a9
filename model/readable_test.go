package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// TestUnreadableExamplesCountForNothing: of a network that reads words, an example with a value that is none
// is in no private step, as if it were not there, and in no protected choice; without protection it is an error.
func TestUnreadableExamplesCountForNothing(t *testing.T) {
	run := config.Run{Model: config.Model{Kind: "network", Layers: []config.Layer{{Kind: "embedding", Vocabulary: 3, Units: 2}, {Kind: "linear", Units: 1}}}}
	run.Algorithm.Local.Loss = "squared-error"
	m, err := Of(run, data.Shape{Features: 2})
	if err != nil {
		t.Fatal(err)
	}
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, rand.NewPCG(1, 2))
	readable := data.Client{Rows: data.Rows{Features: 2, X: []float64{0, 1, 2, 2, 1, 0}, Y: []float64{1, 2, 3}}}
	wild := data.Client{Rows: data.Rows{Features: 2, X: []float64{0, 1, 0.5, 0, 2, 2, 3, 0, 1, 0, math.NaN(), 1}, Y: []float64{1, 9, 2, 9, 3, 9}}}
	sums := make([][]float64, 2)
	for i, c := range []*data.Client{&readable, &wild} {
		sums[i] = make([]float64, len(theta))
		if err := l.Gradient(sums[i], theta, c, identity(new([]int), c.Len()), &Step{Clip: 1, Divisor: 5}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(sums[0], sums[1]) {
		t.Errorf("the step is %v with such examples and %v without", sums[1], sums[0])
	}
	if some := Readable(l, &wild); some.Len() != 3 || !slices.Equal(some.X, readable.X) || !slices.Equal(some.Y, readable.Y) {
		t.Errorf("readable are %+v", some)
	}
	if Readable(l, &readable) != &readable || Unreadable(l, &readable) != nil || Unreadable(l, nil) != nil {
		t.Error("examples that can all be read are not")
	}
	if err := Unreadable(l, &wild); err == nil || !strings.Contains(err.Error(), "row 1: value 0 is 0.5, which is no word") {
		t.Error(err)
	}
	if err := l.Gradient(sums[0], theta, &wild, []int{0, 1}, new(Step)); err == nil || !strings.Contains(err.Error(), "no word") {
		t.Errorf("without protection: %v", err)
	}
}

// TestOutputsOfARowAlone: what a network says of a row is the same, to the last bit, however many stand
// beside it: private choices count answers, and one row less must not change another's.
func TestOutputsOfARowAlone(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	for _, layers := range [][]config.Layer{
		{{Kind: "linear", Units: 1}},
		{{Kind: "linear", Units: 3}, {Kind: "tanh"}, {Kind: "linear", Units: 1}},
		{{Kind: "linear", Units: 2, Each: true}, {Kind: "linear", Units: 1}},
		{{Kind: "residual", Inner: []config.Layer{{Kind: "linear", Units: 2}}}, {Kind: "linear", Units: 1}},
		{{Kind: "linear", Units: 70}, {Kind: "gelu"}, {Kind: "linear", Units: 1}},
	} {
		run := config.Run{Model: config.Model{Kind: "network", Layers: layers}}
		run.Algorithm.Local.Loss = "cross-entropy"
		m, err := Of(run, data.Shape{Features: 2, Classes: 2})
		if err != nil {
			t.Fatal(err)
		}
		l, err := m.Learner()
		if err != nil {
			t.Fatal(err)
		}
		theta := make([]float64, m.Parameters())
		all := data.Client{Rows: data.Rows{Features: 2}}
		for range 300 {
			all.X, all.Y = append(all.X, src.NormFloat64(), src.NormFloat64()), append(all.Y, float64(src.IntN(2)))
		}
		for range 20 {
			for i := range theta {
				theta[i] = src.NormFloat64()
			}
			want, _, err := l.Outputs(nil, theta, &all)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 2, 3, 5, 9, 10, 11, 12, 255, 256, 257, 258, 266, 299} {
				c := data.Client{Rows: data.Rows{Features: 2, X: all.X[:2*n], Y: all.Y[:n]}}
				if got, _, err := l.Outputs(nil, theta, &c); err != nil || !slices.Equal(got, want[:n]) {
					t.Fatalf("%v: answers to %d rows follow from how many there are (%v)", layers, n, err)
				}
			}
		}
	}
}

// TestOutputsOfAPictureAlone is TestOutputsOfARowAlone for networks of pictures, in single precision.
func TestOutputsOfAPictureAlone(t *testing.T) {
	src := rand.New(rand.NewPCG(3, 4))
	for _, layers := range [][]config.Layer{
		{{Kind: "linear", Units: 1}},
		{{Kind: "conv", Channels: 3, Kernel: 2}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2}, {Kind: "linear", Units: 1}},
		{{Kind: "conv", Channels: 2, Kernel: 1, Stride: 2}, {Kind: "group-norm"}, {Kind: "linear", Units: 2, Each: true}, {Kind: "linear", Units: 1}},
		{{Kind: "transposed-conv", Channels: 2, Kernel: 2}, {Kind: "mean-pool", Kernel: 2}, {Kind: "linear", Units: 5}, {Kind: "tanh"}, {Kind: "linear", Units: 1}},
	} {
		run := config.Run{Model: config.Model{Kind: "network", Layers: layers}}
		run.Algorithm.Local.Loss = "cross-entropy"
		m, err := Of(run, data.Shape{Height: 4, Width: 4, Classes: 2})
		if err != nil {
			t.Fatal(err)
		}
		l, err := m.Learner()
		if err != nil {
			t.Fatal(err)
		}
		theta := make([]float64, m.Parameters())
		pictures := &data.Images{Height: 4, Width: 4}
		for range 300 {
			for range 16 {
				pictures.Pixels = append(pictures.Pixels, byte(src.IntN(256)))
			}
			pictures.Labels = append(pictures.Labels, src.IntN(2))
		}
		some := func(n int) *data.Client {
			return &data.Client{Pictures: data.Pictures{Images: pictures, Index: identity(new([]int), n)}}
		}
		for range 20 {
			for i := range theta {
				theta[i] = src.NormFloat64()
			}
			want, _, err := l.Outputs(nil, theta, some(300))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 2, 3, 5, 9, 16, 17, 255, 256, 257, 258, 299} {
				if got, _, err := l.Outputs(nil, theta, some(n)); err != nil || !slices.Equal(got, want[:n]) {
					t.Fatalf("%v: answers to %d pictures follow from how many there are (%v)", layers, n, err)
				}
			}
		}
	}
}
