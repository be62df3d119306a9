package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// TestFocalLoss holds it against its definition, and at the ends of the logits, where
// powers of numbers that round to 0 would be no numbers.
func TestFocalLoss(t *testing.T) {
	for _, gamma := range []float64{0.5, 1, 2, 5} {
		e := Emphasis{Alpha: 0.75, Gamma: gamma}
		for _, z := range []float64{-3, -0.1, 0, 0.4, 2} {
			p := 1 / (1 + math.Exp(-z))
			for label, alpha := range []float64{0.25, 0.75} {
				want := -alpha * math.Pow(1-p, gamma) * math.Log(p)
				const h = 1e-6
				up, _ := e.focal(z+h, 2, label)
				down, _ := e.focal(z-h, 2, label)
				loss, slope := e.focal(z, 2, label)
				if math.Abs(loss-want) > 1e-12 || math.Abs(slope-(up-down)/(2*h)) > 1e-8 {
					t.Errorf("gamma %v, z %v, class %d: %v and %v, want %v and %v", gamma, z, label, loss, slope, want, (up-down)/(2*h))
				}
			}
		}
		for _, z := range []float64{-800, -40, 40, 800} {
			loss, slope := e.focal(z, 3, 1)
			if want := max(0, -z); math.Abs(loss-want) > 1e-6 || math.Abs(slope+math.Min(1, want)) > 1e-6 {
				t.Errorf("gamma %v, z %v: %v and %v", gamma, z, loss, slope)
			}
		}
	}
}

// TestEmphasisedNetworks: gradients, clipped sums and norms of weighted and focal losses
// are those of differences, on one logit and on a score a class.
func TestEmphasisedNetworks(t *testing.T) {
	in := Shape{1, 1, 4}
	for _, outputs := range []int{1, 2, 3} {
		classes := max(2, outputs)
		for _, loss := range []Loss{CrossEntropy, Focal} {
			e := Emphasis{Alpha: 0.75, Gamma: 2, Weights: []float64{0.5, 4, 1}[:classes]}
			trained, judged, err := objectives[float64](loss, e, classes, outputs)
			if err != nil {
				t.Fatal(err)
			}
			engine, theta := newEngine[float64](t, in, []Layer{{Kind: "linear", Units: 5}, {Kind: "tanh"}, {Kind: "linear", Units: outputs}}, trained, 1)
			checkGradients(t, loss.String(), engine, theta)
			out, d := normals[float64]("out", outputs, 1), make([]float64, outputs)
			plain, _, err := objectives[float64](CrossEntropy, Emphasis{}, classes, outputs)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := judged.loss(out, 1, nil, d), plain.loss(out, 1, nil, d); a != b {
				t.Errorf("%s of %d outputs is judged by %v, not by the cross entropy %v", loss, outputs, a, b)
			}
		}
	}
}

// softmaxLoss is a second way to one row's loss, from its definition.
func softmaxLoss(m Softmax, theta []float64, c *data.Client, i int) float64 {
	one := len(theta) / m.Classes
	z, sum := make([]float64, m.Classes), 0.0
	for k := range z {
		for j := range m.Features {
			z[k] += theta[k*one+j] * c.X[i*m.Features+j]
		}
		if m.Intercept {
			z[k] += theta[k*one+m.Features]
		}
		sum += math.Exp(z[k])
	}
	label := int(c.Y[i])
	p, weight := math.Exp(z[label])/sum, 1.0
	if m.Emphasis.Weights != nil {
		weight = m.Emphasis.Weights[label]
	}
	switch m.Loss {
	case Focal:
		return -weight * math.Pow(1-p, m.Emphasis.Gamma) * math.Log(p)
	case HalfSquaredError:
		squares := 0.0
		for k, v := range z {
			if k == label {
				v--
			}
			squares += v * v / float64(len(z))
		}
		return squares / 2
	}
	return -weight * math.Log(p)
}

// threeClasses are rows of three classes.
func threeClasses(features, n int) *data.Client {
	c := &data.Client{Rows: someRows(features, n)}
	for i := range c.Y {
		c.Y[i] = float64(i % 3)
	}
	return c
}

// TestSoftmaxGradients: every way to a gradient of a softmax (plain, clipped, shifted,
// exact) is that of differences, clipped one by one.
func TestSoftmaxGradients(t *testing.T) {
	c := threeClasses(4, 30)
	for _, loss := range []Loss{CrossEntropy, Focal, HalfSquaredError} {
		for _, intercept := range []bool{false, true} {
			m := Softmax{Linear{Features: 4, Intercept: intercept, Loss: loss, Classes: 3, Emphasis: Emphasis{Gamma: 2}}}
			if intercept && loss.OfClasses() {
				m.Emphasis.Weights = []float64{1, 0.3, 5}
			}
			theta := normals[float64]("theta", m.Parameters(), 0.4)
			l, got := learnerOf(t, m), make([]float64, len(theta))
			for _, batch := range [][]int{{}, {2}, {9, 1, 20, 29, 0}} {
				for _, shift := range [][]float64{nil, normals[float64]("shift", len(theta), 0.3)} {
					for _, clip := range []float64{0, 0.4, 100} {
						want := make([]float64, len(theta))
						for _, i := range batch {
							g, norm := make([]float64, len(theta)), 0.0
							for j := range theta {
								const h = 1e-5
								up, down := slices.Clone(theta), slices.Clone(theta)
								up[j] += h
								down[j] -= h
								if g[j] = (softmaxLoss(m, up, c, i) - softmaxLoss(m, down, c, i)) / (2 * h); shift != nil {
									g[j] += shift[j]
								}
								norm += g[j] * g[j]
							}
							factor := 1.0
							if norm = math.Sqrt(norm); clip > 0 && norm > clip {
								factor = clip / norm
							}
							for j, v := range g {
								want[j] += factor * v
							}
						}
						divisor := 7.0
						if clip == 0 {
							divisor = float64(max(1, len(batch)))
						}
						if err := l.Gradient(got, theta, c, batch, &Step{Clip: clip, Divisor: 7, Shift: shift}); err != nil {
							t.Fatal(err)
						}
						for j, v := range want {
							if math.Abs(got[j]-v/divisor) > 1e-7 {
								t.Fatalf("%s, intercept %v, %d rows, clip %v, shift %v: coordinate %d is %v, want %v", loss, intercept, len(batch), clip, shift != nil, j, got[j], v/divisor)
							}
						}
					}
				}
			}
		}
	}
}

// TestSoftmaxWithExactNoise: on a fine lattice with little noise the exact sum is the
// float one.
func TestSoftmaxWithExactNoise(t *testing.T) {
	c := threeClasses(4, 30)
	m := Softmax{Linear{Features: 4, Intercept: true, Loss: CrossEntropy, Classes: 3}}
	theta := normals[float64]("theta", m.Parameters(), 0.4)
	l, plain, exact := learnerOf(t, m), make([]float64, m.Parameters()), make([]float64, m.Parameters())
	batch := []int{9, 1, 20, 29, 0}
	if err := l.Gradient(plain, theta, c, batch, &Step{Clip: 0.4, Divisor: 5}); err != nil {
		t.Fatal(err)
	}
	step := begin(t, Step{Paid: paidSteps(t, 0.4, 1e-9, mech.Randomness{Exact: mech.SystemEntropy()}), Divisor: 5})
	if err := l.Gradient(exact, theta, c, batch, step); err != nil {
		t.Fatal(err)
	}
	for j := range plain {
		if math.Abs(plain[j]-exact[j]) > 1e-7 {
			t.Errorf("coordinate %d is %v exactly, %v in floats", j, exact[j], plain[j])
		}
	}
}

// TestSoftmaxLeavesOutWhatIsNotFinite: a row whose gradient is no number counts as zero
// where rows are clipped, under either loss.
func TestSoftmaxLeavesOutWhatIsNotFinite(t *testing.T) {
	c := threeClasses(4, 30)
	for _, loss := range []Loss{CrossEntropy, Focal} {
		m := Softmax{Linear{Features: 4, Intercept: true, Loss: loss, Classes: 3, Emphasis: Emphasis{Gamma: 2}}}
		theta := normals[float64]("theta", m.Parameters(), 0.4)
		l, with, without := learnerOf(t, m), make([]float64, m.Parameters()), make([]float64, m.Parameters())
		theta[0], theta[5] = 2, 2
		copy(c.X[9*4:], []float64{math.MaxFloat64, 0, 0, 0}) // two infinite outputs: the slopes are no numbers
		step := &Step{Clip: 0.4, Divisor: 5}
		if err := l.Gradient(without, theta, c, []int{1, 20}, step); err != nil {
			t.Fatal(err)
		}
		if err := l.Gradient(with, theta, c, []int{1, 9, 20}, step); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(with, without) {
			t.Errorf("%s: %v, without the row %v", loss, with, without)
		}
	}
}

// TestSoftmaxJudges: losses, errors and outputs agree, whatever is trained; two classes
// as a softmax are the logistic regression of the difference.
func TestSoftmaxJudges(t *testing.T) {
	c := threeClasses(4, 50)
	plain := Softmax{Linear{Features: 4, Loss: CrossEntropy, Classes: 3}}
	theta := normals[float64]("theta", plain.Parameters(), 0.4)
	want, wrong, err := learnerOf(t, plain).Judge(theta, c)
	if err != nil {
		t.Fatal(err)
	}
	focal := plain
	focal.Linear.Loss, focal.Emphasis = Focal, Emphasis{Gamma: 2, Weights: []float64{1, 9, 1}}
	l := learnerOf(t, focal)
	losses, sum := make([]float64, 50), 0.0
	if err := l.Losses(losses, theta, c); err != nil {
		t.Fatal(err)
	}
	for i, v := range losses {
		sum += v / 50
		if math.Abs(v-softmaxLoss(plain, theta, c, i)) > 1e-12 {
			t.Fatalf("row %d: %v", i, v)
		}
	}
	got, missed, err := l.Judge(theta, c)
	if err != nil || math.Abs(got-want) > 1e-12 || missed != wrong || math.Abs(sum-want) > 1e-12 {
		t.Errorf("focal is judged by %v and %d wrong, want %v and %d (%v)", got, missed, want, wrong, err)
	}
	outputs, each, err := l.Outputs(nil, theta, c)
	if err != nil || each != 3 || len(outputs) != 150 {
		t.Errorf("%d outputs of %d (%v)", len(outputs), each, err)
	}
	c.Y[7] = 3
	if _, _, err := l.Judge(theta, c); err == nil || !strings.Contains(err.Error(), "row 7 has the class 3; allowed: 0 to 2") {
		t.Errorf("a fourth class: %v", err)
	}
	if err := l.Gradient(make([]float64, len(theta)), theta, c, []int{7}, &Step{}); err == nil {
		t.Error("a fourth class was trained on")
	}
	if err := l.Gradient(make([]float64, len(theta)), theta, c, []int{50}, &Step{}); err == nil {
		t.Error("row 50 of 50 was trained on")
	}
	if _, err := l.Loss(theta[1:], c); err == nil {
		t.Error("a parameter is missing and nobody noticed")
	}
}

func TestCheckEmphasis(t *testing.T) {
	for name, v := range map[string]struct {
		kind string
		l    config.Local
		path string
		says string
	}{
		"weights":            {"vehicle", config.Local{Loss: "cross-entropy", ClassWeights: []float64{1, 5}}, "", ""},
		"weights of a hinge": {"vehicle", config.Local{Loss: "hinge", ClassWeights: []float64{1, 5}}, "", ""},
		"focal":              {"vehicle", config.Local{Loss: "focal", FocalAlpha: 0.9, FocalGamma: 1}, "", ""},
		"focal pictures":     {"rotated-mnist", config.Local{Loss: "focal", FocalGamma: 1}, "", ""},
		"three for two":      {"vehicle", config.Local{Loss: "cross-entropy", ClassWeights: []float64{1, 5, 1}}, "algorithm.local.class_weights", "allowed: 2"},
		"of values":          {"school", config.Local{Loss: "squared-error", ClassWeights: []float64{1, 5}}, "algorithm.local.class_weights", "only with cross-entropy"},
		"nothing":            {"vehicle", config.Local{Loss: "hinge", ClassWeights: []float64{0, 1}}, "algorithm.local.class_weights.0", "above 0"},
		"no number":          {"vehicle", config.Local{Loss: "hinge", ClassWeights: []float64{1, math.NaN()}}, "algorithm.local.class_weights.1", "above 0"},
		"alpha alone":        {"vehicle", config.Local{Loss: "hinge", FocalAlpha: 0.5}, "algorithm.local.focal_alpha", "only with focal"},
		"gamma alone":        {"vehicle", config.Local{Loss: "hinge", FocalGamma: 0.5}, "algorithm.local.focal_gamma", "only with focal"},
		"alpha of ten":       {"rotated-mnist", config.Local{Loss: "focal", FocalAlpha: 0.5}, "algorithm.local.focal_alpha", "allowed: class_weights"},
	} {
		run := config.Default(v.kind, "", "paper")
		own := &run.Algorithm.Local
		own.Loss, own.ClassWeights, own.FocalAlpha, own.FocalGamma = v.l.Loss, v.l.ClassWeights, v.l.FocalAlpha, v.l.FocalGamma
		faults := Check(run)
		if v.path == "" && faults != nil || v.path != "" && (len(faults) != 1 || faults[0].Path != v.path || !strings.Contains(faults[0].Message, v.says)) {
			t.Errorf("%s: %v, wanted %q at %s", name, faults, v.says, v.path)
		}
	}
	e, err := newEmphasis(config.Local{}, Focal, 2)
	if err != nil || e.Alpha != 0.75 || e.Gamma != 2 {
		t.Errorf("the focal loss's defaults are %+v (%v)", e, err)
	}
}
