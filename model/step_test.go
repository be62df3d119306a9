package model

import (
	"math"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
)

// paidSteps are steps that somebody has paid for, more than a test can take, on
// batches of everything.
func paidSteps(tb testing.TB, clip, noise float64, from mech.Randomness) *mech.Steps {
	tb.Helper()
	return sampledSteps(tb, mech.StepRule{Clip: clip, Noise: noise, Sampling: event.Poisson, Rate: 1}, stream("batches"), from)
}

// sampledSteps are the same by a rule, with batches from a source.
func sampledSteps(tb testing.TB, rule mech.StepRule, batches *rng.Stream, from mech.Randomness) *mech.Steps {
	tb.Helper()
	paid, err := mech.NewPaid(event.Release{
		Unit: exampleTerms.Unit, Relation: exampleTerms.Relation, Trust: exampleTerms.Trust, Claim: event.ClaimProved,
		What: event.Repeated{Times: 1 << 40, Of: rule.Event(event.ClaimProved)},
	})
	if err != nil {
		tb.Fatal(err)
	}
	s := new(mech.Steps)
	if err := s.Open(paid, rule, mech.NewEntropy(batches), from); err != nil {
		tb.Fatal(err)
	}
	return s
}

// begin starts one of the steps, whose batch the test chooses itself.
func begin(tb testing.TB, s Step) *Step {
	if s.Paid != nil {
		if err := s.Paid.Blank(); err != nil {
			tb.Fatal(err)
		}
	}
	return &s
}

// learnerOf is a model's learner.
func learnerOf(tb testing.TB, m Model) Learner {
	tb.Helper()
	l, err := m.Learner()
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// rowsFor are rows whose targets suit a loss.
func rowsFor(loss Loss, features, n int) *data.Client {
	c := &data.Client{Rows: someRows(features, n)}
	if loss.OfClasses() {
		for i, y := range c.Y {
			c.Y[i] = 0
			if y > 0 {
				c.Y[i] = 1
			}
		}
	}
	return c
}

// trainingLoss is a second way to one row's training loss, from its definition.
func trainingLoss(m Linear, theta []float64, c *data.Client, i int) float64 {
	out := 0.0
	for j := range m.Features {
		out += theta[j] * c.X[i*m.Features+j]
	}
	if m.Intercept {
		out += theta[m.Features]
	}
	weight := 1.0
	if m.Emphasis.Weights != nil {
		weight = m.Emphasis.Weights[int(c.Y[i])]
	}
	switch sign := 2*c.Y[i] - 1; m.Loss {
	case CrossEntropy:
		return weight * math.Log(1+math.Exp(-sign*out))
	case Hinge:
		return weight * math.Max(0, 1-sign*out)
	case Focal:
		p, alpha := 1/(1+math.Exp(-sign*out)), m.Emphasis.Alpha
		if sign < 0 {
			alpha = 1 - alpha
		}
		return -weight * alpha * math.Pow(1-p, m.Emphasis.Gamma) * math.Log(p)
	}
	return (out - c.Y[i]) * (out - c.Y[i]) / 2
}

// slowSum is a second way to the clipped sum: every gradient by differences, then
// shifted, then clipped.
func slowSum(m Linear, theta []float64, c *data.Client, batch []int, clip float64, shift []float64) []float64 {
	sum := make([]float64, len(theta))
	for _, i := range batch {
		g, norm := make([]float64, len(theta)), 0.0
		for j := range theta {
			const h = 1e-5
			up, down := append([]float64(nil), theta...), append([]float64(nil), theta...)
			up[j] += h
			down[j] -= h
			g[j] = (trainingLoss(m, up, c, i) - trainingLoss(m, down, c, i)) / (2 * h)
			if shift != nil {
				g[j] += shift[j]
			}
			norm += g[j] * g[j]
		}
		factor := 1.0
		if norm = math.Sqrt(norm); clip > 0 && norm > clip {
			factor = clip / norm
		}
		for j := range sum {
			sum[j] += factor * g[j]
		}
	}
	return sum
}

func TestLinearGradients(t *testing.T) {
	for _, loss := range []Loss{HalfSquaredError, CrossEntropy, Hinge, Focal} {
		for _, intercept := range []bool{false, true} {
			m := Linear{Features: 5, Intercept: intercept, Loss: loss, Emphasis: Emphasis{Alpha: 0.7, Gamma: 1.5}}
			if intercept && loss.OfClasses() {
				m.Emphasis.Weights = []float64{0.5, 3}
			}
			c := rowsFor(loss, 5, 40)
			theta := normals[float64]("theta", m.Parameters(), 0.3)
			l := learnerOf(t, m)
			got := make([]float64, len(theta))
			for _, batch := range [][]int{{}, {3}, {8, 1, 30, 2, 39, 0, 17}} {
				for _, shift := range [][]float64{nil, normals[float64]("shift", len(theta), 0.5)} {
					for _, clip := range []float64{0, 0.5, 100} {
						step := Step{Clip: clip, Divisor: 7, Shift: shift}
						if err := l.Gradient(got, theta, c, batch, &step); err != nil {
							t.Fatal(err)
						}
						divisor := 7.0
						if clip == 0 {
							divisor = float64(max(1, len(batch)))
						}
						for j, want := range slowSum(m, theta, c, batch, clip, shift) {
							if math.Abs(got[j]-want/divisor) > 1e-7 {
								t.Errorf("loss %d, intercept %v, %d rows, clip %v, shift %v: coordinate %d is %v, want %v", loss, intercept, len(batch), clip, shift != nil, j, got[j], want/divisor)
							}
						}
					}
				}
			}
		}
	}
}

// One row more must not move a sum by more than the clip, whatever the row: this is
// what all noise is measured by.
func TestStepsKeepTheirSensitivity(t *testing.T) {
	m := Linear{Features: 6, Intercept: true, Loss: HalfSquaredError}
	c := rowsFor(HalfSquaredError, 6, 20)
	for j := range 6 {
		c.X[j] = 1e3 // row 0 is far off
	}
	l := learnerOf(t, m)
	theta := normals[float64]("theta", 7, 1)
	shift := normals[float64]("shift", 7, 5)
	with, without := make([]float64, 7), make([]float64, 7)
	moved := func(step Step) float64 {
		for _, v := range []struct {
			dst   []float64
			batch []int
		}{{with, []int{0, 1, 2, 3}}, {without, []int{1, 2, 3}}} {
			if err := l.Gradient(v.dst, theta, c, v.batch, &step); err != nil {
				t.Fatal(err)
			}
		}
		sum := 0.0
		for j := range with {
			sum += (with[j] - without[j]) * (with[j] - without[j])
		}
		return math.Sqrt(sum) * float64(step.Divisor)
	}
	for _, s := range [][]float64{nil, shift} {
		if d := moved(Step{Clip: 0.7, Divisor: 4, Shift: s}); d > 0.7+1e-9 || d < 0.69 {
			t.Errorf("one row moves the sum by %v, the clip is 0.7", d)
		}
	}
	// Planted: a shift that is added to every row after it was clipped.
	moved(Step{Clip: 0.7, Divisor: 1})
	planted := 0.0
	for j, v := range shift {
		d := (with[j] + 4*v) - (without[j] + 3*v)
		planted += d * d
	}
	if math.Sqrt(planted) < 0.7+1e-9 {
		t.Errorf("the planted bug moves the sum by %v only: it would not be seen", math.Sqrt(planted))
	}
}

func TestNoiseHasItsScale(t *testing.T) {
	m := Linear{Features: 28, Intercept: true, Loss: HalfSquaredError}
	c := rowsFor(HalfSquaredError, 28, 40)
	theta, clean, noisy := make([]float64, 29), make([]float64, 29), make([]float64, 29)
	batch := []int{1, 2, 3, 4, 5, 6, 7, 8}
	l := learnerOf(t, m)
	if err := l.Gradient(clean, theta, c, batch, &Step{Clip: 0.5, Divisor: 8}); err != nil {
		t.Fatal(err)
	}
	family := rng.NewFamily(1, "exact silo noise")
	for name, from := range map[string]mech.Randomness{
		"simulated": {Keyed: stream("silo noise")},
		"exact":     {Exact: mech.NewEntropy(family.Stream(0, 0))},
	} {
		step := Step{Paid: paidSteps(t, 0.5, 3, from), Divisor: 8}
		const steps = 2000
		var squares, sum float64
		for range steps {
			if err := l.Gradient(noisy, theta, c, batch, begin(t, step)); err != nil {
				t.Fatal(err)
			}
			for j := range noisy {
				d := (noisy[j] - clean[j]) / (0.5 * 3.0 / 8)
				squares, sum = squares+d*d, sum+d
			}
		}
		// Sums of n = 58,000 squared normals have deviation sqrt(2n); 4.9 of them are
		// passed once in a million.
		n := steps * 29.0
		if z := (squares - n) / math.Sqrt(2*n); math.Abs(z) > 4.9 {
			t.Errorf("%s: noise is off by %v standard deviations in scale", name, z)
		}
		if z := sum / math.Sqrt(n); math.Abs(z) > 4.9 {
			t.Errorf("%s: noise is off by %v standard deviations in its mean", name, z)
		}
		if z := (squares*1.05 - n) / math.Sqrt(2*n); math.Abs(z) < 4.9 {
			t.Errorf("%s: noise wrong by 2.5 %% would not be seen", name)
		}
	}
}

func TestExactSumsAreTheClippedOnes(t *testing.T) {
	m := Linear{Features: 28, Intercept: true, Loss: HalfSquaredError}
	c := rowsFor(HalfSquaredError, 28, 40)
	theta := normals[float64]("theta", 29, 0.2)
	shift := normals[float64]("shift", 29, 0.1)
	batch := []int{9, 3, 3, 21}
	l := learnerOf(t, m)
	floats, exact := make([]float64, 29), make([]float64, 29)
	for _, s := range [][]float64{nil, shift} {
		if err := l.Gradient(floats, theta, c, batch, &Step{Clip: 0.5, Divisor: 4, Shift: s}); err != nil {
			t.Fatal(err)
		}
		// Noise of 1e-9 clips leaves the sum to be seen.
		step := Step{Paid: paidSteps(t, 0.5, 1e-9, mech.Randomness{Exact: mech.SystemEntropy()}), Divisor: 4, Shift: s}
		if err := l.Gradient(exact, theta, c, batch, begin(t, step)); err != nil {
			t.Fatal(err)
		}
		for j := range floats {
			if math.Abs(floats[j]-exact[j]) > 1e-8 {
				t.Errorf("coordinate %d: %v, as integers %v", j, floats[j], exact[j])
			}
		}
	}
}

func TestStepsRefuse(t *testing.T) {
	m := Linear{Features: 2, Intercept: true, Loss: HalfSquaredError}
	c := rowsFor(HalfSquaredError, 2, 5)
	l := learnerOf(t, m)
	good := Step{Paid: paidSteps(t, 1, 1, mech.Randomness{Keyed: stream("x")}), Divisor: 2}
	for name, change := range map[string]func(*Step){
		"a clip below 0":    func(s *Step) { s.Paid, s.Clip = nil, -1 },
		"a clip of NaN":     func(s *Step) { s.Paid, s.Clip = nil, math.NaN() },
		"a second clip":     func(s *Step) { s.Clip = 1 },
		"divisor 0":         func(s *Step) { s.Divisor = 0 },
		"a short shift":     func(s *Step) { s.Shift = []float64{1} },
		"an infinite shift": func(s *Step) { s.Shift = []float64{1, math.Inf(1), 0} },
		"exact, empty source": func(s *Step) {
			s.Paid = paidSteps(t, 1, 1, mech.Randomness{Exact: mech.NewEntropy(strings.NewReader(""))})
		},
	} {
		step := good
		change(&step)
		if err := l.Gradient(make([]float64, 3), make([]float64, 3), c, []int{0, 1}, begin(t, step)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, err := range map[string]error{
		"a row that is not there": l.Gradient(make([]float64, 3), make([]float64, 3), c, []int{5}, &good),
		"a short destination":     l.Gradient(make([]float64, 2), make([]float64, 3), c, []int{1}, &good),
		"a short model":           l.Gradient(make([]float64, 3), make([]float64, 2), c, []int{1}, &good),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestJudge(t *testing.T) {
	c := &data.Client{Rows: data.Rows{Features: 1, X: []float64{1, 2, -1}, Y: []float64{1, 0, 0}}}
	for _, v := range []struct {
		loss  Loss
		mean  float64
		wrong int
	}{
		{HalfSquaredError, (1 + 16 + 4) / 3.0, 0},
		{Hinge, (0 + 5 + 0) / 3.0, 1},
		{CrossEntropy, (math.Log(1+math.Exp(-2)) + math.Log(1+math.Exp(4)) + math.Log(1+math.Exp(-2))) / 3, 1},
	} {
		l := learnerOf(t, Linear{Features: 1, Loss: v.loss})
		mean, wrong, err := l.Judge([]float64{2}, c)
		if err != nil {
			t.Fatal(err)
		}
		losses := make([]float64, 3)
		if err := l.Losses(losses, []float64{2}, c); err != nil {
			t.Fatal(err)
		}
		if math.Abs(mean-v.mean) > 1e-12 || wrong != v.wrong || math.Abs((losses[0]+losses[1]+losses[2])/3-v.mean) > 1e-12 {
			t.Errorf("loss %d: %v and %d wrong, want %v and %d; by row %v", v.loss, mean, wrong, v.mean, v.wrong, losses)
		}
	}
}

func TestStepsTakeNoMemory(t *testing.T) {
	m := Linear{Features: 28, Intercept: true, Loss: HalfSquaredError}
	c := rowsFor(HalfSquaredError, 28, 64)
	l := learnerOf(t, m)
	theta, grad := make([]float64, 29), make([]float64, 29)
	batch := make([]int, 32)
	for _, noise := range []float64{0, 2} {
		step := Step{Clip: 1, Divisor: 32}
		if noise > 0 {
			step = Step{Paid: paidSteps(t, 1, noise, mech.Randomness{Keyed: stream("memory")}), Divisor: 32}
		}
		n := testing.AllocsPerRun(100, func() {
			if step.Paid != nil {
				if err := step.Paid.Blank(); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Gradient(grad, theta, c, batch, &step); err != nil {
				t.Fatal(err)
			}
			if _, _, err := l.Judge(theta, c); err != nil {
				t.Fatal(err)
			}
		})
		// The event that the mechanism names is one small value a step.
		if limit := min(1, noise); n > limit {
			t.Errorf("a step with noise %v takes memory %v times", noise, n)
		}
	}
}
