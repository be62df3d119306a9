package model

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// mirror is a small run whose network gives its pictures of 6 by 5 back. Its first layer
// has nothing to train, so that a layer that wrote over its input would be seen.
func mirror() (config.Run, data.Shape) {
	run := config.Default("synthetic", "", "paper")
	run.Model = config.Model{Kind: "network", Layers: []Layer{
		{Kind: "tanh"}, {Kind: "conv", Channels: 3, Kernel: 3}, {Kind: "tanh"}, {Kind: "transposed-conv", Channels: 1, Kernel: 3}, {Kind: "sigmoid"},
	}}
	run.Algorithm.Local.Loss = "squared-error"
	return run, data.Shape{Height: 6, Width: 5, Channels: 1, Reconstruct: true}
}

// TestTargetsAreTheExamples: losses, figures, gradients and clipped gradients are those
// that the definition gives, with the pixels as targets; labels play no part.
func TestTargetsAreTheExamples(t *testing.T) {
	run, shape := mirror()
	m, err := Of(run, shape)
	if err != nil {
		t.Fatal(err)
	}
	const n = 7
	src := rand.NewPCG(1, 2)
	draw := rand.New(src)
	im := &data.Images{Height: 6, Width: 5, Channels: 1, Pixels: make([]byte, n*30), Labels: make([]int, n)}
	for i := range im.Pixels {
		im.Pixels[i] = byte(draw.IntN(256))
	}
	c := &data.Client{Pictures: data.Pictures{Images: im, Index: []int{6, 1, 2, 3, 4, 5, 0}}}
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, src)
	l := learnerOf(t, m)
	losses := make([]float64, n)
	if err := l.Losses(losses, theta, c); err != nil {
		t.Fatal(err)
	}
	outputs, each, err := l.Outputs(nil, theta, c)
	if err != nil || each != 30 {
		t.Fatal(each, err)
	}
	mean := 0.0
	for i, at := range c.Index {
		want := 0.0
		for j := range each {
			d := outputs[i*each+j] - float64(im.Pixels[at*each+j])/255
			want += d * d / float64(each)
		}
		if math.Abs(losses[i]-want) > 1e-6 {
			t.Errorf("example %d: a loss of %v, want %v", i, losses[i], want)
		}
		mean += want / n
	}
	if loss, wrong, err := l.Judge(theta, c); err != nil || wrong != 0 || math.Abs(loss-mean) > 1e-6 {
		t.Errorf("judged %v with %d wrong answers, want %v: %v", loss, wrong, mean, err)
	}
	if loss, err := l.Loss(theta, c); err != nil || math.Abs(loss-math.Sqrt(mean)) > 1e-6 {
		t.Errorf("the root is %v, want %v: %v", loss, math.Sqrt(mean), err)
	}

	// Every example's gradient by differences of its loss, then clipped and summed.
	const clip, h = 0.02, 3e-3
	want, plain := make([]float64, len(theta)), make([]float64, len(theta))
	up, down := make([]float64, n), make([]float64, n)
	own := make([][]float64, n)
	for i := range own {
		own[i] = make([]float64, len(theta))
	}
	for p := range theta {
		kept := theta[p]
		theta[p] = kept + h
		if err := l.Losses(up, theta, c); err != nil {
			t.Fatal(err)
		}
		theta[p] = kept - h
		if err := l.Losses(down, theta, c); err != nil {
			t.Fatal(err)
		}
		theta[p] = kept
		for i := range own {
			own[i][p] = (up[i] - down[i]) / (2 * h)
		}
	}
	clipped := 0
	for i := range own {
		norm := 0.0
		for _, v := range own[i] {
			norm += v * v
		}
		scale := math.Min(1, clip/math.Sqrt(norm))
		if scale < 1 {
			clipped++
		}
		for p, v := range own[i] {
			want[p] += scale * v / n
			plain[p] += v / n
		}
	}
	if clipped == 0 {
		t.Fatal("nothing is clipped: the test shows nothing")
	}
	batch, got := []int{0, 1, 2, 3, 4, 5, 6}, make([]float64, len(theta))
	for name, v := range map[string]struct {
		step Step
		want []float64
	}{"plain": {Step{}, plain}, "clipped": {Step{Clip: clip, Divisor: n}, want}} {
		if err := l.Gradient(got, theta, c, batch, &v.step); err != nil {
			t.Fatal(err)
		}
		for p := range got {
			if math.Abs(got[p]-v.want[p]) > 2e-5 {
				t.Errorf("%s, parameter %d: %v, want %v", name, p, got[p], v.want[p])
			}
		}
	}
}

// TestReconstructionRefuses: what cannot give its inputs back is refused in words.
func TestReconstructionRefuses(t *testing.T) {
	for says, change := range map[string]func(r *config.Run, s *data.Shape){
		"the network ends with 12 values, but is to give its 30 inputs back": func(r *config.Run, _ *data.Shape) {
			r.Model.Layers = r.Model.Layers[:2]
			r.Model.Layers[1].Channels = 1
		},
		"but the targets are the examples themselves; allowed: squared-error": func(r *config.Run, _ *data.Shape) { r.Algorithm.Local.Loss = "cross-entropy" },
		"the data have 3 classes, but are to be their own targets":            func(_ *config.Run, s *data.Shape) { s.Classes = 3 },
		"has one output and cannot give its inputs back; allowed: network": func(r *config.Run, s *data.Shape) {
			r.Model, *s = config.Model{Kind: "linear"}, data.Shape{Features: 4, Reconstruct: true}
		},
		"the network has no parameters to train": func(r *config.Run, _ *data.Shape) { r.Model.Layers = r.Model.Layers[:1] },
	} {
		run, shape := mirror()
		change(&run, &shape)
		if _, err := Of(run, shape); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("wanted %q: %v", says, err)
		}
	}
}

// TestAutoencoderFits: paper 001's network gives pictures of 28 by 28 back.
func TestAutoencoderFits(t *testing.T) {
	run, shape := mirror()
	run.Model = config.Model{Kind: "network", Name: "autoencoder"}
	shape.Height, shape.Width = 28, 28
	m, err := Of(run, shape)
	if err != nil || m.Parameters() != 48705 {
		t.Error(m, err)
	}
}
