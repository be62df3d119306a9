//go:build linux

package cuda_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

// parted are networks whose ways part and join, with norms and places: of pictures.
var parted = map[string]struct {
	shape  data.Shape
	loss   string
	layers layers
}{
	"residuals and group norms": {data.Shape{Height: 9, Width: 8, Channels: 3, Classes: 4}, "cross-entropy", layers{
		{Kind: "conv", Channels: 8, Kernel: 3, Padding: 1, NoBias: true}, {Kind: "group-norm", Groups: 4}, {Kind: "relu"},
		{Kind: "residual", Inner: layers{{Kind: "conv", Channels: 8, Kernel: 3, Padding: 1, NoBias: true}, {Kind: "group-norm", Groups: 2}, {Kind: "relu"}, {Kind: "conv", Channels: 8, Kernel: 3, Padding: 1}, {Kind: "group-norm", Groups: 8}}}, {Kind: "relu"},
		{Kind: "residual", Inner: layers{{Kind: "conv", Channels: 12, Kernel: 3, Stride: 2, Padding: 1, NoBias: true}, {Kind: "tanh"}, {Kind: "conv", Channels: 12, Kernel: 3, Padding: 1, NoBias: true}, {Kind: "group-norm", Groups: 1}},
			Shortcut: layers{{Kind: "conv", Channels: 12, Kernel: 1, Stride: 2, NoBias: true}, {Kind: "group-norm", Groups: 3}}}, {Kind: "leaky-relu"},
		{Kind: "mean-pool", Kernel: 2, Stride: 1, Padding: 1}, {Kind: "linear", Units: 4}}},
	"what joins in odd places": {data.Shape{Height: 6, Width: 6, Channels: 2, Classes: 3}, "cross-entropy", layers{
		{Kind: "tanh"}, {Kind: "residual", Inner: layers{{Kind: "gelu"}, {Kind: "residual", Inner: layers{{Kind: "sigmoid"}}}}},
		{Kind: "conv", Channels: 6, Kernel: 2}, {Kind: "gelu"}, {Kind: "residual", Inner: layers{{Kind: "linear", Units: 6, Each: true}, {Kind: "gelu"}, {Kind: "conv", Channels: 6, Kernel: 3, Padding: 1}, {Kind: "tanh"}}}, {Kind: "sigmoid"},
		{Kind: "max-pool", Kernel: 2}, {Kind: "residual", Inner: layers{{Kind: "linear", Units: 6, Each: true}, {Kind: "relu"}, {Kind: "linear", Units: 6, Each: true, NoBias: true}}}, {Kind: "gelu"},
		{Kind: "positions"}, {Kind: "layer-norm"}, {Kind: "leaky-relu"}, {Kind: "mean-pool", Kernel: 2, Stride: 2}, {Kind: "linear", Units: 3}}},
	"attention between pixels, of two tiles": {data.Shape{Height: 9, Width: 8, Classes: 3}, "cross-entropy", layers{
		{Kind: "linear", Units: 18, Each: true}, {Kind: "positions"}, {Kind: "attention", Heads: 2}, {Kind: "tanh"}, {Kind: "linear", Units: 5, Each: true}, {Kind: "layer-norm"}, {Kind: "linear", Units: 3}}},
}

// texts are networks of words.
var texts = map[string]struct {
	shape      data.Shape
	block      config.Model
	processors []string // large tiles for few, small ones for many
	rows       []int    // that steps are of; nil: eight
}{
	"a transformer":               {data.Shape{Features: 8, Vocabulary: 50}, config.Model{Kind: "transformer", Blocks: 2, Width: 16, Heads: 4}, []string{"1", "1000"}, nil},
	"one of odd sizes":            {data.Shape{Features: 7, Vocabulary: 21}, config.Model{Kind: "transformer", Blocks: 1, Width: 6, Heads: 3}, []string{"1"}, nil},
	"more places than a tile has": {data.Shape{Features: 70, Vocabulary: 68}, config.Model{Kind: "transformer", Blocks: 1, Width: 36, Heads: 2}, []string{"1", "1000"}, nil},
	"what groups of warps have":   {data.Shape{Features: 12, Vocabulary: 128}, config.Model{Kind: "transformer", Blocks: 1, Width: 128, Heads: 4}, []string{"1"}, nil},
	"rows that stay in parts":     {data.Shape{Features: 64, Vocabulary: 256}, config.Model{Kind: "transformer", Blocks: 2, Width: 128, Heads: 4}, []string{"1", "1000"}, []int{3, 1, 4}},
	"vectors of one end": {data.Shape{Features: 6, Vocabulary: 20}, config.Model{Kind: "network", Layers: layers{
		{Kind: "embedding", Vocabulary: 20, Units: 8}, {Kind: "positions", SD: 0.5}, {Kind: "linear", Units: 204, Each: true}, {Kind: "attention", Heads: 1}, {Kind: "relu"}, {Kind: "layer-norm"}, {Kind: "linear", Units: 20, Each: true, NoBias: true}}}, []string{"1000"}, nil},
}

// written draws texts, of few words so that they are repeated.
func written(s data.Shape, n int, src *rand.Rand) *data.Client {
	c := &data.Client{}
	c.Features, c.Y = s.Features, make([]float64, n)
	for range n * s.Features {
		c.X = append(c.X, float64(src.IntN(s.Vocabulary)*src.IntN(2)))
	}
	return c
}

func buildText(t testing.TB, s data.Shape, block config.Model) (model.Model, []float64) {
	t.Helper()
	m, err := model.Of(config.Run{Model: block, Algorithm: config.Algorithm{Local: config.Local{Loss: "next-word"}}}, s)
	if err != nil {
		t.Fatal(err)
	}
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, rand.NewPCG(1, 2))
	src := rand.New(rand.NewPCG(3, 9)) // biases, factors and constants that are not 0 and 1
	for i := range theta {
		theta[i] += 0.2 * src.NormFloat64()
	}
	return m, theta
}

func TestPartedNetworks(t *testing.T) {
	cudatest.Use(t)
	for name, n := range parted {
		t.Run(name, func(t *testing.T) {
			m, theta := build(t, n.shape, n.loss, n.layers)
			src := rand.New(rand.NewPCG(3, 9))
			for i := range theta {
				theta[i] += 0.1 * src.NormFloat64()
			}
			c := client(n.shape, 24, rand.New(rand.NewPCG(3, 4)))
			checkSteps(t, m, theta, c, near(t, learner(t, m), theta, c, rand.New(rand.NewPCG(5, 4)).Perm(24)[:21]))
		})
	}
}

func TestTexts(t *testing.T) {
	cudatest.Use(t)
	for name, n := range texts {
		t.Run(name, func(t *testing.T) {
			m, theta := buildText(t, n.shape, n.block)
			c := written(n.shape, 11, rand.New(rand.NewPCG(3, 4)))
			rows, majors := n.rows, []string{"9"}
			if rows == nil {
				rows, majors = []int{3, 1, 4, 9, 2, 6, 10, 8}, []string{"7", "9"} // without tensor cores, and with them
			}
			for _, processors := range n.processors {
				for _, major := range majors {
					t.Setenv("COTERIE_EMU_PROCESSORS", processors)
					t.Setenv("COTERIE_EMU_MAJOR", major)
					checkSteps(t, m, theta, c, rows)
				}
			}
		})
	}
}

// rounding is how far a norm that the device gives may lie above the true one: it is enlarged by
// what rounding may take (docs/proofs/gpu-clip.md); on tensor cores by more, the more places' lengths
// are added up.
func rounding(c *data.Client) float64 {
	if c.Images == nil && c.Features == 64 { // which stay in parts
		return 5e-4
	}
	return 2e-4
}

// checkSteps holds plain gradients against the processor's; norms, which are never below the
// processor's; and clipped sums against single gradients, times the factors that follow from
// the norms that the device gave. Chunks do not divide the batch.
func checkSteps(t *testing.T, m model.Model, theta []float64, c *data.Client, rows []int) {
	t.Helper()
	d := open(t, m, 5)
	ours, theirs := learner(t, model.On(m, d)), learner(t, m)
	got, want := make([]float64, len(theta)), make([]float64, len(theta))
	for _, batch := range [][]int{rows, rows[:1], nil} {
		for _, l := range []model.Learner{ours, theirs} {
			to := got
			if l == theirs {
				to = want
			}
			if err := l.Gradient(to, theta, c, batch, &model.Step{}); err != nil {
				t.Fatal(err)
			}
		}
		if len(batch) == 0 {
			if slices.ContainsFunc(got, func(v float64) bool { return v != 0 }) {
				t.Error("an empty batch has a gradient")
			}
			continue
		}
		if off := apart(got, want); !(off < 5e-6) {
			t.Errorf("%d rows: off by %.2g of the processor's", len(batch), off)
			for _, v := range model.Layers(m) {
				t.Logf("%s: %.2g", v.Name, apart(got[v.From:v.To], want[v.From:v.To]))
			}
		}
	}
	checkClipped(t, m, ours, theirs, theta, c, rows, d)
	if p, err := model.PlanOf(m); err != nil || p.Words {
		checkLosses(t, ours, theirs, theta, c)
		return
	}
	checkOutputs(t, ours, theirs, theta, c)
}

func checkClipped(t *testing.T, m model.Model, ours, theirs model.Learner, theta []float64, c *data.Client, rows []int, d model.Device) {
	t.Helper()
	places, at := make([]int, len(rows)), 0
	single, sum, want := make([]float32, len(theta)), make([]float32, len(theta)), make([]float64, len(theta))
	for i, v := range theta {
		single[i] = float32(v)
	}
	for i, row := range rows {
		if places[i] = row; c.Images != nil {
			places[i] = c.Index[row]
		}
	}
	own := make([]float64, len(theta))
	clip := rowNorms(t, theirs, theta, c, rows)[len(rows)/2]
	err := d.Gradients(single, c, places, func(norms []float64, add func(sum, factors []float32) error) error {
		factors := make([]float32, len(norms))
		for i, norm := range norms {
			if err := theirs.Gradient(own, theta, c, rows[at+i:at+i+1], &model.Step{}); err != nil {
				return err
			}
			length := length(own)
			if !(norm >= length*(1-1e-6) && norm <= length*(1+rounding(c))) {
				t.Errorf("row %d has the norm %.8g instead of %.8g", rows[at+i], norm, length)
			}
			factors[i] = float32(min(1, clip/norm))
			if i == 1 {
				factors[i] = 0
			}
			for k, v := range own {
				want[k] += float64(factors[i]) * v
			}
		}
		at += len(norms)
		return add(sum, factors)
	})
	if err != nil || at != len(rows) {
		t.Fatal(err, at)
	}
	for i, v := range sum {
		own[i] = float64(v)
	}
	if off := apart(own, want); !(off < 5e-6) {
		t.Errorf("a clipped sum is off by %.2g", off)
		for _, v := range model.Layers(m) {
			t.Logf("%s: %.2g", v.Name, apart(own[v.From:v.To], want[v.From:v.To]))
		}
	}
	for _, row := range rows {
		if err := ours.Gradient(own, theta, c, []int{row}, &model.Step{Clip: 0.01, Divisor: 1}); err != nil {
			t.Fatal(err)
		}
		if norm := length(own); norm > 0.01 || norm < 0.01*(1-rounding(c)) {
			t.Errorf("row %d was clipped to %.9g instead of 0.01", row, norm)
		}
	}
}

func length(v []float64) float64 {
	var s float64
	for _, x := range v {
		s += x * x
	}
	return math.Sqrt(s)
}

func checkLosses(t *testing.T, ours, theirs model.Learner, theta []float64, c *data.Client) {
	t.Helper()
	got, want := make([]float64, c.Len()), make([]float64, c.Len())
	if err := ours.Losses(got, theta, c); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Losses(want, theta, c); err != nil {
		t.Fatal(err)
	}
	if off := apart(got, want); off > 1e-6 {
		t.Errorf("losses are off by %.2g", off)
	}
	noise := model.Noise{Deviation: 0.3, Seed: 5, Neighbour: 2}
	if err := model.NoisyLosses(ours, got, theta, c, noise); err != nil {
		t.Fatal(err)
	}
	if off := apart(got, want); off < 1e-4 {
		t.Errorf("noise changes losses by %.2g alone", off)
	}
	if err := model.NoisyLosses(theirs, want, theta, c, noise); err != nil {
		t.Fatal(err)
	}
	if off := apart(got, want); off > 1e-6 {
		t.Errorf("losses with noise are off by %.2g", off)
	}
	a, _, err := ours.Judge(theta, c)
	if err != nil {
		t.Fatal(err)
	}
	if b, _, err := theirs.Judge(theta, c); err != nil || math.Abs(a-b) > 1e-6*b {
		t.Error("the mean loss is", a, "instead of", b, err)
	}
}

// TestTextsThatAreNone: a value that is no word is told of, by whoever reads it.
func TestTextsThatAreNone(t *testing.T) {
	cudatest.Use(t)
	n := texts["a transformer"]
	m, theta := buildText(t, n.shape, n.block)
	c := written(n.shape, 3, rand.New(rand.NewPCG(3, 4)))
	l := learner(t, model.On(m, open(t, m, 0)))
	for _, v := range []float64{-1, 50, 1.5, math.NaN()} {
		c.X[9] = v
		err := l.Gradient(make([]float64, len(theta)), theta, c, []int{0, 1}, &model.Step{})
		if err == nil || !strings.Contains(err.Error(), "row 1: value 1 is") {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// TestTextsRepeat: a text's step has the same bits every time, whatever order blocks run in.
func TestTextsRepeat(t *testing.T) {
	cudatest.Use(t)
	n := texts["a transformer"]
	m, theta := buildText(t, n.shape, n.block)
	c := written(n.shape, 9, rand.New(rand.NewPCG(3, 4)))
	var before []float64
	for _, order := range []string{"forward", "backward"} {
		t.Setenv("COTERIE_EMU_ORDER", order)
		l := learner(t, model.On(m, open(t, m, 4)))
		for range 2 {
			got := make([]float64, len(theta))
			if err := l.Gradient(got, theta, c, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, &model.Step{Clip: 0.1, Divisor: 9}); err != nil {
				t.Fatal(err)
			}
			if before != nil && !slices.Equal(before, got) {
				t.Error("the same step has other bits")
			}
			before = got
		}
	}
}

// TestTextsThatAreNotFinite: a text with a word whose vector overflows is left out, and spoils
// none of those beside it.
func TestTextsThatAreNotFinite(t *testing.T) {
	cudatest.Use(t)
	n := texts["vectors of one end"] // of both ends, every text's scores would read the word's vector
	m, theta := buildText(t, n.shape, n.block)
	c := written(n.shape, 6, rand.New(rand.NewPCG(3, 4)))
	for i := range c.X {
		c.X[i] = float64(1 + int(c.X[i])%(n.shape.Vocabulary-1))
	}
	c.X[2*n.shape.Features+1] = 0 // only the third text has the word
	for i := range 8 {
		theta[i] = 1e39 // infinite in single precision
	}
	ours, theirs := learner(t, model.On(m, open(t, m, 4))), learner(t, m)
	got, want := make([]float64, len(theta)), make([]float64, len(theta))
	step := model.Step{Clip: 0.1, Divisor: 6}
	if err := ours.Gradient(got, theta, c, []int{2}, &step); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(got, func(v float64) bool { return v != 0 }) {
		t.Error("a text that is not finite counts for something, or is finite")
	}
	if err := ours.Gradient(got, theta, c, []int{0, 1, 2, 3, 4, 5}, &step); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Gradient(want, theta, c, []int{0, 1, 3, 4, 5}, &step); err != nil {
		t.Fatal(err)
	}
	if off := apart(got, want); !(off < rounding(c)) {
		t.Errorf("off by %.2g", off)
	}
}
