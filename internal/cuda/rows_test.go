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

// ended are networks of rows, and of pictures, with every loss that there is: those with
// kernels, and those whose gradients at the output are made beside the device.
var ended = map[string]struct {
	shape  data.Shape
	local  config.Local
	layers layers
}{
	"rows of classes, with a head": {data.Shape{Features: 13, Classes: 4}, config.Local{Loss: "cross-entropy"}, layers{
		{Kind: "linear", Units: 20}, {Kind: "relu"}, {Kind: "linear", Units: 9}, {Kind: "relu"}, {Kind: "linear", Units: 4}}},
	"rows of classes, without": {data.Shape{Features: 750, Classes: 3}, config.Local{Loss: "cross-entropy"}, layers{
		{Kind: "linear", Units: 33}, {Kind: "tanh"}, {Kind: "linear", Units: 3}}},
	"rows, one layer": {data.Shape{Features: 6, Classes: 3}, config.Local{Loss: "cross-entropy"}, layers{{Kind: "linear", Units: 3}, {Kind: "leaky-relu"}}},
	"rows whose ways part": {data.Shape{Features: 10, Classes: 3}, config.Local{Loss: "cross-entropy"}, layers{
		{Kind: "layer-norm"}, {Kind: "linear", Units: 12}, {Kind: "gelu"}, {Kind: "residual", Inner: layers{{Kind: "linear", Units: 12}, {Kind: "tanh"}, {Kind: "linear", Units: 12}}}, {Kind: "group-norm", Groups: 3}, {Kind: "linear", Units: 3}}},
	"rows of two classes, one output": {data.Shape{Features: 7, Classes: 2}, config.Local{Loss: "cross-entropy"}, layers{
		{Kind: "linear", Units: 6}, {Kind: "relu"}, {Kind: "linear", Units: 1}}},
	"rows whose ways part, one output, tanh": {data.Shape{Features: 8, Classes: 2}, config.Local{Loss: "cross-entropy"}, layers{
		{Kind: "residual", Inner: layers{{Kind: "linear", Units: 8}, {Kind: "tanh"}}}, {Kind: "linear", Units: 1}, {Kind: "tanh"}}},
	"rows by a hinge": {data.Shape{Features: 7, Classes: 2}, config.Local{Loss: "hinge"}, layers{
		{Kind: "linear", Units: 6}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}},
	"rows of rare classes": {data.Shape{Features: 9, Classes: 3}, config.Local{Loss: "focal", FocalGamma: 1.5}, layers{
		{Kind: "linear", Units: 6}, {Kind: "tanh"}, {Kind: "linear", Units: 3}, {Kind: "leaky-relu", Slope: 0.3}}},
	"rows of a rare class of two": {data.Shape{Features: 9, Classes: 2}, config.Local{Loss: "focal", FocalAlpha: 0.9}, layers{
		{Kind: "linear", Units: 5}, {Kind: "relu"}, {Kind: "linear", Units: 1}}},
	"rows of classes that weigh": {data.Shape{Features: 9, Classes: 3}, config.Local{Loss: "cross-entropy", ClassWeights: []float64{0.5, 3, 20}}, layers{
		{Kind: "linear", Units: 6}, {Kind: "relu"}, {Kind: "linear", Units: 3}}},
	"rows of values": {data.Shape{Features: 5}, config.Local{Loss: "squared-error"}, layers{
		{Kind: "linear", Units: 6}, {Kind: "sigmoid"}, {Kind: "linear", Units: 1}}},
	"rows of values, by halves": {data.Shape{Features: 5}, config.Local{Loss: "half-squared-error"}, layers{{Kind: "linear", Units: 1}, {Kind: "sigmoid"}}},
	"rows of classes by squares": {data.Shape{Features: 5, Classes: 4}, config.Local{Loss: "squared-error"}, layers{
		{Kind: "linear", Units: 6}, {Kind: "tanh"}, {Kind: "linear", Units: 4}, {Kind: "sigmoid"}}},
	"rows of two classes by squares": {data.Shape{Features: 5, Classes: 2}, config.Local{Loss: "half-squared-error"}, layers{{Kind: "linear", Units: 1}, {Kind: "leaky-relu", Slope: 0.2}}},
	"rows that are given back": {data.Shape{Features: 6, Reconstruct: true}, config.Local{Loss: "half-squared-error"}, layers{
		{Kind: "linear", Units: 3}, {Kind: "tanh"}, {Kind: "linear", Units: 6}}},
	"pictures of values": {data.Shape{Height: 8, Width: 7, Channels: 2}, config.Local{Loss: "squared-error"}, layers{
		{Kind: "conv", Channels: 8, Kernel: 3}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2}, {Kind: "linear", Units: 1}}},
	"pictures of rare classes": {data.Shape{Height: 6, Width: 6, Classes: 3}, config.Local{Loss: "focal", ClassWeights: []float64{1, 4, 0.25}}, layers{
		{Kind: "conv", Channels: 4, Kernel: 3}, {Kind: "tanh"}, {Kind: "linear", Units: 3}}},
}

// examplesFor draws a client with pictures or rows, their classes or values.
func examplesFor(s data.Shape, n int, src *rand.Rand) *data.Client {
	if s.Height > 0 {
		c := client(s, n, src)
		if s.Classes == 0 && !s.Reconstruct {
			c.Images.Labels = nil
			for range n {
				c.Images.Targets = append(c.Images.Targets, src.NormFloat64())
			}
		}
		return c
	}
	c := &data.Client{}
	c.Features = s.Features
	for range n * s.Features {
		c.X = append(c.X, 2*src.NormFloat64()+0.3)
	}
	for range n {
		if s.Classes > 0 {
			c.Y = append(c.Y, float64(src.IntN(s.Classes)))
		} else {
			c.Y = append(c.Y, src.NormFloat64())
		}
	}
	return c
}

// TestEveryLoss: gradients, norms, clipped sums and outputs of networks of rows, and with every loss, are
// the processor's; and near those in double precision, which it has for rows.
func TestEveryLoss(t *testing.T) {
	cudatest.Use(t)
	for name, n := range ended {
		t.Run(name, func(t *testing.T) {
			m, theta := buildBy(t, n.shape, n.local, n.layers)
			src := rand.New(rand.NewPCG(3, 9))
			for i := range theta {
				theta[i] += 0.5 / math.Sqrt(float64(10+n.shape.Features)) * src.NormFloat64()
			}
			c := examplesFor(n.shape, 24, src)
			single := model.On(m, nil) // on the processor
			rows := near(t, learner(t, single), theta, c, src.Perm(24)[:21])
			checkSteps(t, single, theta, c, rows)
			got, want := make([]float64, len(theta)), make([]float64, len(theta))
			if err := learner(t, model.On(m, open(t, m, 0))).Gradient(got, theta, c, rows, &model.Step{}); err != nil {
				t.Fatal(err)
			}
			if err := learner(t, m).Gradient(want, theta, c, rows, &model.Step{}); err != nil {
				t.Fatal(err)
			}
			if off := apart(got, want); !(off < 5e-6) {
				t.Errorf("off by %.2g of what is computed in double precision", off)
			}
		})
	}
}

// TestRowsRepeat: rows' steps have the same bits every time, recorded or not, whatever order kernels
// run in.
func TestRowsRepeat(t *testing.T) {
	cudatest.Use(t)
	for _, name := range []string{"rows of classes, with a head", "rows of two classes, one output", "rows whose ways part, one output, tanh"} {
		n := ended[name]
		m, theta := buildBy(t, n.shape, n.local, n.layers)
		c := examplesFor(n.shape, 24, rand.New(rand.NewPCG(3, 9)))
		var before []float64
		for _, order := range []string{"forward", "backward", "ahead", "late"} {
			t.Setenv("COTERIE_EMU_ORDER", order)
			l := learner(t, model.On(m, open(t, m, 5)))
			for range 3 {
				got := make([]float64, len(theta))
				if err := l.Gradient(got, theta, c, []int{1, 2, 3, 5, 7, 8, 11, 12, 20}, &model.Step{Clip: 0.5, Divisor: 6}); err != nil {
					t.Fatal(err)
				}
				if before != nil && !slices.Equal(before, got) {
					t.Errorf("%s, %s: other bits", name, order)
				}
				before = got
			}
		}
	}
}

// TestRowsThatAreNone: a class that is none is told of, and a row that is not finite is left out.
func TestRowsThatAreNone(t *testing.T) {
	cudatest.Use(t)
	for _, name := range []string{"rows of classes, with a head", "rows of two classes, one output"} {
		n := ended[name]
		m, theta := buildBy(t, n.shape, n.local, n.layers)
		c := examplesFor(n.shape, 6, rand.New(rand.NewPCG(3, 4)))
		ours, theirs := learner(t, model.On(m, open(t, m, 0))), learner(t, m)
		got, want := make([]float64, len(theta)), make([]float64, len(theta))
		was := c.Y[2]
		for _, v := range []float64{-1, 4, 1.5, math.NaN(), math.Inf(1), 1 << 40} {
			c.Y[2] = v
			if err := ours.Gradient(got, theta, c, []int{0, 2}, &model.Step{}); err == nil || !strings.Contains(err.Error(), "row 2 has the class") {
				t.Errorf("%v: %v", v, err)
			}
		}
		c.Y[2] = was
		step := model.Step{Clip: 0.3, Divisor: 6}
		for _, v := range []float64{math.NaN(), math.Inf(-1), 1e300} {
			c.X[3*n.shape.Features+1] = v
			if err := ours.Gradient(got, theta, c, []int{0, 1, 2, 3, 4, 5}, &step); err != nil {
				t.Fatal(err)
			}
			if err := theirs.Gradient(want, theta, c, []int{0, 1, 2, 4, 5}, &step); err != nil {
				t.Fatal(err)
			}
			if off := apart(got, want); !(off < 5e-6) {
				t.Errorf("%v: off by %.2g", v, off)
			}
		}
	}
}
