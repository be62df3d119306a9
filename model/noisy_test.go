package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// noisyCase is a model with examples to add noise to.
type noisyCase struct {
	model Model
	c     data.Client
}

func noisyCases(t *testing.T, n int) map[string]noisyCase {
	t.Helper()
	of := func(layers []Layer, m config.Model, loss string, s data.Shape) Model {
		run := config.Run{Model: m}
		run.Algorithm.Local.Loss = loss
		for _, l := range layers {
			run.Model.Layers = append(run.Model.Layers, config.Layer{Kind: l.Kind, Units: l.Units, Vocabulary: l.Vocabulary})
		}
		made, err := Of(run, s)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	rows := data.Client{Rows: data.Rows{Features: 3, X: normals[float64]("rows", 3*n, 2), Y: normals[float64]("targets", n, 1)}}
	words := data.Client{Rows: data.Rows{Features: 4, Y: make([]float64, n)}}
	images := &data.Images{Height: 2, Width: 2, Labels: make([]int, n)}
	pictures := data.Client{Pictures: data.Pictures{Images: images}}
	for i := range n {
		words.X = append(words.X, 1, 4, 2, 0)
		images.Pixels, pictures.Index = append(images.Pixels, 0, 100, 200, 255), append(pictures.Index, i)
	}
	return map[string]noisyCase{
		"linear":   {Linear{Features: 3, Intercept: true, Loss: SquaredError}, rows},
		"network":  {of([]Layer{{Kind: "linear", Units: 4}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}, config.Model{Kind: "network"}, "squared-error", data.Shape{Features: 3}), rows},
		"pictures": {of([]Layer{{Kind: "linear", Units: 2}}, config.Model{Kind: "network"}, "cross-entropy", data.Shape{Height: 2, Width: 2, Classes: 2}), pictures},
		"words":    {of(nil, config.Model{Kind: "transformer", Blocks: 1, Width: 8, Heads: 2}, "next-word", data.Shape{Features: 4, Vocabulary: 5}), words},
	}
}

// TestNoisyLosses: no noise changes nothing; every example has noise of its own, whichever
// worker adds it and however many come before it; the noise grows with the deviation and is
// otherwise the same.
func TestNoisyLosses(t *testing.T) {
	const n = 300 // more than are laid out at a time
	for name, c := range noisyCases(t, n) {
		theta := make([]float64, c.model.Parameters())
		c.model.Initialise(theta, stream("theta"))
		for i, v := range normals[float64]("far from the start", len(theta), 0.3) {
			theta[i] += v
		}
		learner, err := c.model.Learner()
		if err != nil {
			t.Fatal(err)
		}
		losses := func(l Learner, noise Noise) []float64 {
			out := make([]float64, n)
			if err := NoisyLosses(l, out, theta, &c.c, noise); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return out
		}
		plain := make([]float64, n)
		if err := learner.Losses(plain, theta, &c.c); err != nil {
			t.Fatal(err)
		}
		if none := losses(learner, Noise{Seed: 1}); !slices.Equal(none, plain) {
			t.Errorf("%s: noise of deviation 0 changes losses", name)
		}
		noisy := losses(learner, Noise{Deviation: 0.5, Seed: 1})
		seen := map[float64]bool{}
		for _, v := range noisy {
			seen[v] = true
		}
		if len(seen) < n-3 {
			t.Errorf("%s: %d examples have %d different noisy losses", name, n, len(seen))
		}
		runner := pool.New(3)
		defer runner.Close()
		spread, err := Spread(c.model, runner).Learner()
		if err != nil {
			t.Fatal(err)
		}
		if other := losses(spread, Noise{Deviation: 0.5, Seed: 1}); !slices.Equal(other, noisy) {
			t.Errorf("%s: several workers add other noise", name)
		}
		for _, other := range []Noise{{Deviation: 0.5, Seed: 2}, {Deviation: 0.5, Seed: 1, Neighbour: 1}, {Deviation: 0.6, Seed: 1}} {
			if slices.Equal(losses(learner, other), noisy) {
				t.Errorf("%s: %+v gives the same losses", name, other)
			}
		}
		if again := make([]float64, n); learner.Losses(again, theta, &c.c) != nil || !slices.Equal(again, plain) {
			t.Errorf("%s: noise stays behind", name)
		}
		if err := NoisyLosses(learner, plain, theta, &c.c, Noise{Deviation: math.NaN()}); err == nil {
			t.Errorf("%s: a deviation that is no number was taken", name)
		}
	}
}

// TestNoiseIsOnWhatIsRead: the noise on a linear model's rows moves the output by what the
// weights make of it, so that its deviation can be read off; that on words' vectors is the
// same as a change of those vectors, where nothing else reads them.
func TestNoiseIsOnWhatIsRead(t *testing.T) {
	const n = 4000
	rows := data.Client{Rows: data.Rows{Features: 2, X: make([]float64, 2*n), Y: make([]float64, n)}}
	l, err := Linear{Features: 2, Loss: SquaredError}.Learner()
	if err != nil {
		t.Fatal(err)
	}
	losses := make([]float64, n)
	if err := NoisyLosses(l, losses, []float64{3, 4}, &rows, Noise{Deviation: 0.2, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	// The output is N(0, (5*0.2)^2): the mean of squares is 1 with a deviation of
	// sqrt(2/n) = 0.022; 0.11 is passed once in 2 million times.
	if m := mean(losses); math.Abs(m-1) > 0.11 {
		t.Errorf("the outputs' variance is %v, want 1", m)
	}
	const places, units = 3, 2
	net, err := Build[float64](Shape{1, 1, places}, []Layer{{Kind: "embedding", Vocabulary: 4, Units: units}, {Kind: "flatten"}, {Kind: "linear", Units: 1}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(net, Objective[float64](squaredError[float64]{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	theta := normals[float64]("theta", net.Parameters(), 1)
	ex := Examples[float64]{X: []float64{2, 0, 3}, Targets: []float64{0}}
	noise := Noise{Seed: 9}
	e.noise = &chunkNoise{source: noise.source(), deviation: 0.7}
	got, want := make([]float64, 1), make([]float64, 1)
	if err := e.Outputs(got, theta, ex, []int{0}); err != nil {
		t.Fatal(err)
	}
	e.noise = nil
	added := make([]float64, places*units)
	addNoise(noise.source(), 0.7, added, 0)
	for place, word := range []int{2, 0, 3} {
		for j := range units {
			theta[word*units+j] += added[place*units+j]
		}
	}
	if err := e.Outputs(want, theta, ex, []int{0}); err != nil || math.Abs(got[0]-want[0]) > 1e-12 {
		t.Errorf("output %v with noise on the vectors, %v with other vectors; %v", got[0], want[0], err)
	}
}

// TestInputRMS: of rows it is that of their values, of words that of their vectors, each as
// often as the word is there.
func TestInputRMS(t *testing.T) {
	cases := noisyCases(t, 2)
	for name, want := range map[string]func(theta []float64, c data.Client) float64{
		"linear": func(_ []float64, c data.Client) float64 {
			var sum float64
			for _, v := range c.X {
				sum += v * v
			}
			return math.Sqrt(sum / float64(len(c.X)))
		},
		"words": func(theta []float64, _ data.Client) float64 {
			var sum float64
			for _, word := range []int{1, 4, 2, 0} {
				for j := range 8 {
					sum += theta[word*8+j] * theta[word*8+j]
				}
			}
			return math.Sqrt(sum / 32)
		},
		"pictures": func([]float64, data.Client) float64 {
			return math.Sqrt((100.*100 + 200*200 + 255*255) / (255 * 255) / 4)
		},
	} {
		c := cases[name]
		theta := normals[float64]("theta", c.model.Parameters(), 1)
		l, err := c.model.Learner()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := InputRMS(l, theta, &c.c); err != nil || math.Abs(got-want(theta, c.c)) > 1e-6 {
			t.Errorf("%s: %v, want %v; %v", name, got, want(theta, c.c), err)
		}
	}
}
