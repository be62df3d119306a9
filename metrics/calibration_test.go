package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

// recalibrateClasses fits single examples.
func recalibrateClasses(logits []float64, labels []int) recalibration {
	s := scored{logits: logits, labels: labels}
	return s.recalibrated(0)[0]
}

// TestRecalibrationFindsItsLine: the fit is where the likelihood's gradient is 0, near
// the line that the classes were drawn by, at any scale of the logits.
func TestRecalibrationFindsItsLine(t *testing.T) {
	src := rand.New(rand.NewPCG(2, 1))
	for _, c := range []struct{ intercept, slope, scale float64 }{{0, 1, 1}, {-1, 0.5, 1}, {0.3, -0.8, 1}, {0, 1, 200}, {0, 1, 1e-4}, {-3, 1, 1}} {
		a := logistic(src, 20_000, c.intercept, c.slope)
		labels, logits := make([]int, len(a.Targets)), make([]float64, len(a.Targets))
		for i, y := range a.Targets {
			labels[i], logits[i] = int(y), c.scale*a.Outputs[i]
		}
		r := recalibrateClasses(logits, labels)
		var ga, gb float64
		for i, x := range logits {
			d := float64(labels[i]) - 1/(1+math.Exp(-r.intercept-r.slope*x))
			ga, gb = ga+d, gb+d*x/c.scale
		}
		if math.Abs(ga)+math.Abs(gb) > 1e-6 {
			t.Errorf("%+v: the gradient is %v and %v", c, ga, gb)
		}
		// Within 5 standard errors: one false alarm in about a million, and the seed is fixed.
		if math.Abs(r.intercept-c.intercept) > 5*r.interceptError || math.Abs(r.slope-c.slope/c.scale) > 5*r.slopeError || r.slopeError*c.scale > 0.1 {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

// TestRecalibrationThatDoesNotExist: separated classes, one class, one logit and
// answers that are no numbers have none.
func TestRecalibrationThatDoesNotExist(t *testing.T) {
	for name, c := range map[string]struct {
		logits []float64
		labels []int
	}{
		"separated": {[]float64{-1, -2, 3, 4}, []int{0, 0, 1, 1}}, "the other way": {[]float64{-1, -2, 3, 4}, []int{1, 1, 0, 0}},
		"touching": {[]float64{-1, 0, 0, 4}, []int{0, 0, 1, 1}}, "touching the other way": {[]float64{-1, 0, 0, 4}, []int{1, 1, 0, 0}}, "one class": {[]float64{-1, 0, 4}, []int{1, 1, 1}},
		"one logit": {[]float64{2, 2, 2}, []int{0, 1, 0}}, "infinite": {[]float64{2, math.Inf(1), 1, 0}, []int{0, 1, 1, 0}},
		"no number": {[]float64{2, math.NaN(), 1, 0}, []int{0, 1, 1, 0}}, "nothing": {nil, nil},
	} {
		if r := recalibrateClasses(c.logits, c.labels); !math.IsNaN(r.slope) || !math.IsNaN(r.intercept) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// One example on the wrong side is enough for a fit, however far apart the others are.
	if r := recalibrateClasses([]float64{-40, -30, -20, 20, 30, 40, 25}, []int{0, 0, 0, 1, 1, 1, 0}); !(r.slope > 0) || !finite(r.slope) {
		t.Errorf("nearly separated: %+v", r)
	}
}

func TestCurves(t *testing.T) {
	two := Task{Classes: 2, Loss: model.CrossEntropy}
	ln := math.Log
	// p(1) = 3/4 (1), 1/4 (1), 1/2 (0), 3/4 (0).
	c, err := CurvesOf(two, []Answers{{[]float64{ln(3), -ln(3)}, 1, []float64{1, 1}}, {[]float64{0, ln(3)}, 1, []float64{0, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := [][2]float64{{0, 0}, {0.5, 0.5}, {1, 0.5}, {1, 1}}; !slices.Equal(c.ROC, want) {
		t.Errorf("ROC %v, want %v", c.ROC, want)
	}
	if want := [][2]float64{{0.5, 0.5}, {0.5, 1.0 / 3}, {1, 0.5}}; !slices.Equal(c.PR, want) {
		t.Errorf("PR %v, want %v", c.PR, want)
	}
	if len(c.Reliability) != 3 || c.Reliability[0].Count != 1 || c.Reliability[0].Observed != 1 || c.Reliability[2].Count != 2 || c.Reliability[2].Observed != 0.5 || math.Abs(c.Reliability[2].Predicted-0.75) > 1e-12 || c.Reliability[2].Low != 0.7 {
		t.Errorf("reliability %+v", c.Reliability)
	}
	src := rand.New(rand.NewPCG(4, 1))
	many := logistic(src, 20_000, -1, 2)
	if c, err = CurvesOf(two, []Answers{many}); err != nil {
		t.Fatal(err)
	}
	for name, curve := range map[string][][2]float64{"ROC": c.ROC, "PR": c.PR} {
		if len(curve) > curvePoints || len(curve) < curvePoints/4 {
			t.Errorf("%s has %d points", name, len(curve))
		}
		for i := 1; i < len(curve); i++ {
			if curve[i][0] < curve[i-1][0] {
				t.Fatalf("%s goes back at %v", name, curve[i])
			}
		}
	}
	ends := [][2]float64{c.ROC[0], c.ROC[len(c.ROC)-1]}
	if ends[0] != [2]float64{0, 0} || ends[1] != [2]float64{1, 1} || c.PR[len(c.PR)-1][0] != 1 {
		t.Errorf("the curves end at %v and %v", ends, c.PR[len(c.PR)-1])
	}
	// What thinning leaves has about the same area.
	area := 0.0
	for i := 1; i < len(c.ROC); i++ {
		area += (c.ROC[i][0] - c.ROC[i-1][0]) * (c.ROC[i][1] + c.ROC[i-1][1]) / 2
	}
	if auc := value(overall(t, two, many).AUC); math.Abs(area-auc) > 1e-3 {
		t.Errorf("the drawn area is %v, the AUC %v", area, auc)
	}
	for name, a := range map[string]Answers{"one class": {[]float64{1, 2}, 1, []float64{1, 1}}, "lost": {[]float64{math.NaN(), 2}, 1, []float64{1, 0}}} {
		if c, err := CurvesOf(two, []Answers{a}); err != nil || c != nil {
			t.Errorf("%s: %v (%v)", name, c, err)
		}
	}
	if c, err := CurvesOf(Task{}, []Answers{{[]float64{1}, 1, []float64{1}}}); err != nil || c != nil {
		t.Errorf("values have the curves %v (%v)", c, err)
	}
}

// histogram counts probabilities of class 1 by label.
func histogram(a Answers, bins int) [][]float64 {
	counts := [][]float64{make([]float64, bins), make([]float64, bins)}
	for i, z := range a.Outputs {
		p := 1 / (1 + math.Exp(-z))
		counts[int(a.Targets[i])][min(bins-1, int(p*float64(bins)))]++
	}
	return counts
}

func TestFromHistogram(t *testing.T) {
	src := rand.New(rand.NewPCG(6, 1))
	two := Task{Classes: 2, Loss: model.CrossEntropy}
	a := logistic(src, 50_000, -0.3, 1.3)
	own := overall(t, two, a)
	slope, intercept := FromHistogram(histogram(a, 100))
	for name, c := range map[string][2]float64{"slope": {slope, value(own.CalibrationSlope)}, "intercept": {intercept, value(own.CalibrationIntercept)}} {
		if !(math.Abs(c[0]-c[1]) <= 0.01) {
			t.Errorf("%s: %v of the histogram, %v of the answers", name, c[0], c[1])
		}
	}
	for name, counts := range map[string][][]float64{
		"nothing": nil, "one label": {{1, 2}}, "no bins": {{}, {}}, "other lengths": {{1}, {1, 2}}, "no number": {{math.NaN(), 1}, {1, 1}},
		"infinite": {{math.Inf(1), 1}, {1, 1}}, "a label of -2": {{-3, 1}, {2, 2}}, "separated": {{3, 0}, {0, 2}},
	} {
		if slope, intercept := FromHistogram(counts); !math.IsNaN(slope) || !math.IsNaN(intercept) {
			t.Errorf("%s: slope %v, intercept %v", name, slope, intercept)
		}
	}
}
