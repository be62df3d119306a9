package model

import (
	"errors"
	"math"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/pool"
)

// crowdOf are people with inputs of noise in some windows; every seventh window does not
// count, and every fifth person falls ill.
type crowdOf struct{ n, inputs, windows int }

func (c crowdOf) Persons() int   { return c.n }
func (c crowdOf) ID(i int) int64 { return int64(i) }
func (c crowdOf) Inputs() int    { return c.inputs }
func (c crowdOf) Windows() int   { return c.windows }
func (c crowdOf) Under(r data.NodeRule) (data.People, int, bool, error) {
	if r.Most < 1 {
		return nil, 0, false, errors.New("nobody")
	}
	return c, r.Most, true, nil
}

func (c crowdOf) Input(dst []float32, person, window int) int {
	for j := range dst {
		dst[j] = float32(math.Sin(float64(1 + person*31 + window*17 + j*7)))
	}
	dst[len(dst)-1] = 1
	switch {
	case (person+window)%7 == 0:
		return -1
	case person%5 == 0:
		return 1
	}
	return 0
}

func riskOf(t *testing.T, loss Loss, c crowdOf, r Runner) (Learner, []float64, *data.Client) {
	t.Helper()
	m := Model(Risk{Linear: Linear{Features: c.inputs, Classes: 2, Loss: loss, Emphasis: Emphasis{Alpha: 0.75, Gamma: 2}}, Windows: c.windows, Start: -1})
	if r != nil {
		m = Spread(m, r)
	}
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	theta := make([]float64, c.inputs)
	m.Initialise(theta, stream("theta"))
	if theta[len(theta)-1] != -1 {
		t.Fatalf("the constant starts with %v", theta[len(theta)-1])
	}
	for j := range theta {
		theta[j] += 0.1 * float64(j)
	}
	return l, theta, &data.Client{People: c, Rows: data.Rows{Features: c.inputs}}
}

// valueOf is a linear model's value of an input.
func valueOf(theta []float64, x []float32) (sum float64) {
	for j, v := range x {
		sum += theta[j] * float64(v)
	}
	return sum
}

// TestRiskGradient: a person's gradient is the sum over its windows that count, by
// differences of the loss; a step is their mean, or the sum of what is left of them after
// clipping, over the divisor.
func TestRiskGradient(t *testing.T) {
	c := crowdOf{3000, 6, 3} // several crowds
	l, theta, client := riskOf(t, CrossEntropy, c, nil)
	loss := func(theta []float64, person int) (sum float64) {
		x := make([]float32, c.inputs)
		for w := range c.windows {
			if label := c.Input(x, person, w); label >= 0 {
				z := valueOf(theta, x)
				sum += math.Log1p(math.Exp(z)) - float64(label)*z
			}
		}
		return sum
	}
	gradients := make([][]float64, c.n)
	for i := range gradients {
		gradients[i] = make([]float64, c.inputs)
		for j := range theta {
			const h = 1e-5
			up, down := append([]float64(nil), theta...), append([]float64(nil), theta...)
			up[j], down[j] = up[j]+h, down[j]-h
			gradients[i][j] = (loss(up, i) - loss(down, i)) / (2 * h)
		}
	}
	batch := identity(new([]int), c.n)
	for _, clip := range []float64{0, 0.9} {
		want := make([]float64, c.inputs)
		for _, g := range gradients {
			norm := 0.0
			for _, v := range g {
				norm += v * v
			}
			factor := 1.0
			if norm = math.Sqrt(norm); clip > 0 && norm > clip {
				factor = clip / norm
			}
			for j, v := range g {
				want[j] += factor * v
			}
		}
		divisor := c.n
		if clip > 0 {
			divisor = 10_000
		}
		got := make([]float64, c.inputs)
		if err := l.Gradient(got, theta, client, batch, &Step{Clip: clip, Divisor: divisor}); err != nil {
			t.Fatal(err)
		}
		for j := range want {
			if w := want[j] / float64(divisor); math.Abs(got[j]-w) > 1e-8 {
				t.Errorf("clip %v, weight %d: %v, want %v", clip, j, got[j], w)
			}
		}
	}
	for name, try := range map[string]func() error{
		"rows": func() error { return l.Gradient(make([]float64, 6), theta, &data.Client{}, nil, &Step{}) },
		"other inputs": func() error {
			return l.Gradient(make([]float64, 6), theta, &data.Client{People: crowdOf{5, 4, 3}}, nil, &Step{})
		},
		"no such person": func() error { return l.Gradient(make([]float64, 6), theta, client, []int{c.n}, &Step{}) },
		"little room":    func() error { return l.Gradient(make([]float64, 5), theta, client, nil, &Step{}) },
	} {
		if try() == nil {
			t.Errorf("%s are taken", name)
		}
	}
	if _, err := (Risk{Linear: Linear{Features: 3, Loss: SquaredError}, Windows: 1}).Learner(); err == nil {
		t.Error("a loss of values is taken")
	}
}

// TestRiskWorkers: steps and figures are the same, bit for bit, for any number of workers,
// in floats and on the lattice, under both losses.
func TestRiskWorkers(t *testing.T) {
	c := crowdOf{5000, 6, 3}
	workers := pool.New(3)
	defer workers.Close()
	for _, loss := range []Loss{CrossEntropy, Focal} {
		for _, exact := range []bool{false, true} {
			var results [2][]float64
			for k, r := range []Runner{nil, workers} {
				l, theta, client := riskOf(t, loss, c, r)
				rule := mech.StepRule{Clip: 0.5, Noise: 2, Sampling: event.FullBatch, Nodes: 4}
				paid, err := mech.NewPaid(event.Release{Unit: event.UnitNode, Relation: event.OwnRecord, Claim: event.ClaimProved, Trust: event.TrustHolder, What: rule.Event(event.ClaimProved)})
				if err != nil {
					t.Fatal(err)
				}
				from := mech.Randomness{Keyed: stream("noise")}
				if exact {
					from = mech.Randomness{Exact: mech.NewEntropy(stream("noise"))}
				}
				var steps mech.Steps
				if err := steps.Open(paid, rule, mech.NewEntropy(stream("batches")), from); err != nil {
					t.Fatal(err)
				}
				batch, err := steps.Batch(c.n)
				if err != nil {
					t.Fatal(err)
				}
				g := make([]float64, c.inputs)
				if err := l.Gradient(g, theta, client, batch, &Step{Paid: &steps, Divisor: 100}); err != nil {
					t.Fatal(err)
				}
				values, each, err := l.Outputs(nil, theta, client)
				if err != nil || each != 1 || len(values) != c.n {
					t.Fatal(each, len(values), err)
				}
				mean, wrong, err := l.Judge(theta, client)
				if err != nil {
					t.Fatal(err)
				}
				results[k] = append(append(g, values...), mean, float64(wrong))
			}
			for i, v := range results[0] {
				if v != results[1][i] {
					t.Fatalf("%s, exact %v: value %d is %v, and %v with three workers", loss, exact, i, v, results[1][i])
				}
			}
			if results[0][c.inputs] != BeyondDoubt { // person 0 does not count in window 0
				t.Errorf("somebody who cannot fall ill has the value %v", results[0][c.inputs])
			}
		}
	}
}

// drawnAnew are people whose contacts are drawn anew: which secrets they were asked for.
type drawnAnew struct {
	crowdOf
	asked *[][16]byte
}

func (d drawnAnew) Redraw(secret [16]byte, _ float64) (data.People, error) {
	*d.asked = append(*d.asked, secret)
	return d.crowdOf, nil
}

// TestStepsRedraw: every step of a pass that was paid for so has contacts of its own draw,
// and none is taken on people, or paid for in a way, that does not belong together. A blank
// step reads nobody.
func TestStepsRedraw(t *testing.T) {
	crowd := crowdOf{300, 4, 2}
	l, theta, c := riskOf(t, CrossEntropy, crowd, nil)
	var asked [][16]byte
	anew := *c
	anew.People = drawnAnew{crowd, &asked}
	open := func(keep float64, times int64) *mech.Steps {
		rule := mech.StepRule{Clip: 1, Noise: 30, Sampling: event.FullBatch, Nodes: 20, Keep: keep}
		paid, err := mech.NewPaid(event.Release{
			Unit: event.UnitNode, Relation: event.Removal, Claim: event.ClaimProved, Trust: event.TrustHolder,
			What: event.Repeated{Times: times, Of: rule.Event(event.ClaimProved)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var s mech.Steps
		if err := s.Open(paid, rule, mech.SystemEntropy(), mech.Randomness{Exact: mech.SystemEntropy()}); err != nil {
			t.Fatal(err)
		}
		return &s
	}
	train := func(c *data.Client, keep float64, blank bool) error {
		p := Pass{Step: Step{Paid: open(keep, 3), Divisor: 300}, Count: 3, StepSize: 1, Blank: blank}
		return l.Train(theta, c, &p)
	}
	if err := train(&anew, 0.1, false); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 3 || asked[0] == asked[1] || asked[1] == asked[2] {
		t.Errorf("three steps drew by %x", asked)
	}
	if err := train(&anew, 0, false); err == nil {
		t.Error("people to be thinned are trained on by a step that was not paid for so")
	}
	if err := train(c, 0.1, false); err == nil {
		t.Error("a step that was paid for thinned contacts reads all of them")
	}
	before := append([]float64(nil), theta...)
	for _, keep := range []float64{0, 0.1} {
		if err := train(&data.Client{Rows: data.Rows{Features: 4}}, keep, true); err != nil {
			t.Errorf("blank steps: %v", err)
		}
	}
	if len(asked) != 3 || before[0] == theta[0] {
		t.Error("blank steps read somebody, or add no noise")
	}
}
