package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-12*(1+math.Abs(b))
}

// value is a figure's, NaN if there is none.
func value(f *Figure) float64 {
	if f == nil {
		return math.NaN()
	}
	return float64(f.Value)
}

func overall(t *testing.T, task Task, clients ...Answers) Figures {
	t.Helper()
	f, err := Overall(task, clients)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFiguresOfClasses(t *testing.T) {
	ln := math.Log
	none := math.NaN()
	for name, c := range map[string]struct {
		loss                                     model.Loss
		classes                                  int
		outputs                                  []float64
		targets                                  []float64
		accuracy, logLoss, auc, precision, brier float64
	}{
		// p(1) = 3/4, 1/4, 1/2, 3/4: the last one is wrong, a tie answers 0. Of the four
		// pairs (1, 0): 3/4 above 1/2 and with 3/4 (half), 1/4 below both. Down the scores:
		// 1 of 2 right (recall 1/2), then 1 of 3, then 2 of 4.
		"logits": {model.CrossEntropy, 2, []float64{ln(3), -ln(3), 0, ln(3)}, []float64{1, 1, 0, 0},
			0.5, -(ln(0.75) + ln(0.25) + ln(0.5) + ln(0.25)) / 4, 1.5 / 4, 0.5, (1.0/16 + 9.0/16 + 1.0/4 + 9.0/16) / 4},
		"margins": {model.Hinge, 2, []float64{2, -1}, []float64{1, 0},
			1, (ln(1+math.Exp(-2)) + ln(1+math.Exp(-1))) / 2, 1, 1, (math.Pow(1+math.Exp(2), -2) + math.Pow(1+math.Exp(1), -2)) / 2},
		// A squared error's output is the probability itself, within [0, 1].
		"squares": {model.SquaredError, 2, []float64{0.8, 0.4, 1.7}, []float64{1, 0, 1},
			1, -(ln(0.8) + ln(0.6) + ln(1-1e-15)) / 3, 1, 1, (0.04 + 0.16 + 1e-30) / 3},
		// Softmaxes (1/2, 1/4, 1/4), (1/4, 1/2, 1/4), (1/6, 1/6, 2/3), (1/2, 1/4, 1/4).
		// Class 0 against the rest: 1/2 above 1/4 and 1/6, level with 1/2: 2.5/3; precision
		// 1/2. Class 1 (1/2 and 1/4; rest 1/4, 1/6): 1+1+0.5+1 = 3.5/4; precision 1, then
		// 2/3. Class 2: 2/3 above all.
		"softmax": {model.CrossEntropy, 3, []float64{ln(2), 0, 0, 5, 5 + ln(2), 5, 0, 0, ln(4), ln(2), 0, 0}, []float64{0, 1, 2, 1},
			0.75, -(ln(0.5) + ln(0.5) + ln(4.0/6) + ln(0.25)) / 4, (2.5/3 + 3.5/4 + 1) / 3, (0.5 + (1+2.0/3)/2 + 1) / 3, none},
		"one class alone": {model.CrossEntropy, 2, []float64{1, 2}, []float64{1, 1},
			1, (ln(1+math.Exp(-1)) + ln(1+math.Exp(-2))) / 2, none, none, (math.Pow(1+math.Exp(1), -2) + math.Pow(1+math.Exp(2), -2)) / 2},
		// Certain errors have a finite log loss where the probability is 0 in float64.
		"far off": {model.CrossEntropy, 2, []float64{0, 800}, []float64{0}, 0, 800, none, none, 1},
		"lost":    {model.CrossEntropy, 2, []float64{none, 1}, []float64{1, 0}, 0, none, none, none, none},
	} {
		each := len(c.outputs) / len(c.targets)
		f := overall(t, Task{Classes: c.classes, Loss: c.loss}, Answers{c.outputs, each, c.targets})
		for figure, pair := range map[string][2]float64{
			"accuracy": {value(f.Accuracy), c.accuracy}, "log loss": {value(f.LogLoss), c.logLoss}, "AUC": {value(f.AUC), c.auc},
			"average precision": {value(f.AveragePrecision), c.precision}, "Brier": {value(f.Brier), c.brier},
		} {
			if !near(pair[0], pair[1]) {
				t.Errorf("%s: %s %v, want %v", name, figure, pair[0], pair[1])
			}
		}
	}
}

func TestAnswersThatDoNotFitAreRefused(t *testing.T) {
	two := Task{Classes: 2, Loss: model.CrossEntropy}
	for name, c := range map[string]struct {
		task    Task
		clients []Answers
	}{
		"too many targets": {two, []Answers{{[]float64{1, 2}, 1, []float64{0, 1, 1}}}},
		"nobody":           {two, []Answers{{nil, 1, nil}}},
		"a half":           {two, []Answers{{[]float64{1, 2}, 1, []float64{0.5, 1}}}},
		"a third class":    {two, []Answers{{[]float64{1, 2}, 1, []float64{2, 1}}}},
		"below 0":          {two, []Answers{{[]float64{1, 2}, 1, []float64{-1, 0}}}},
		"three outputs":    {two, []Answers{{[]float64{1, 2, 3}, 3, []float64{1}}}},
		"one of three":     {Task{Classes: 3}, []Answers{{[]float64{1}, 1, []float64{1}}}},
		"two values":       {Task{}, []Answers{{[]float64{1, 2}, 2, []float64{1}}}},
		"no outputs":       {Task{}, []Answers{{nil, 0, nil}}},
		"two shapes":       {two, []Answers{{[]float64{1}, 1, []float64{1}}, {[]float64{1, 2}, 2, []float64{1}}}},
	} {
		if _, err := Overall(c.task, c.clients); err == nil {
			t.Errorf("%s: judged", name)
		}
		if _, err := CurvesOf(c.task, c.clients); err == nil && c.task.Classes == 2 && name != "nobody" {
			t.Errorf("%s: drawn", name)
		}
	}
}

// biased draws clients whose errors have a common part, which an interval over examples
// would miss.
func biased(src *rand.Rand, clients, examples int) []Answers {
	out := make([]Answers, clients)
	for i := range out {
		bias := src.NormFloat64()
		for range examples {
			y := src.NormFloat64() * 3
			out[i].Targets = append(out[i].Targets, y)
			out[i].Outputs = append(out[i].Outputs, y+bias+0.3*src.NormFloat64())
		}
		out[i].Each = 1
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
		mae := overall(t, Task{}, biased(src, 40, 30)...).MAE
		if float64(*mae.Low) <= truth && truth <= float64(*mae.High) {
			covered++
		}
	}
	if covered < 365 || covered > 394 {
		t.Errorf("%d of 400 intervals cover %v", covered, truth)
	}
}

// logistic draws one client's answers: scores z from N(0, 1), class 1 with probability
// 1/(1+exp(-(intercept + slope*z))), and outputs z.
func logistic(src *rand.Rand, n int, intercept, slope float64) Answers {
	a := Answers{Each: 1}
	for range n {
		z := src.NormFloat64()
		y := 0.0
		if src.Float64() < 1/(1+math.Exp(-intercept-slope*z)) {
			y = 1
		}
		a.Outputs, a.Targets = append(a.Outputs, z), append(a.Targets, y)
	}
	return a
}

// TestIntervalsCoverOverRows: 95 % intervals of one client's figures cover what a client
// of 200,000 rows of the same kind has. Of 400 draws with a coverage of 95 % fewer than
// 362 come in about one run in 4,000 for each of the figures (binomial), the seed is fixed;
// the approximations themselves cost up to a percent or two. Intervals of half the width
// would cover 270 to 275.
func TestIntervalsCoverOverRows(t *testing.T) {
	src := rand.New(rand.NewPCG(11, 2))
	task := Task{Classes: 2, Loss: model.CrossEntropy}
	figures := func(f Figures) map[string]*Figure {
		return map[string]*Figure{
			"accuracy": f.Accuracy, "log loss": f.LogLoss, "AUC": f.AUC, "average precision": f.AveragePrecision, "Brier": f.Brier,
			"slope": f.CalibrationSlope, "intercept": f.CalibrationIntercept, "RMSE": f.RMSE, "MAE": f.MAE, "R2": f.R2,
		}
	}
	values := func(n int) Answers {
		a := Answers{Each: 1}
		for range n {
			y := src.NormFloat64()
			a.Targets, a.Outputs = append(a.Targets, y), append(a.Outputs, y+0.5*src.NormFloat64())
		}
		return a
	}
	count := func(task Task, draw func(n int) Answers, least int) {
		truth, err := OfClient(task, draw(200_000))
		if err != nil {
			t.Fatal(err)
		}
		covered, width := map[string]int{}, map[string]float64{}
		for range 400 {
			f, err := OfClient(task, draw(150))
			if err != nil {
				t.Fatal(err)
			}
			for name, v := range figures(f) {
				want := figures(truth)[name]
				if v == nil || want == nil || v.Low == nil {
					continue
				}
				width[name] += float64(*v.High-*v.Low) / 400
				if *v.Low <= want.Value && want.Value <= *v.High {
					covered[name]++
				}
			}
		}
		for name, want := range figures(truth) {
			if want != nil && (covered[name] < least || covered[name] > 396) {
				t.Errorf("%s: %d of 400 intervals cover %v; their mean width is %v", name, covered[name], want.Value, width[name])
			}
		}
	}
	count(task, func(n int) Answers { return logistic(src, n, -0.5, 1.4) }, 362)
	count(Task{}, values, 362)
}

// TestFiguresAreThoseOfAllExamples: figures of parts are those of all parts together.
func TestFiguresAreThoseOfAllExamples(t *testing.T) {
	src := rand.New(rand.NewPCG(3, 1))
	parts := biased(src, 7, 9)
	together := func(parts []Answers) (all Answers) {
		all.Each = 1
		for _, p := range parts {
			all.Outputs, all.Targets = append(all.Outputs, p.Outputs...), append(all.Targets, p.Targets...)
		}
		return all
	}
	of, one := overall(t, Task{}, append(parts, Answers{Each: 1})...), overall(t, Task{}, together(parts))
	if !near(value(of.RMSE), value(one.RMSE)) || one.RMSE.Low != nil || of.RMSE.Low == nil {
		t.Errorf("%v of parts, %v of all", of.RMSE, one.RMSE)
	}
	// Errors 1, -2, 0, 1 of targets with mean 3 and squared spread 20; in a unit from 10
	// to 30 errors are 20 times as large.
	few := []Answers{{[]float64{1, 0}, 1, []float64{0, 2}}, {[]float64{4, 7}, 1, []float64{4, 6}}}
	for _, unit := range [][2]float64{{}, {10, 30}} {
		scale := max(1, unit[1]-unit[0])
		f := overall(t, Task{Unit: unit}, few...)
		own, err := OfClient(Task{Unit: unit}, together(few))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Figures{f, own} {
			if !near(value(f.RMSE), scale*math.Sqrt(1.5)) || !near(value(f.MAE), scale) || !near(value(f.R2), 0.7) || f.Accuracy != nil {
				t.Errorf("unit %v: RMSE %v, MAE %v, R2 %v", unit, value(f.RMSE), value(f.MAE), value(f.R2))
			}
		}
	}
	if f := overall(t, Task{}, Answers{[]float64{1, 3}, 1, []float64{2, 2}}); f.R2 != nil {
		t.Errorf("targets that are all one have R2 %v", f.R2.Value)
	}
	for i := range parts {
		for k := range parts[i].Targets {
			parts[i].Targets[k] = float64(src.IntN(2))
		}
	}
	two := Task{Classes: 2, Loss: model.CrossEntropy}
	of, one = overall(t, two, parts...), overall(t, two, together(parts))
	own, err := OfClient(two, together(parts))
	if err != nil {
		t.Fatal(err)
	}
	for _, get := range []func(Figures) *Figure{
		func(f Figures) *Figure { return f.Accuracy }, func(f Figures) *Figure { return f.LogLoss }, func(f Figures) *Figure { return f.AUC },
		func(f Figures) *Figure { return f.AveragePrecision }, func(f Figures) *Figure { return f.Brier },
		func(f Figures) *Figure { return f.CalibrationSlope }, func(f Figures) *Figure { return f.CalibrationIntercept },
	} {
		if a, b, c := get(of), get(one), get(own); !near(value(a), value(b)) || !near(value(a), value(c)) || a.Low == nil || b.Low != nil || c.Low == nil {
			t.Errorf("%v of parts, %v of all, %v of one client", a, b, c)
		}
	}
}

func TestJackknifeAndWilson(t *testing.T) {
	if f := jackknife(1, func(int) float64 { return 0.5 }, 0, 1); f.Low != nil || float64(f.Value) != 0.5 {
		t.Errorf("one client has the interval %+v", f)
	}
	if f := jackknife(3, func(int) float64 { return math.NaN() }, 0, 1); f != nil {
		t.Errorf("a figure that is not defined is %+v", f)
	}
	if f := jackknife(3, func(i int) float64 { return []float64{0.5, 0.4, math.NaN(), 0.6}[i+1] }, 0, 1); f == nil || f.Low != nil {
		t.Errorf("a part without a figure leaves the interval %+v", f)
	}
	// Of the mean, the jackknife is Student's interval: values 1, 2, 6.
	values := []float64{1, 2, 6}
	f := jackknife(3, func(i int) float64 {
		if i < 0 {
			return 3
		}
		return (9 - values[i]) / 2
	}, math.Inf(-1), math.Inf(1))
	if _, half := Spread(values); !near(float64(*f.High-f.Value), half) || math.Abs(half-4.302652729696142*math.Sqrt(7.0/3)) > 1e-6 {
		t.Errorf("half a width of %v", half)
	}
	// Wilson 1927 for 81 of 263 (Newcombe 1998, table I): 0.2553 to 0.3662; for 20 of 20
	// the interval begins at 0.8389.
	if f := wilson(81, 263); math.Abs(float64(*f.Low)-0.2553) > 5e-5 || math.Abs(float64(*f.High)-0.3662) > 5e-5 {
		t.Errorf("81 of 263: %v to %v", *f.Low, *f.High)
	}
	if f := wilson(20, 20); math.Abs(float64(*f.Low)-0.8389) > 5e-5 || *f.High != event.Number(1) {
		t.Errorf("20 of 20: %v to %v", *f.Low, *f.High)
	}
}

// TestFiguresOfReconstructions: the mean of the examples' squared errors, over clients and
// over rows, and its paired difference; by hand.
func TestFiguresOfReconstructions(t *testing.T) {
	task := Task{Reconstruct: true}
	a := Answers{Outputs: []float64{0.1, 0.3}, Each: 1, Targets: []float64{0, 0}}
	b := Answers{Outputs: []float64{0.8}, Each: 1, Targets: []float64{0}}
	all := overall(t, task, a, b)
	if got := value(all.MSE); !near(got, 0.4) || all.RMSE != nil || all.MAE != nil || all.R2 != nil || all.MSE.Low == nil {
		t.Errorf("of all: %+v", all)
	}
	one, err := OfClient(task, a)
	// Two rows 0.1 from their mean: standard error 0.1, Student's t with one degree 12.706.
	if err != nil || !near(value(one.MSE), 0.2) || math.Abs(float64(*one.MSE.High)-(0.2+0.1*12.7062047)) > 1e-6 || float64(*one.MSE.Low) != 0 {
		t.Errorf("of one client: %+v, %v", one.MSE, err)
	}
	if task.Main() != "mse" || one.Main(task) != one.MSE || !task.LessIsBetter() {
		t.Errorf("the main figure is %s", task.Main())
	}
	other := Answers{Outputs: []float64{0.2, 0.6}, Each: 1, Targets: []float64{0, 0}}
	d, err := Difference(task, a, other) // -0.1 and -0.3
	if err != nil || !near(value(d), -0.2) || math.Abs(float64(*d.High)-(-0.2+0.1*12.7062047)) > 1e-6 {
		t.Errorf("the difference: %+v, %v", d, err)
	}
}
