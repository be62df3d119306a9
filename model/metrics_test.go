package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/data"
)

func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*(1+math.Abs(b))
}

func TestClassMetrics(t *testing.T) {
	ln := math.Log
	for name, c := range map[string]struct {
		loss    Loss
		outputs []float64
		each    int
		targets []float64
		want    ClassMetrics
	}{
		// p(1) = 3/4, 1/4, 1/2, 3/4: the last one is wrong, a tie answers 0. Of the four
		// pairs (1, 0): 3/4 above 1/2 and with 3/4 (half), 1/4 below both.
		"logits": {CrossEntropy, []float64{ln(3), -ln(3), 0, ln(3)}, 1, []float64{1, 1, 0, 0},
			ClassMetrics{0.5, -(ln(0.75) + ln(0.25) + ln(0.5) + ln(0.25)) / 4, 1.5 / 4}},
		"margins": {Hinge, []float64{2, -1}, 1, []float64{1, 0},
			ClassMetrics{1, (ln(1+math.Exp(-2)) + ln(1+math.Exp(-1))) / 2, 1}},
		// A squared error's output is the probability itself, within [0, 1].
		"squares": {SquaredError, []float64{0.8, 0.4, 1.7}, 1, []float64{1, 0, 1},
			ClassMetrics{1, -(ln(0.8) + ln(0.6) + ln(1-1e-15)) / 3, 1}},
		// Softmaxes (1/2, 1/4, 1/4), (1/4, 1/2, 1/4), (1/6, 1/6, 2/3), (1/2, 1/4, 1/4).
		// Class 0 against the rest: 1/2 above 1/4 and 1/6, level with 1/2: 2.5/3. Class 1
		// (1/2 and 1/4; rest 1/4, 1/6): 1+1+0.5+1 = 3.5/4. Class 2: 2/3 above all.
		"softmax": {CrossEntropy, []float64{ln(2), 0, 0, 5, 5 + ln(2), 5, 0, 0, ln(4), ln(2), 0, 0}, 3, []float64{0, 1, 2, 1},
			ClassMetrics{0.75, -(ln(0.5) + ln(0.5) + ln(4.0/6) + ln(0.25)) / 4, (2.5/3 + 3.5/4 + 1) / 3}},
		"one class alone": {CrossEntropy, []float64{1, 2}, 1, []float64{1, 1},
			ClassMetrics{1, (ln(1+math.Exp(-1)) + ln(1+math.Exp(-2))) / 2, math.NaN()}},
		// Certain errors have a finite log loss where the probability is 0 in float64.
		"far off": {CrossEntropy, []float64{0, 800}, 2, []float64{0}, ClassMetrics{0, 800, math.NaN()}},
	} {
		got, err := JudgeClasses(c.loss, c.outputs, c.each, c.targets)
		if err != nil || !near(got.Accuracy, c.want.Accuracy) || !near(got.LogLoss, c.want.LogLoss) || !near(got.AUC, c.want.AUC) {
			t.Errorf("%s: %+v, want %+v (%v)", name, got, c.want, err)
		}
	}
	for name, targets := range map[string][]float64{"too many": {0, 1, 1}, "none": nil, "a half": {0.5, 1}, "a third class": {2, 1}, "below 0": {-1, 0}} {
		if _, err := JudgeClasses(CrossEntropy, []float64{1, 2}, 1, targets); err == nil {
			t.Errorf("targets %s: judged", name)
		}
	}
}

// TestMetricsAgreeWithJudge: what a learner says of a client follows from its outputs.
func TestMetricsAgreeWithJudge(t *testing.T) {
	m, c := smallPictures(t, 3, 300)
	theta := make([]float64, m.Parameters())
	m.Initialise(theta, stream("start"))
	binary := rowsFor(CrossEntropy, 4, 50)
	weights := normals[float64]("theta", 4, 1)
	for name, v := range map[string]struct {
		m     Model
		c     *data.Client
		theta []float64
		loss  Loss
	}{
		"pictures": {m, c, theta, CrossEntropy},
		"logistic": {Linear{Features: 4, Loss: CrossEntropy, Classes: 2}, binary, weights, CrossEntropy},
	} {
		l := learnerOf(t, v.m)
		loss, wrong, err := l.Judge(v.theta, v.c)
		if err != nil {
			t.Fatal(err)
		}
		outputs, each, err := l.Outputs(nil, v.theta, v.c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := JudgeClasses(v.loss, outputs, each, Targets(nil, v.c))
		if err != nil || math.Abs(got.LogLoss-loss) > 1e-6 || math.Abs(got.Accuracy-1+float64(wrong)/float64(v.c.Len())) > 1e-12 || !(got.AUC >= 0 && got.AUC <= 1) {
			t.Errorf("%s: %+v; judged %v and %d wrong (%v)", name, got, loss, wrong, err)
		}
	}
	values := rowsFor(SquaredError, 4, 50)
	l := learnerOf(t, Linear{Features: 4})
	outputs, each, err := l.Outputs([]float64{7}, weights, values)
	if err != nil || each != 1 || outputs[0] != 7 {
		t.Fatal(outputs[0], each, err)
	}
	var squares float64
	for i, y := range Targets(nil, values) {
		squares += (outputs[1+i] - y) * (outputs[1+i] - y) / float64(values.Len())
	}
	if loss, err := l.Loss(weights, values); err != nil || math.Abs(math.Sqrt(squares)-loss) > 1e-12 {
		t.Errorf("the outputs are %v off, the loss is %v (%v)", math.Sqrt(squares), loss, err)
	}
	if pictures, c := smallPictures(t, 0, 5); pictures == nil || !slices.Equal(Targets(nil, c), []float64{c.Images.Targets[4], c.Images.Targets[3], c.Images.Targets[2], c.Images.Targets[1], c.Images.Targets[0]}) {
		t.Error("targets of pictures are out of order")
	}
}
