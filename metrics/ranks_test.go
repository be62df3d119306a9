package metrics

import (
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

// TestRanksAgainstPairs: AUC and DeLong's variance are those of their definitions over
// all pairs, with ties.
func TestRanksAgainstPairs(t *testing.T) {
	src := rand.New(rand.NewPCG(5, 1))
	for range 50 {
		n := 6 + src.IntN(30)
		labels, scores := make([]int, n), make([]float64, n)
		for i := range labels {
			labels[i], scores[i] = src.IntN(2), float64(src.IntN(8))
		}
		labels[0], labels[1], labels[2], labels[3] = 0, 1, 0, 1
		over := func(a, b float64) float64 {
			switch {
			case a > b:
				return 1
			case a == b:
				return 0.5
			}
			return 0
		}
		var rows, columns []float64 // of class 1, of class 0
		for i, l := range labels {
			sum, others := 0.0, 0.0
			for k, m := range labels {
				if m != l {
					others++
					if l == 1 {
						sum += over(scores[i], scores[k])
					} else {
						sum += over(scores[k], scores[i])
					}
				}
			}
			if l == 1 {
				rows = append(rows, sum/others)
			} else {
				columns = append(columns, sum/others)
			}
		}
		variance := func(v []float64) (mean, of float64) {
			for _, x := range v {
				mean += x / float64(len(v))
			}
			for _, x := range v {
				of += (x - mean) * (x - mean) / float64(len(v)-1)
			}
			return mean, of / float64(len(v))
		}
		auc, v1 := variance(rows)
		_, v0 := variance(columns)
		o := ordered(scores, func(i int) bool { return labels[i] == 1 })
		d := delong(labels, scores, scores)
		own, _ := o.figures(nil)
		if !near(own, auc) || !near(d.auc[0], auc) || !near(d.variance[1], v0+v1) || !near(d.together, v0+v1) {
			t.Fatalf("AUC %v and %v, want %v; variance %v, covariance with itself %v, want %v", own, d.auc[0], auc, d.variance[1], d.together, v0+v1)
		}
		// Left out is left out: the same as never there.
		keep := func(i int) bool { return i%3 != 1 }
		var fewer []int
		var kept []float64
		for i := range labels {
			if keep(i) {
				fewer, kept = append(fewer, labels[i]), append(kept, scores[i])
			}
		}
		rest := ordered(kept, func(i int) bool { return fewer[i] == 1 })
		area, precision := o.figures(keep)
		if wantArea, wantPrecision := rest.figures(nil); !near(area, wantArea) || !near(precision, wantPrecision) {
			t.Fatalf("without a third: %v and %v, want %v and %v", area, precision, wantArea, wantPrecision)
		}
	}
}

// TestDifferenceIsPaired: of two models whose errors are the same but for a little, the
// paired interval is far narrower than either's own; of a model and itself the
// difference is 0 without an interval (AUC) or with one of width 0.
func TestDifferenceIsPaired(t *testing.T) {
	src := rand.New(rand.NewPCG(9, 1))
	two, values := Task{Classes: 2, Loss: model.CrossEntropy}, Task{Unit: [2]float64{0, 10}}
	a := logistic(src, 400, 0, 1)
	b := Answers{Each: 1, Targets: a.Targets}
	three, other := Answers{Each: 3}, Answers{Each: 3}
	v, w := Answers{Each: 1}, Answers{Each: 1}
	for i, z := range a.Outputs {
		b.Outputs = append(b.Outputs, z+0.2*src.NormFloat64())
		label := src.IntN(3)
		three.Targets = append(three.Targets, float64(label))
		scores := []float64{src.NormFloat64(), src.NormFloat64(), src.NormFloat64()}
		scores[label]++
		three.Outputs = append(three.Outputs, scores...)
		scores[0] += 0.05
		other.Outputs = append(other.Outputs, scores...)
		v.Targets, v.Outputs = append(v.Targets, z), append(v.Outputs, z+src.NormFloat64())
		w.Outputs = append(w.Outputs, v.Outputs[i]+0.05)
	}
	other.Targets, w.Targets = three.Targets, v.Targets
	for name, c := range map[string]struct {
		task Task
		a, b Answers
	}{"AUC": {two, a, b}, "accuracy": {Task{Classes: 3, Loss: model.CrossEntropy}, three, other}, "RMSE": {values, v, w}} {
		fa, err := OfClient(c.task, c.a)
		if err != nil {
			t.Fatal(err)
		}
		fb, err := OfClient(c.task, c.b)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Difference(c.task, c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		own := fa.Main(c.task)
		if !near(float64(d.Value), float64(own.Value-fb.Main(c.task).Value)) || d.Low == nil || float64(*d.High-*d.Low) > 0.5*float64(*own.High-*own.Low) || *d.High <= *d.Low {
			t.Errorf("%s: %v of %v and %v", name, d, own, fb.Main(c.task))
		}
		same, err := Difference(c.task, c.a, c.a)
		if err != nil || same.Value != 0 || same.Low != nil && *same.High != *same.Low {
			t.Errorf("%s: of a model and itself %v (%v)", name, same, err)
		}
	}
	if _, err := Difference(two, a, logistic(src, 400, 0, 1)); err == nil {
		t.Error("answers to other examples were compared")
	}
	one := Answers{[]float64{1, 2}, 1, []float64{1, 1}}
	if d, err := Difference(two, one, one); err != nil || d != nil {
		t.Errorf("AUCs of one class differ by %v (%v)", d, err)
	}
}

// TestDifferencesCover: the truth lies within 95 % paired intervals about that often: of
// 400 draws fewer than 362 come in about one run in 4,000. Unpaired, they would be about
// three times as wide and cover all.
func TestDifferencesCover(t *testing.T) {
	src := rand.New(rand.NewPCG(13, 1))
	two := Task{Classes: 2, Loss: model.CrossEntropy}
	draw := func(n int) (a, b Answers) {
		a = logistic(src, n, 0, 1.5)
		b = Answers{Each: 1, Targets: a.Targets}
		for _, z := range a.Outputs {
			b.Outputs = append(b.Outputs, z+0.5*src.NormFloat64())
		}
		return a, b
	}
	a, b := draw(300_000)
	truth, err := Difference(two, a, b)
	if err != nil {
		t.Fatal(err)
	}
	covered := 0
	for range 400 {
		d, err := Difference(two, Answers{}, Answers{})
		if err == nil {
			t.Fatal("nothing was compared", d)
		}
		a, b := draw(200)
		if d, err = Difference(two, a, b); err != nil {
			t.Fatal(err)
		}
		if *d.Low <= truth.Value && truth.Value <= *d.High {
			covered++
		}
	}
	if covered < 362 || covered > 394 {
		t.Errorf("%d of 400 intervals cover %v", covered, truth.Value)
	}
}
