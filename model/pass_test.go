package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
)

func optimiser(t *testing.T, l config.Local) Optimiser {
	t.Helper()
	o, err := NewOptimiser(l)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// moved takes one step by a whole gradient.
func moved(o *Optimiser, theta, gradient []float64, step, noise float64) {
	o.begin(step, noise)
	o.move(theta, 0, gradient)
}

func TestOptimisers(t *testing.T) {
	// One and two steps by hand on f(x) = x^2/2 from 1, gradient x.
	theta := []float64{1}
	s := optimiser(t, config.Local{Optimiser: "momentum", Momentum: 0.9})
	s.restart(1, nil)
	moved(&s, theta, []float64{theta[0]}, 0.1, 0) // v = 1, x = 0.9
	moved(&s, theta, []float64{theta[0]}, 0.1, 0) // v = 1.8, x = 0.72
	if math.Abs(theta[0]-0.72) > 1e-15 {
		t.Errorf("momentum ends at %v, want 0.72", theta[0])
	}
	theta = []float64{1}
	a := optimiser(t, config.Local{Optimiser: "adam", Beta1: 0.9, Beta2: 0.999})
	a.restart(1, nil)
	moved(&a, theta, []float64{3}, 0.1, 0) // the first step is step*sign(g), but for epsilon
	if math.Abs(theta[0]-0.9) > 1e-8 {
		t.Errorf("adam's first step ends at %v, want 0.9", theta[0])
	}
	moved(&a, theta, []float64{-1}, 0.1, 0)
	// m = (0.1*0.9*3 - 0.1)/(1-0.81), v = (0.001*0.999*9 + 0.001)/(1-0.998001)
	m, v := (0.27-0.1)/0.19, (0.008991+0.001)/0.001999
	if want := 0.9 - 0.1*m/(math.Sqrt(v)+1e-8); math.Abs(theta[0]-want) > 1e-8 {
		t.Errorf("adam's second step ends at %v, want %v", theta[0], want)
	}
	for _, l := range []config.Local{{Optimiser: "lbfgs"}, {Optimiser: "momentum", Momentum: 1}, {Optimiser: "adam", Beta1: 0.9, Beta2: math.NaN()}} {
		if _, err := NewOptimiser(l); err == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
}

func TestSchedules(t *testing.T) {
	for name, want := range map[string][]float64{
		"":             {2, 2, 2},
		"constant":     {2, 2, 2},
		"linear":       {2, 1.5, 0.5},
		"cosine":       {2, 1 + math.Sqrt(0.5), 1 - math.Sqrt(0.5)},
		"inverse-root": {2, math.Sqrt2, 1},
	} {
		p, err := NewPass(config.Local{Step: 2, Schedule: name}, 4)
		if err != nil {
			t.Fatal(err)
		}
		for i, round := range []int{0, 1, 3} {
			if p.At(round); math.Abs(p.StepSize-want[i]) > 1e-15 {
				t.Errorf("%s: round %d has the step %v, want %v", name, round, p.StepSize, want[i])
			}
		}
	}
	if _, err := NewPass(config.Local{Schedule: "warm"}, 4); err == nil {
		t.Error("an unknown schedule was accepted")
	}
}

// TestEpochsCoverTheExamples: every epoch has each example once, the last batch is the
// smaller one or left out, and a batch of all needs no order.
func TestEpochsCoverTheExamples(t *testing.T) {
	for _, v := range []struct {
		batch, examples int
		drop            bool
		sizes           []int // of one epoch
	}{
		{4, 10, false, []int{4, 4, 2}}, {4, 10, true, []int{4, 4}}, {5, 10, true, []int{5, 5}}, {5, 10, false, []int{5, 5}},
	} {
		p := &Pass{Epochs: 3, Batch: v.batch, Drop: v.drop, Shuffle: stream("order")}
		if err := p.begin(v.examples); err != nil || p.Whole {
			t.Fatal(err)
		}
		var first []int
		for epoch := range 3 {
			var seen []int
			for _, size := range v.sizes {
				batch, more, err := p.next()
				if err != nil || !more || len(batch) != size {
					t.Fatalf("%+v: a batch of %d, more %v (%v)", v, len(batch), more, err)
				}
				seen = append(seen, batch...)
			}
			if epoch == 0 {
				first = slices.Clone(seen)
			} else if slices.Equal(first, seen) {
				t.Errorf("%+v: two epochs in one order", v)
			}
			if slices.Sort(seen); len(slices.Compact(seen)) != len(seen) {
				t.Errorf("%+v: an example twice in an epoch", v)
			}
		}
		if _, more, _ := p.next(); more {
			t.Errorf("%+v: a fourth epoch", v)
		}
	}
	for _, batch := range []int{0, 10, 11} {
		p := &Pass{Epochs: 2, Batch: batch}
		if err := p.begin(10); err != nil || !p.Whole || p.left != 2 {
			t.Errorf("batch %d: %+v (%v)", batch, p, err)
		}
	}
	if err := (&Pass{Epochs: 1, Batch: 3}).begin(10); err == nil {
		t.Error("batches without an order")
	}
}

// slowTrain is a second way through a pass of paid steps: batches from a twin of its
// sampler, every gradient by differences, clipped, summed and divided by hand.
func slowTrain(t *testing.T, m Linear, theta []float64, c *data.Client, rule mech.StepRule, p Pass) {
	t.Helper()
	var twin mech.Sampler
	if err := twin.Open(rule.Sampling, rule.Rate, rule.Batch, mech.NewEntropy(stream("drawn"))); err != nil {
		t.Fatal(err)
	}
	velocity := make([]float64, len(theta))
	for range p.Count {
		batch, err := twin.Batch(c.Len())
		if err != nil {
			t.Fatal(err)
		}
		pull := make([]float64, len(theta))
		for i := range pull {
			if p.Pull.Offset != nil {
				pull[i] = p.Pull.Slope*theta[i] + p.Pull.Offset[i]
			}
		}
		shift := pull
		if !p.Pull.Inside {
			shift = nil
		}
		g := slowSum(m, theta, c, batch, rule.Clip, shift)
		for i := range theta {
			g[i] /= float64(p.Divisor)
			if !p.Pull.Inside {
				g[i] += pull[i]
			}
			velocity[i] = p.Optimiser.decay*velocity[i] + g[i]
			theta[i] -= p.StepSize * velocity[i]
		}
	}
}

// TestPaidPassesAgainstASlowWay covers batches, clip, divisor, regulariser and
// momentum of private training at once: noise of 1e-9 clips leaves them to be seen.
func TestPaidPassesAgainstASlowWay(t *testing.T) {
	c := rowsFor(HalfSquaredError, 4, 30)
	offset := normals[float64]("offset", 5, 0.2)
	for _, rule := range []mech.StepRule{
		{Sampling: event.Poisson, Rate: 0.3}, {Sampling: event.WithoutReplacement, Batch: 8, Examples: 30}, {Sampling: event.Shuffle, Batch: 8, Examples: 30},
	} {
		rule.Clip, rule.Noise = 0.5, 1e-9
		for _, pull := range []Pull{{}, {Slope: 0.3, Offset: offset}, {Slope: 0.3, Offset: offset, Inside: true}} {
			for _, local := range []config.Local{{}, {Optimiser: "momentum", Momentum: 0.7}} {
				m := Linear{Features: 4, Intercept: true, Loss: HalfSquaredError}
				l, got := learnerOf(t, m), normals[float64]("theta", 5, 0.5)
				want := slices.Clone(got)
				p := Pass{Count: 7, StepSize: 0.4, Pull: pull, Optimiser: optimiser(t, local)}
				p.Divisor = 6
				slowTrain(t, m, want, c, rule, p)
				p.Paid = sampledSteps(t, rule, stream("drawn"), mech.Randomness{Keyed: stream("noise")})
				if err := l.Train(got, c, &p); err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if math.Abs(got[i]-want[i]) > 1e-6 {
						t.Errorf("%s, %+v, %q: %v, the slow way %v", rule.Sampling, pull, local.Optimiser, got, want)
						break
					}
				}
			}
		}
	}
}

// TestBlankPassesReadNoExample: they cost what others cost, and are noise alone.
func TestBlankPassesReadNoExample(t *testing.T) {
	m := Linear{Features: 2, Loss: HalfSquaredError}
	steps := paidSteps(t, 1, 1e-9, mech.Randomness{Keyed: stream("noise")})
	theta := []float64{1, 2}
	p := &Pass{Step: Step{Paid: steps, Divisor: 3}, Count: 4, Blank: true, StepSize: 1}
	if err := learnerOf(t, m).Train(theta, rowsFor(HalfSquaredError, 2, 9), p); err != nil || math.Abs(theta[0]-1)+math.Abs(theta[1]-2) > 1e-7 {
		t.Errorf("%v (%v)", theta, err)
	}
}

// TestSinglePassesAreTheSameSteps: in single precision in place, or through gradients
// in double, pictures come to the same model but for rounding.
func TestSinglePassesAreTheSameSteps(t *testing.T) {
	for _, batch := range []int{0, 10, 40} {
		m, c := smallPictures(t, 3, 50)
		l := learnerOf(t, m)
		var ends [2][]float64
		for i, single := range []bool{false, true} {
			ends[i] = make([]float64, m.Parameters())
			m.Initialise(ends[i], stream("start"))
			p := &Pass{StepSize: 0.1, Epochs: 3, Batch: batch, Single: single, Shuffle: stream("order")}
			if err := l.Train(ends[i], c, p); err != nil {
				t.Fatal(err)
			}
		}
		for i := range ends[0] {
			if math.Abs(ends[0][i]-ends[1][i]) > 1e-4 {
				t.Fatalf("batch %d: parameter %d is %v, in single precision %v", batch, i, ends[0][i], ends[1][i])
			}
		}
	}
}

// TestOptimisersStartAnew: the second pass of a worker is not the first one's
// continuation.
func TestOptimisersStartAnew(t *testing.T) {
	c := rowsFor(SquaredError, 3, 12)
	for _, name := range []string{"momentum", "adam"} {
		p := &Pass{StepSize: 0.05, Epochs: 4, Optimiser: optimiser(t, config.Local{Optimiser: name, Momentum: 0.9, Beta1: 0.9, Beta2: 0.99})}
		l := learnerOf(t, Linear{Features: 3})
		first, second := make([]float64, 3), make([]float64, 3)
		for _, theta := range [][]float64{first, second} {
			if err := l.Train(theta, c, p); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(first, second) {
			t.Errorf("%s: %v, then %v", name, first, second)
		}
	}
}

// TestTrainingLearns runs each optimiser on a problem with a known answer, by every
// loss of values that has it.
func TestTrainingLearns(t *testing.T) {
	c := rowsFor(SquaredError, 3, 50)
	for i := range c.Y {
		c.Y[i] = 2*c.X[3*i] - c.X[3*i+2] + 0.5
	}
	layers := config.Model{Kind: "network", Layers: LinearLayers(1, true)}
	for _, name := range []string{"sgd", "momentum", "adam"} {
		for _, block := range []config.Model{layers, {Kind: "linear", Intercept: true}} {
			for _, loss := range []Loss{SquaredError, HalfSquaredError} {
				m, err := Of(runOf(block, loss), data.Shape{Features: 3})
				if err != nil {
					t.Fatal(err)
				}
				theta := make([]float64, m.Parameters())
				p := &Pass{StepSize: 0.05, Epochs: 2000, Optimiser: optimiser(t, config.Local{Optimiser: name, Momentum: 0.5, Beta1: 0.9, Beta2: 0.999})}
				if err := learnerOf(t, m).Train(theta, c, p); err != nil {
					t.Fatal(err)
				}
				for i, want := range []float64{2, 0, -1, 0.5} {
					if math.Abs(theta[i]-want) > 1e-3 {
						t.Errorf("%s, %s, %s ends at %v", name, block.Kind, loss, theta)
						break
					}
				}
			}
		}
	}
}

// TestEmptyBatches: where a Poisson batch is empty the step is noise alone, and
// without noise nothing at all.
func TestEmptyBatches(t *testing.T) {
	network, err := Of(runOf(config.Model{Kind: "network", Layers: LinearLayers(2, true)}, CrossEntropy), data.Shape{Features: 2, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]Model{"network": network, "linear": Linear{Features: 2, Loss: CrossEntropy, Classes: 2}, "squares": Linear{Features: 2}} {
		l, theta, g := learnerOf(t, m), make([]float64, m.Parameters()), make([]float64, m.Parameters())
		c := rowsFor(CrossEntropy, 2, 10)
		steps := paidSteps(t, 1, 2, mech.Randomness{Keyed: stream("noise")})
		if err := l.Gradient(g, theta, c, nil, begin(t, Step{Paid: steps, Divisor: 1})); err != nil || slices.Contains(g, 0) {
			t.Errorf("%s: an empty batch gives %v (%v): want noise alone", name, g, err)
		}
		if err := l.Gradient(g, theta, c, nil, &Step{}); err != nil || slices.ContainsFunc(g, func(v float64) bool { return v != 0 }) {
			t.Errorf("%s: an empty batch without noise gives %v (%v)", name, g, err)
		}
	}
}

// TestPrivateStepNoise: with nothing but noise its standard deviation is
// multiplier*clip/divisor.
func TestPrivateStepNoise(t *testing.T) {
	const n, clip, multiplier, size = 20_000, 0.5, 3, 64
	m, err := Of(runOf(config.Model{Kind: "network", Layers: LinearLayers(1, true)}, SquaredError), data.Shape{Features: n - 1})
	if err != nil {
		t.Fatal(err)
	}
	theta := make([]float64, n)
	p := &Pass{Step: Step{Paid: paidSteps(t, clip, multiplier, mech.Randomness{Keyed: stream("noise")}), Divisor: size}, Count: 1, StepSize: 1, Blank: true}
	if err := learnerOf(t, m).Train(theta, &data.Client{Rows: data.Rows{Features: n - 1}}, p); err != nil {
		t.Fatal(err)
	}
	var squares float64
	for _, v := range theta {
		squares += v * v
	}
	// The variance of n normals has relative standard error sqrt(2/n) = 1 %.
	want := multiplier * clip / size
	if got := math.Sqrt(squares / n); math.Abs(got/want-1) > 4.9*math.Sqrt(0.5/n) {
		t.Errorf("noise of standard deviation %v, want %v", got, want)
	}
}

// TestRootsCannotBeClipped: what a loss cannot do is an error that says why.
func TestRootsCannotBeClipped(t *testing.T) {
	network, err := Of(runOf(config.Model{Kind: "network", Name: "hospital"}, RMSE), data.Shape{Features: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []Model{Linear{Features: 3, Loss: RMSE}, network} {
		l, theta := learnerOf(t, m), make([]float64, m.Parameters())
		err := l.Gradient(make([]float64, len(theta)), theta, rowsFor(RMSE, 3, 4), []int{0}, &Step{Clip: 1, Divisor: 1})
		if err == nil || fmt.Sprint(err) != "step: the loss rmse is a root over all examples, no sum over them: single examples cannot be clipped; use squared-error" {
			t.Errorf("%T: %v", m, err)
		}
	}
}

// TestPassesTakeNoMemory: a worker's clients cost none, whatever their batches.
func TestPassesTakeNoMemory(t *testing.T) {
	c, theta := rowsFor(SquaredError, 2, 10), make([]float64, 2)
	for _, batch := range []int{0, 3} {
		l := learnerOf(t, Linear{Features: 2})
		p := &Pass{StepSize: 0.01, Epochs: 2, Batch: batch, Shuffle: stream("order")}
		if n := testing.AllocsPerRun(100, func() {
			if err := l.Train(theta, c, p); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("batches of %d: memory is taken %v times", batch, n)
		}
	}
}
