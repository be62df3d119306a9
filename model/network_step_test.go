package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// smallPictures is a small network of convolutions and a client with pictures of
// noise, labelled, or with values.
func smallPictures(t *testing.T, classes, n int) (Model, *data.Client) {
	s := stream("small pictures")
	im := &data.Images{Height: 7, Width: 6, Channels: 2, Pixels: make([]byte, n*84)}
	for i := range im.Pixels {
		im.Pixels[i] = byte(s.Below(256))
	}
	c := data.Client{Pictures: data.Pictures{Images: im}}
	for i := range n {
		if classes > 0 {
			im.Labels = append(im.Labels, s.Below(classes))
		} else {
			im.Targets = append(im.Targets, s.Normal())
		}
		c.Index = append(c.Index, n-1-i)
	}
	layers := []Layer{
		{Kind: "conv", Channels: 4, Kernel: 3}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2},
		{Kind: "linear", Units: max(1, classes)},
	}
	m, err := Of(runOf(config.Model{Kind: "network", Layers: layers}, map[bool]Loss{true: CrossEntropy, false: HalfSquaredError}[classes > 0]), (&data.Federation{Classes: classes, Train: []data.Client{c}}).Shape())
	if err != nil {
		t.Fatal(err)
	}
	return m, &c
}

// oneByOne is a second way to a clipped sum: gradients of single pictures.
func oneByOne(t *testing.T, l Learner, theta []float64, c *data.Client, batch []int, clip float64, shift []float64) []float64 {
	sum, g := make([]float64, len(theta)), make([]float64, len(theta))
	for _, i := range batch {
		if err := l.Gradient(g, theta, c, []int{i}, &Step{Shift: shift}); err != nil {
			t.Fatal(err)
		}
		if _, err := mech.Clip(g, clip); err != nil {
			t.Fatal(err)
		}
		for j, v := range g {
			sum[j] += v
		}
	}
	return sum
}

func TestNetworkSteps(t *testing.T) {
	for _, classes := range []int{0, 3} {
		m, c := smallPictures(t, classes, 50)
		theta, got := make([]float64, m.Parameters()), make([]float64, m.Parameters())
		m.Initialise(theta, stream("start"))
		shift := normals[float64]("shift", len(theta), 0.05)
		l := learnerOf(t, m)
		batch := []int{4, 49, 0, 17, 30, 8, 9}
		for _, s := range [][]float64{nil, shift} {
			for name, step := range map[string]Step{
				"floats": {Clip: 0.4},
				// Noise of 1e-9 clips leaves the sum to be seen.
				"integers one by one": {Paid: paidSteps(t, 0.4, 1e-9, mech.Randomness{Exact: mech.SystemEntropy()})},
				"integers":            {Paid: paidSteps(t, 0.4, 1e-7, mech.Randomness{Exact: mech.SystemEntropy()})},
			} {
				step.Divisor, step.Shift = 5, s
				if err := l.Gradient(got, theta, c, batch, begin(t, step)); err != nil {
					t.Fatal(err)
				}
				for j, want := range oneByOne(t, l, theta, c, batch, 0.4, s) {
					if math.Abs(got[j]-want/5) > 2e-6 {
						t.Fatalf("%d classes, %s, shift %v: coordinate %d is %v, want %v", classes, name, s != nil, j, got[j], want/5)
					}
				}
			}
		}
		if err := l.Gradient(got, theta, c, nil, &Step{Clip: 1, Divisor: 5}); err != nil || slices.Max(got) != 0 {
			t.Errorf("an empty batch: %v (%v)", slices.Max(got), err)
		}
		for name, err := range map[string]error{
			"no such picture": l.Gradient(got, theta, c, []int{50}, &Step{}),
			"rows":            l.Gradient(got, theta, &data.Client{Rows: someRows(2, 3)}, []int{0}, &Step{}),
			"a short model":   l.Gradient(got, theta[1:], c, batch, &Step{}),
		} {
			if err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
	}
}

// The mean gradient must be that of the mean loss that Judge tells, or half of it
// for values.
func TestNetworkGradientAgainstDifferences(t *testing.T) {
	for classes, scale := range map[int]float64{0: 0.5, 3: 1} {
		m, c := smallPictures(t, classes, 12)
		theta, grad := make([]float64, m.Parameters()), make([]float64, m.Parameters())
		m.Initialise(theta, stream("start"))
		l := learnerOf(t, m)
		all := make([]int, c.Len())
		for i := range all {
			all[i] = i
		}
		if err := l.Gradient(grad, theta, c, all, &Step{}); err != nil {
			t.Fatal(err)
		}
		for _, j := range []int{0, 40, len(theta) - 1, len(theta) - 9} {
			const h = 1e-2 // single precision: losses are good to 1e-7
			at := func(d float64) float64 {
				moved := slices.Clone(theta)
				moved[j] += d
				loss, _, _ := l.Judge(moved, c)
				return scale * loss
			}
			if want := (at(h) - at(-h)) / (2 * h); math.Abs(grad[j]-want) > 2e-3*max(1, math.Abs(want)) {
				t.Errorf("%d classes: coordinate %d is %v, by differences %v", classes, j, grad[j], want)
			}
		}
	}
}

func TestNetworkJudge(t *testing.T) {
	m, c := smallPictures(t, 3, 600) // more than are laid out at a time
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, stream("start"))
	l := learnerOf(t, m)
	mean, wrong, err := l.Judge(theta, c)
	if err != nil {
		t.Fatal(err)
	}
	losses, sum := make([]float64, 600), 0.0
	if err := l.Losses(losses, theta, c); err != nil {
		t.Fatal(err)
	}
	single := 0
	for i := range c.Index {
		one := &data.Client{Pictures: data.Pictures{Images: c.Images, Index: c.Index[i : i+1]}}
		loss, missed, _ := l.Judge(theta, one)
		single += missed
		sum += losses[i]
		if math.Abs(loss-losses[i]) > 1e-5 {
			t.Fatalf("picture %d: %v alone, %v among all", i, loss, losses[i])
		}
	}
	if again, err := l.Loss(theta, c); err != nil || wrong != single || math.Abs(sum/600-mean) > 1e-9 || again != mean {
		t.Errorf("%d wrong, alone %d; mean %v, of the losses %v", wrong, single, mean, sum/600)
	}
	if err := l.Train(theta, c, &Pass{StepSize: 0.1, Epochs: 5, Batch: 50, Shuffle: stream("shuffle")}); err != nil {
		t.Fatal(err)
	}
	if after, err := l.Loss(theta, c); err != nil || !(after < mean) {
		t.Errorf("training takes the loss from %v to %v", mean, after)
	}
}
