package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// windowsAnew are people whose inputs follow from the step.
type windowsAnew struct {
	crowdOf
	step uint64
}

func (r windowsAnew) InStep(step uint64) data.People { return windowsAnew{r.crowdOf, step} }

func (r windowsAnew) Input(dst []float32, person, _ int) int {
	return max(0, r.crowdOf.Input(dst, person, int(r.step%5)))
}

// TestWideInputs: many inputs take another way to the same gradient, in smaller crowds, for
// any number of workers and batches of any size.
func TestWideInputs(t *testing.T) {
	c := crowdOf{700, 300, 2}
	workers := pool.New(2)
	defer workers.Close()
	l, theta, client := riskOf(t, Focal, c, nil)
	spread, _, _ := riskOf(t, Focal, c, workers)
	for i := range theta {
		theta[i] = math.Sin(float64(i)) / 50
	}
	for _, count := range []int{70, 700, 10} {
		batch := identity(new([]int), count)
		want := make([]float64, c.inputs)
		for _, person := range batch {
			g, x := make([]float64, c.inputs), make([]float32, c.inputs)
			for w := range c.windows {
				if label := c.Input(x, person, w); label >= 0 {
					slope := l.(*riskLearner).slope(valueOf(theta, x), float64(label))
					for j, v := range x {
						g[j] += slope * float64(v)
					}
				}
			}
			norm := 0.0
			for _, v := range g {
				norm += v * v
			}
			for j, v := range g {
				want[j] += v * min(1, 0.7/math.Sqrt(max(norm, 1e-30))) / 50
			}
		}
		got, other := make([]float64, c.inputs), make([]float64, c.inputs)
		for to, from := range map[*[]float64]Learner{&got: l, &other: spread} {
			if err := from.Gradient(*to, theta, client, batch, &Step{Clip: 0.7, Divisor: 50}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, other) {
			t.Errorf("%d people: two workers have another gradient", count)
		}
		for j, w := range want {
			if math.Abs(got[j]-w) > 1e-9 {
				t.Fatalf("%d people, weight %d: %v, want %v", count, j, got[j], w)
			}
		}
	}
}

// TestStepsRedrawWindows: every step of a pass, and of a round, has a number of its own, by
// which people's windows are drawn; linear models and networks ask for it.
func TestStepsRedrawWindows(t *testing.T) {
	people := windowsAnew{crowdOf{64, 6, 1}, 0}
	client := &data.Client{People: people, Rows: data.Rows{Features: 6}}
	linear, _, _ := riskOf(t, CrossEntropy, people.crowdOf, nil)
	net := networkOnPeople(t, 6)
	for name, l := range map[string]Learner{"linear": linear, "network": net} {
		n := 6
		if name == "network" {
			n = 5*3 + 3 + 3 + 1
		}
		gradient := func(number uint64) []float64 {
			dst, theta := make([]float64, n), make([]float64, n)
			for i := range theta {
				theta[i] = math.Cos(float64(i)) / 3
			}
			if err := l.Gradient(dst, theta, client, []int{3, 9, 10}, &Step{Number: number}); err != nil {
				t.Fatal(err)
			}
			return dst
		}
		if slices.Equal(gradient(1), gradient(2)) || !slices.Equal(gradient(1), gradient(1)) {
			t.Errorf("%s: windows do not follow from the step's number", name)
		}
	}
	p := Pass{Epochs: 3, StepSize: 0.1}
	seen := map[uint64]bool{}
	for round := range 2 {
		p.At(round)
		if err := p.Descend(telling{linear, func(s *Step) { seen[s.Number] = true }}, make([]float64, 6), client); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 6 {
		t.Errorf("6 steps in 2 rounds have %d numbers", len(seen))
	}
}

// telling tells of every step.
type telling struct {
	Learner
	tell func(*Step)
}

func (w telling) Gradient(dst, theta []float64, c *data.Client, batch []int, s *Step) error {
	w.tell(s)
	return w.Learner.Gradient(dst, theta, c, batch, s)
}

func networkOnPeople(t *testing.T, inputs int) Learner {
	t.Helper()
	run := runOf(config.Model{Kind: "network", Layers: []Layer{{Kind: "linear", Units: 3}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}}, Focal)
	run.Algorithm.Local.Batch = 16
	m, err := Of(run, data.Shape{Features: inputs, Classes: 2, Windows: 1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestNetworksOnPeople: a network of people's inputs is that of the same inputs as rows,
// without the constant; others are refused.
func TestNetworksOnPeople(t *testing.T) {
	people := windowsAnew{crowdOf{600, 6, 1}, 0}
	l := networkOnPeople(t, 6)
	rows := data.Rows{Features: 5}
	x := make([]float32, 6)
	for i := range 600 {
		rows.Y = append(rows.Y, float64(people.Input(x, i, 0)))
		for _, v := range x[:5] {
			rows.X = append(rows.X, float64(v))
		}
	}
	run := runOf(config.Model{Kind: "network", Layers: []Layer{{Kind: "linear", Units: 3}, {Kind: "tanh"}, {Kind: "linear", Units: 1}}}, Focal)
	m, err := Of(run, data.Shape{Features: 5, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, stream("theta"))
	batch := []int{5, 10, 599, 77}
	got, want := make([]float64, len(theta)), make([]float64, len(theta))
	client := &data.Client{People: people, Rows: data.Rows{Features: 6}}
	for dst, of := range map[*[]float64]struct {
		Learner
		c *data.Client
	}{&got: {l, client}, &want: {plain, &data.Client{Rows: rows}}} {
		if err := of.Gradient(*dst, theta, of.c, batch, &Step{Clip: 0.01, Divisor: 4}); err != nil {
			t.Fatal(err)
		}
		values, _, err := of.Outputs(nil, theta, of.c)
		if err != nil || len(values) != 600 {
			t.Fatal(len(values), err)
		}
		*dst = append(*dst, values...)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-5 { // in single precision
			t.Fatalf("value %d is %v, of rows %v", i, got[i], want[i])
		}
	}
	for name, c := range map[string]*data.Client{"rows": {Rows: rows}, "other inputs": {People: crowdOf{5, 4, 1}}} {
		if l.Gradient(make([]float64, len(theta)), theta, c, []int{0}, &Step{}) == nil {
			t.Errorf("%s are taken", name)
		}
	}
}
