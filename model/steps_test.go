package model

import (
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

func TestOptimisers(t *testing.T) {
	// One and two steps by hand on f(x) = x^2/2 from 1, gradient x.
	theta := []float64{1}
	s := &SGD[float64]{Step: 0.1, Momentum: 0.9}
	s.Apply(theta, []float64{theta[0]}) // v = 1, x = 0.9
	s.Apply(theta, []float64{theta[0]}) // v = 1.8, x = 0.72
	if math.Abs(theta[0]-0.72) > 1e-15 {
		t.Errorf("momentum ends at %v, want 0.72", theta[0])
	}
	theta = []float64{1}
	a := NewAdam[float64](0.1)
	a.Apply(theta, []float64{3}) // the first step is step*sign(g), but for epsilon
	if math.Abs(theta[0]-0.9) > 1e-8 {
		t.Errorf("adam's first step ends at %v, want 0.9", theta[0])
	}
	a.Apply(theta, []float64{-1})
	// m = (0.1*0.9*3 - 0.1)/(1-0.81), v = (0.001*0.999*9 + 0.001)/(1-0.998001)
	m, v := (0.27-0.1)/0.19, (0.008991+0.001)/0.001999
	if want := 0.9 - 0.1*m/(math.Sqrt(v)+1e-8); math.Abs(theta[0]-want) > 1e-8 {
		t.Errorf("adam's second step ends at %v, want %v", theta[0], want)
	}
	if _, err := NewOptimiser[float32]("lbfgs", 1, 0); err == nil {
		t.Error("an unknown optimiser was accepted")
	}
}

func TestPoissonBatches(t *testing.T) {
	const rows, size, steps = 200, 20, 20_000
	b, err := NewBatches(event.Poisson, rows, size, 3)
	if err != nil {
		t.Fatal(err)
	}
	counts, pairs, total, squares := make([]int, rows), 0, 0.0, 0.0
	for s := range steps {
		batch := b.Step(s)
		n := float64(len(batch))
		total, squares = total+n, squares+n*n
		for i, r := range batch {
			if i > 0 && r <= batch[i-1] {
				t.Fatalf("not distinct rows in order: %v", batch)
			}
			counts[r]++
		}
		if slices.Contains(batch, 3) && slices.Contains(batch, 4) {
			pairs++
		}
	}
	// Row counts are binomial(20000, 0.1), sd 42.4; 5.9 sd over 200 rows is 1e-6.
	for r, c := range counts {
		if math.Abs(float64(c)-steps*0.1) > 251 {
			t.Errorf("row %d is in %d batches of %d", r, c, steps)
		}
	}
	// Neighbours are independent: binomial(20000, 0.01), sd 14.07.
	if math.Abs(float64(pairs)-200) > 4.9*14.07 {
		t.Errorf("rows 3 and 4 came together %d times, want about 200", pairs)
	}
	// Sizes vary as binomial(200, 0.1) does: variance 18, not 0.
	mean := total / steps
	if v := squares/steps - mean*mean; math.Abs(v-18) > 1 || math.Abs(mean-20) > 0.15 {
		t.Errorf("sizes have mean %v and variance %v, want 20 and 18", mean, v)
	}
}

func TestEmptyPoissonBatch(t *testing.T) {
	b, err := NewBatches(event.Poisson, 10, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	e, theta := newEngine[float64](t, Shape{1, 1, 2}, LinearLayers(2, true), crossEntropy[float64]{}, 2)
	ex, _ := examples(e, 10)
	steps, err := NewPrivateSteps(e, 1, 2, b.Size(), exampleTerms)
	if err != nil {
		t.Fatal(err)
	}
	g := make([]float64, len(theta))
	for s := 0; ; s++ {
		if batch := b.Step(s); len(batch) == 0 {
			loss, err := steps.Gradient(g, theta, ex, batch, stream("noise"))
			if err != nil || loss != 0 || slices.Contains(g, 0) {
				t.Errorf("an empty batch gives %v, loss %v (%v): want noise alone", g, loss, err)
			}
			return
		}
	}
}

func TestOtherBatches(t *testing.T) {
	w, err := NewBatches(event.WithoutReplacement, 10, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	for s := range 1000 {
		batch := slices.Sorted(slices.Values(w.Step(s)))
		if len(slices.Compact(batch)) != 4 {
			t.Fatalf("batch %v", batch)
		}
		for _, r := range batch {
			seen[r]++
		}
	}
	for r, c := range seen { // binomial(1000, 0.4), sd 15.5; 5.4 sd over 10 rows is 1e-6
		if math.Abs(float64(c)-400) > 84 {
			t.Errorf("row %d is in %d batches of 1000", r, c)
		}
	}
	sh, err := NewBatches(event.Shuffle, 10, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	var epoch []int
	for s := range sh.PerEpoch() {
		epoch = append(epoch, sh.Step(3+s)...)
	}
	if slices.Sort(epoch); len(slices.Compact(epoch)) != 10 {
		t.Errorf("an epoch holds %v", epoch)
	}
	again := slices.Clone(w.Step(17))
	w.Step(3)
	if !slices.Equal(w.Step(17), again) {
		t.Error("a step's batch depends on what was asked before")
	}
}

func TestBatchesNameTheirSampling(t *testing.T) {
	for sampling, want := range map[event.Sampling]event.Event{
		event.Poisson:            event.Repeated{Times: 7, Of: event.Sampled{Sampling: event.Poisson, Rate: 0.25, Of: event.Gaussian{Noise: 2}}},
		event.WithoutReplacement: event.Repeated{Times: 7, Of: event.Sampled{Sampling: event.WithoutReplacement, Batch: 5, Examples: 20, Of: event.Gaussian{Noise: 2}}},
		event.Shuffle:            event.Repeated{Times: 7, Of: event.Sampled{Sampling: event.Shuffle, Batch: 5, Examples: 20, Of: event.Gaussian{Noise: 2}}},
		event.FullBatch:          event.Repeated{Times: 7, Of: event.Gaussian{Noise: 2}},
	} {
		b, err := NewBatches(sampling, 20, 5, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Event(event.Gaussian{Noise: 2}, 7); got != want {
			t.Errorf("%s: %+v", sampling, got)
		}
	}
	for _, c := range []struct{ rows, size int }{{0, 1}, {5, 6}, {5, 0}} {
		if _, err := NewBatches(event.Poisson, c.rows, c.size, 1); err == nil {
			t.Errorf("batches of %d from %d rows were accepted", c.size, c.rows)
		}
	}
	if _, err := NewBatches("bootstrap", 5, 5, 1); err == nil {
		t.Error("an unknown sampling was accepted")
	}
}

// TestPrivateStepNoise: with all rows clipped away the step is noise alone, of
// standard deviation multiplier*bound/size.
func TestPrivateStepNoise(t *testing.T) {
	const n, bound, multiplier, size = 20_000, 0.5, 3, 64
	e, theta := newEngine[float64](t, Shape{1, 1, n - 1}, LinearLayers(1, true), squaredError[float64]{}, 2)
	ex, _ := examples(e, 2)
	steps, err := NewPrivateSteps(e, bound, multiplier, size, exampleTerms)
	if err != nil {
		t.Fatal(err)
	}
	g := make([]float64, len(theta))
	if _, err := steps.Gradient(g, theta, ex, nil, stream("noise")); err != nil {
		t.Fatal(err)
	}
	var sq float64
	for _, v := range g {
		sq += v * v
	}
	// The variance of n normals has relative standard error sqrt(2/n) = 1 %.
	want := multiplier * bound / size
	if got := math.Sqrt(sq / float64(len(g))); math.Abs(got/want-1) > 4.9*math.Sqrt(0.5/n) {
		t.Errorf("noise of standard deviation %v, want %v", got, want)
	}
	if e := steps.Event(); e.Noise != multiplier {
		t.Errorf("%+v", e)
	}
}

// TestTrainingLearns runs each optimiser on a problem with a known answer.
func TestTrainingLearns(t *testing.T) {
	for name, step := range map[string]float64{"sgd": 0.05, "adam": 0.05} {
		e, theta := newEngine[float64](t, Shape{1, 1, 3}, LinearLayers(1, true), squaredError[float64]{}, 1)
		ex, order := examples(e, 50)
		for i := range order {
			ex.Targets[i] = 2*ex.X[3*i] - ex.X[3*i+2] + 0.5
		}
		o, err := NewOptimiser[float64](name, step, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		g := make([]float64, len(theta))
		for range 2000 {
			if _, err := e.Gradient(g, theta, ex, order); err != nil {
				t.Fatal(err)
			}
			o.Apply(theta, g)
		}
		for i, want := range []float64{2, 0, -1, 0.5} {
			if math.Abs(theta[i]-want) > 1e-3 {
				t.Errorf("%s ends at %v", name, theta)
				break
			}
		}
	}
}
