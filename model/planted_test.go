package model

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
)

// plantedModels are one of every learner that clips, with a client of three examples.
func plantedModels(t *testing.T) map[string]Model {
	t.Helper()
	out := map[string]Model{}
	for name, c := range map[string]struct {
		model   config.Model
		loss    string
		classes int
	}{
		"linear":  {config.Model{Kind: "linear"}, "squared-error", 0},
		"softmax": {config.Model{Kind: "linear"}, "cross-entropy", 3},
		"network": {config.Model{Kind: "network", Layers: []config.Layer{{Kind: "linear", Units: 3}}}, "cross-entropy", 3},
	} {
		run := config.Run{Model: c.model}
		run.Algorithm.Local.Loss = c.loss
		m, err := Of(run, data.Shape{Features: 5, Classes: c.classes})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = m
	}
	return out
}

// openedSteps are n paid Poisson steps of rate 1 with next to no noise.
func openedSteps(t *testing.T, n int, exact bool) *mech.Steps {
	t.Helper()
	rule := mech.StepRule{Clip: 0.5, Noise: 1e-6, Sampling: event.Poisson, Rate: 1}
	release := event.Release{
		Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustLocal,
		What: event.Repeated{Of: rule.Event(event.ClaimProved), Times: int64(n)},
	}
	paid, err := mech.NewPaid(release)
	if err != nil {
		t.Fatal(err)
	}
	family := rng.NewFamily(1, "planted")
	from := mech.Randomness{Keyed: family.Stream(0, 0)}
	if exact {
		from.Exact = mech.SystemEntropy()
	}
	var steps mech.Steps
	if err := steps.Open(paid, rule, mech.SystemEntropy(), from); err != nil {
		t.Fatal(err)
	}
	return &steps
}

// watched notes every step's gradient.
type watched struct {
	Learner
	batches [][]int
	seen    [][]float64
}

func (w *watched) Gradient(dst, theta []float64, c *data.Client, batch []int, s *Step) error {
	err := w.Learner.Gradient(dst, theta, c, batch, s)
	w.batches, w.seen = append(w.batches, append([]int(nil), batch...)), append(w.seen, append([]float64(nil), dst...))
	return err
}

// TestPlanted: in every learner a planted example adds one clip along its coordinate to
// the sum of the others, however long it is, as floats and on the lattice; a shorter one
// adds itself.
func TestPlanted(t *testing.T) {
	c := &data.Client{Rows: data.Rows{Features: 5, X: make([]float64, 15), Y: []float64{0, 1, 2}}}
	for i := range c.X {
		c.X[i] = math.Sin(float64(i))
	}
	for name, m := range plantedModels(t) {
		for _, exact := range []bool{false, true} {
			for length, want := range map[float64]float64{1000: 0.5, -1000: -0.5, 0.25: 0.25} {
				var sums [2][]float64
				for i, planted := range []*Planted{nil, {At: []int{1, 4, 4}, Length: length}} {
					l, err := m.Learner()
					if err != nil {
						t.Fatal(err)
					}
					w := &watched{Learner: l}
					p := Pass{Step: Step{Paid: openedSteps(t, 2, exact), Divisor: 1, Planted: planted}, Count: 2, StepSize: 0}
					if p.Optimiser, err = NewOptimiser(config.Local{Optimiser: "sgd"}); err != nil {
						t.Fatal(err)
					}
					if err := p.Descend(w, make([]float64, m.Parameters()), c); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if len(w.seen) != 2 || len(w.batches[1]) != 3 {
						t.Fatalf("%s: %d steps, batches %v: planted examples are none of the client's", name, len(w.seen), w.batches)
					}
					sums[i] = w.seen[1]
				}
				for j := range sums[0] {
					more := 0.0
					switch j {
					case 1:
						more = want
					case 4:
						more = 2 * want
					}
					if got := sums[1][j] - sums[0][j]; math.Abs(got-more) > 1e-4 {
						t.Errorf("%s, exact %v, length %v: coordinate %d moves by %v, want %v", name, exact, length, j, got, more)
					}
				}
			}
		}
	}
}

// TestPlantedAreDrawn: planted examples come into batches at the rate of all others.
// 4,000 chances at 0.25 leave 5 standard deviations with a probability of 6e-7.
func TestPlantedAreDrawn(t *testing.T) {
	p := Pass{Step: Step{Planted: &Planted{At: make([]int, 10), Length: 1}}, Count: 400}
	p.Sampler = new(mech.Sampler)
	family := rng.NewFamily(2, "planted")
	entropy := mech.SystemEntropy()
	entropy.Reset(family.Stream(0, 0))
	if err := p.Sampler.Open(event.Poisson, 0.25, 0, entropy); err != nil {
		t.Fatal(err)
	}
	if err := p.begin(10); err != nil {
		t.Fatal(err)
	}
	own, planted := 0, 0
	for {
		batch, more, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		own, planted = own+len(batch), planted+len(p.present)
		for _, i := range batch {
			if i >= 10 {
				t.Fatalf("example %d of 10", i)
			}
		}
		for _, i := range p.present {
			if i < 0 || i >= 10 {
				t.Fatalf("planted example %d of 10", i)
			}
		}
	}
	p.Planted, p.Count = nil, 1 // the next client has none
	if err := p.begin(10); err != nil {
		t.Fatal(err)
	}
	p.present = append(p.present, 3)
	if _, _, err := p.next(); err != nil || len(p.present) > 0 {
		t.Errorf("a client without planted examples meets %d of the last one's (%v)", len(p.present), err)
	}
	for name, n := range map[string]int{"own": own, "planted": planted} {
		if math.Abs(float64(n)-1000) > 5*math.Sqrt(750) {
			t.Errorf("%d %s examples were drawn in 4,000 chances at 0.25", n, name)
		}
	}
}

func TestPlantedRefuses(t *testing.T) {
	m := plantedModels(t)["linear"]
	l, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	theta, c := make([]float64, m.Parameters()), &data.Client{Rows: data.Rows{Features: 5}}
	for want, s := range map[string]Step{
		"nothing is clipped":    {Planted: &Planted{At: []int{0}, Length: 1}},
		"parameter 99":          {Clip: 1, Divisor: 1, Planted: &Planted{At: []int{99}, Length: 1}},
		"parameter -1":          {Clip: 1, Divisor: 1, Planted: &Planted{At: []int{-1}, Length: 1}},
		"allowed: finite":       {Clip: 1, Divisor: 1, Planted: &Planted{At: []int{0}, Length: math.NaN()}},
		"length +Inf; allowed:": {Clip: 1, Divisor: 1, Planted: &Planted{At: []int{0}, Length: math.Inf(1)}},
	} {
		if err := l.Gradient(make([]float64, len(theta)), theta, c, nil, &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	p := Pass{Step: Step{Clip: 1, Divisor: 1, Planted: &Planted{At: []int{0}, Length: 1}}, Epochs: 1}
	if err := p.Descend(l, theta, c); err == nil || !strings.Contains(err.Error(), "nothing to draw them by") {
		t.Errorf("whole batches: %v", err)
	}
}
