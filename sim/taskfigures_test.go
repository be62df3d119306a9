package sim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

// clientsOf draws clients whose errors have a common part, which an interval over
// examples would miss.
func clientsOf(src *rand.Rand, clients, examples int) []answers {
	out := make([]answers, clients)
	for i := range out {
		bias := src.NormFloat64()
		for range examples {
			y := src.NormFloat64() * 3
			out[i].targets = append(out[i].targets, y)
			out[i].outputs = append(out[i].outputs, y+bias+0.3*src.NormFloat64())
		}
		out[i].each = 1
	}
	return out
}

// TestIntervalsCoverOverClients: 95 % intervals of the mean absolute error cover the
// truth, sqrt(2/pi)*sqrt(1.09), about that often. Of 400 draws with a coverage of 95 %
// fewer than 365 or more than 394 would come in about one run in 1,000; the seed is
// fixed. Intervals over examples, an eighth as wide, would cover less than half.
func TestIntervalsCoverOverClients(t *testing.T) {
	src, covered, truth := rand.New(rand.NewPCG(7, 1)), 0, math.Sqrt(2/math.Pi)*math.Sqrt(1.09)
	for range 400 {
		_, mae, _ := valueFigures(clientsOf(src, 40, 30))
		if float64(*mae.Low) <= truth && truth <= float64(*mae.High) {
			covered++
		}
	}
	if covered < 365 || covered > 394 {
		t.Errorf("%d of 400 intervals cover %v", covered, truth)
	}
}

// TestFiguresAreThoseOfAllExamples: figures of parts are those of all parts together.
func TestFiguresAreThoseOfAllExamples(t *testing.T) {
	src := rand.New(rand.NewPCG(3, 1))
	parts := clientsOf(src, 7, 9)
	var all answers
	for _, p := range parts {
		all.outputs, all.targets = append(all.outputs, p.outputs...), append(all.targets, p.targets...)
	}
	rmse, _, _ := valueFigures(parts)
	together, _, _ := valueFigures([]answers{{all.outputs, all.targets, 1}})
	if math.Abs(float64(rmse.Value-together.Value)) > 1e-12 || together.Low != nil {
		t.Errorf("%v of parts, %v of all", rmse.Value, together.Value)
	}
	// Errors 1, -2, 0, 1 of targets with mean 3 and squared spread 20.
	rmse, mae, r2 := valueFigures([]answers{{[]float64{1, 0}, []float64{0, 2}, 1}, {[]float64{4, 7}, []float64{4, 6}, 1}})
	for _, c := range [][2]float64{{float64(rmse.Value), math.Sqrt(1.5)}, {float64(mae.Value), 1}, {float64(r2.Value), 0.7}} {
		if math.Abs(c[0]-c[1]) > 1e-12 {
			t.Errorf("%v, want %v", c[0], c[1])
		}
	}
	if _, _, r2 := valueFigures([]answers{{[]float64{1, 3}, []float64{2, 2}, 1}}); r2 != nil {
		t.Errorf("targets that are all one have R2 %v", r2.Value)
	}
	for i := range parts {
		for k := range parts[i].targets {
			parts[i].targets[k] = float64(src.IntN(2))
		}
	}
	all.targets = nil
	for _, p := range parts {
		all.targets = append(all.targets, p.targets...)
	}
	classes, err := model.JudgeClasses(model.CrossEntropy, all.outputs, 1, all.targets)
	if err != nil {
		t.Fatal(err)
	}
	var m Metrics
	if err := classFigures(&m, parts, model.CrossEntropy); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]float64{{float64(m.Accuracy.Value), classes.Accuracy}, {float64(m.LogLoss.Value), classes.LogLoss}, {float64(m.AUC.Value), classes.AUC}} {
		if math.Abs(c[0]-c[1]) > 1e-12 {
			t.Errorf("%v of parts, %v of all", c[0], c[1])
		}
	}
	if f := jackknife(1, func(int) float64 { return 0.5 }, 0, 1); f.Low != nil || float64(f.Value) != 0.5 {
		t.Errorf("one client has the interval %+v", f)
	}
	if f := jackknife(3, func(int) float64 { return math.NaN() }, 0, 1); f != nil {
		t.Errorf("a figure that is not defined is %+v", f)
	}
}
