package evaluate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/model"
)

// tame are rows whose class follows from the first feature, with some noise, or whose
// target does.
func tame(r *rand.Rand, n, classes int) *data.Client {
	c := &data.Client{Rows: data.Rows{Features: 2}}
	for range n {
		x := [2]float64{r.NormFloat64(), r.NormFloat64()}
		y := min(2, max(0, 1+0.3*x[0]+0.1*r.NormFloat64()))
		if classes > 0 {
			y = 0
			if x[0]+0.7*r.NormFloat64() > 0 {
				y = 1
			}
		}
		c.X, c.Y = append(c.X, x[:]...), append(c.Y, y)
	}
	return c
}

// evaluated are the figures of one participant's release.
func (s scene) evaluated(t *testing.T, id int, held *data.Client) Figures {
	t.Helper()
	f, err := s.Figures(s.answer(t, id, held), 1, 2, event.ClaimProved)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFiguresAreThoseOfTheExamples: of many examples and little noise the figures are those
// that are computed without either, and the deviation that is told is the one they have:
// 600 draws within 20 % of it, which is 7 of the estimate's own deviations.
func TestFiguresAreThoseOfTheExamples(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, task := range []struct {
		text, fine string // for the draws, which take their time; for the figures
		classes    int
	}{{strings.Replace(classRun, "bins: 4", "bins: 20", 1), strings.Replace(classRun, "bins: 4", "bins: 100", 1), 2}, {valueRun, valueRun, 0}} {
		held := tame(r, 20_000, task.classes)
		s := newScene(t, fmt.Sprintf(task.text, "nothing", "add-remove", 1), task.classes)
		fine := newScene(t, fmt.Sprintf(task.fine, "nothing", "add-remove", 1), task.classes)
		exact, err := Locally(s.run, s.sent.Hypotheses, held, data.Shape{Classes: task.classes}, s.learner)
		if err != nil {
			t.Fatal(err)
		}
		value := func(f *metrics.Figure) *event.Number {
			if f == nil {
				return nil
			}
			return &f.Value
		}
		type pair struct {
			want *event.Number
			of   func(Figures) *Noised
		}
		pairs := map[string]pair{
			"accuracy": {value(exact.Accuracy), func(f Figures) *Noised { return f.Accuracy }}, "AUC": {value(exact.AUC), func(f Figures) *Noised { return f.AUC }},
			"calibration slope":     {value(exact.CalibrationSlope), func(f Figures) *Noised { return f.CalibrationSlope }},
			"calibration intercept": {value(exact.CalibrationIntercept), func(f Figures) *Noised { return f.CalibrationIntercept }},
			"RMSE":                  {nil, func(f Figures) *Noised { return f.RMSE }}, "MAE": {nil, func(f Figures) *Noised { return f.MAE }}, "R2": {nil, func(f Figures) *Noised { return f.R2 }},
		}
		if task.classes == 0 { // errors count up to the bound
			var squares, absolute, mean, spread float64
			n := float64(held.Len())
			for _, y := range held.Y {
				mean += y / n
			}
			outputs, _, err := s.learner.Outputs(nil, s.sent.Hypotheses, held)
			if err != nil {
				t.Fatal(err)
			}
			for i, y := range held.Y {
				e := min(2, math.Abs(outputs[i]-y))
				squares, absolute, spread = squares+e*e, absolute+e, spread+(y-mean)*(y-mean)
			}
			for name, v := range map[string]float64{"RMSE": math.Sqrt(squares / n), "MAE": absolute / n, "R2": 1 - squares/spread} {
				one := pairs[name]
				number := event.Number(v)
				one.want = &number
				pairs[name] = one
			}
		}
		seen := map[string][]float64{}
		counts, zeros := s.answer(t, 0, held), s.answer(t, 0, nil)
		for id := range 600 { // the noise alone differs
			sums := s.answer(t, id, nil)
			for i := range sums {
				sums[i] += counts[i] - zeros[i]
			}
			told, err := s.Figures(sums, 1, 2, event.ClaimProved)
			if err != nil {
				t.Fatal(err)
			}
			for name, one := range pairs {
				if got := one.of(told); got != nil {
					seen[name] = append(seen[name], float64(got.Value))
				}
			}
		}
		drawn, whole := s.evaluated(t, 0, held), fine.evaluated(t, 0, held)
		for name, one := range pairs {
			got := one.of(whole)
			if (got == nil) != (one.want == nil) {
				t.Errorf("%d classes: %s is %v, want %v", task.classes, name, got, one.want)
				continue
			}
			if got == nil {
				continue
			}
			binned := 2e-3 // equal scores of a bin count half, which moves the AUC a little
			if strings.HasPrefix(name, "calibration") {
				binned = 0.1 // scores stand at the middle of their bin
			}
			if off := math.Abs(float64(got.Value - *one.want)); off > 6*float64(got.NoiseSD)+binned {
				t.Errorf("%s is %v, off by %v; the noise has a deviation of %v", name, got.Value, off, got.NoiseSD)
			}
			mean, squares := 0.0, 0.0
			for _, v := range seen[name] {
				mean += v / float64(len(seen[name]))
			}
			for _, v := range seen[name] {
				squares += (v - mean) * (v - mean)
			}
			has, says := math.Sqrt(squares/float64(len(seen[name])-1)), float64(one.of(drawn).NoiseSD)
			if len(seen[name]) != 600 || math.Abs(has/says-1) > 0.2 {
				t.Errorf("%s has a deviation of %v from %d draws of noise, and says %v", name, has, len(seen[name]), says)
			}
		}
		if whole.Asked != 2 || whole.Participants != 1 || math.Abs(float64(whole.Examples.Value)-20_000) > 6*float64(whole.Examples.NoiseSD) {
			t.Errorf("%d classes: %+v", task.classes, whole)
		}
	}
}

// TestHistogramByHand: cells are where they should be, of two classes and of more.
func TestHistogramByHand(t *testing.T) {
	s := newScene(t, fmt.Sprintf(classRun, "nothing", "add-remove", 1), 2)
	cell := func(classes int, label float64, outputs ...float64) int {
		e := *s.Evaluation
		e.classes = classes
		dst := make([]float64, e.Length())
		if err := e.term(dst, outputs, label); err != nil {
			return -1
		}
		at, ones := -1, 0
		for i, v := range dst {
			if v == 1 {
				at, ones = i, ones+1
			} else if v != 0 {
				t.Errorf("cell %d has %v", i, v)
			}
		}
		if ones != 1 {
			t.Errorf("%v of class %v counts in %d cells", outputs, label, ones)
		}
		return at
	}
	for _, c := range []struct {
		classes int
		label   float64
		outputs []float64
		want    int // of four bins
	}{
		{2, 0, []float64{-10}, 0}, {2, 1, []float64{-10}, 4}, {2, 1, []float64{0}, 6}, {2, 0, []float64{0.1}, 2}, {2, 1, []float64{100}, 7},
		{2, 1, []float64{0, 3}, 7}, {2, 0, []float64{math.NaN()}, 0}, {2, 1, []float64{math.Inf(-1)}, 4},
		{3, 2, []float64{0, 0, 5}, 7}, {3, 1, []float64{0, 0, 5}, 3}, {3, 0, []float64{0, 0, 0}, 5}, {3, 1, []float64{0, 0, 0}, 1}, {3, 1, []float64{0, math.NaN(), 0}, 0},
		{2, 2, []float64{0}, -1}, {2, 0.5, []float64{0}, -1}, {2, math.NaN(), []float64{0}, -1}, {3, 0, []float64{1}, -1}, {2, 0, nil, -1},
	} {
		if got := cell(c.classes, c.label, c.outputs...); got != c.want {
			t.Errorf("%d classes: %v of class %v counts in cell %d, want %d", c.classes, c.outputs, c.label, got, c.want)
		}
	}
}

// TestFiguresAreWithheld: what the noise hides is not told as a figure.
func TestFiguresAreWithheld(t *testing.T) {
	s := newScene(t, fmt.Sprintf(classRun, "nothing", "add-remove", 1), 2)
	f := s.evaluated(t, 1, tame(rand.New(rand.NewPCG(1, 2)), 3, 2))
	if f.Reason == "" || f.Accuracy != nil || f.AUC != nil || !strings.Contains(f.String(), "no figures") {
		t.Errorf("three examples have the figures %+v", f)
	}
	one := tame(rand.New(rand.NewPCG(1, 2)), 4000, 2)
	for i := range one.Y {
		one.Y[i] = 1
	}
	if f := s.evaluated(t, 1, one); f.Reason != "" || f.Accuracy == nil || f.AUC != nil {
		t.Errorf("examples of one class have the figures %+v", f)
	}
	if f, err := s.Figures(nil, 0, 3, event.ClaimProved); err != nil || f.Reason == "" || f.Privacy.Epsilon == 0 {
		t.Errorf("without a release: %+v, %v", f, err)
	}
	if _, err := s.Figures([]float64{1}, 1, 3, event.ClaimProved); err == nil {
		t.Error("sums of another evaluation are read")
	}
}

// TestEvaluationFaults: a run file says what it means, or what is wrong.
func TestEvaluationFaults(t *testing.T) {
	for block, path := range map[string]string{
		"judge: {evaluate: {bins: 4}}":                                      "judge.evaluate.epsilon",
		"judge: {evaluate: {epsilon: 1, bins: 5}}":                          "judge.evaluate.bins",
		"judge: {evaluate: {epsilon: -1}}":                                  "judge.evaluate.epsilon",
		"judge: {evaluate: {epsilon: 1, bins: 2000}}":                       "judge.evaluate.bins",
		"judge: {evaluate: {epsilon: 1}}\nalgorithm: {mode: paper}":         "judge.evaluate",
		"judge: {evaluate: {epsilon: 1}}\nalgorithm: {mode: sound}":         "",
		"judge: {evaluate: {}}\nalgorithm: {mode: paper}":                   "",
		"judge: {evaluate: {epsilon: 1, bound: -2}}":                        "judge.evaluate.bound",
		"judge: {evaluate: {epsilon: 1, noise: 3}}\nalgorithm: {rounds: 2}": "judge.evaluate.noise",
	} {
		_, err := config.Resolve([]byte(block), nil, data.Check, model.Check, fl.Check)
		if (err == nil) != (path == "") || err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want a word on %q", block, err, path)
		}
	}
	run := config.Default("synthetic", "", "sound")
	run.Judge.Evaluate.Epsilon = 1
	if _, err := New(run, data.Shape{Features: 2, Reconstruct: true}, nil); err == nil || !strings.Contains(err.Error(), "their own targets") {
		t.Errorf("an evaluation of what is given back: %v", err)
	}
}
