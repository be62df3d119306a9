package mech

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// weighted adds vectors as a network's layers do: times weights, rounded toward zero.
func weighted(vectors [][]float64) func(dst, weights []float64) {
	return func(dst, weights []float64) {
		for k, w := range weights {
			for i, v := range vectors[k] {
				dst[i] += math.Trunc(v * w)
			}
		}
	}
}

func preparedSum(t *testing.T, s *Steps, kept *StepSum, n int) *StepSum {
	t.Helper()
	if err := s.Blank(); err != nil {
		t.Fatal(err)
	}
	sum, err := s.PrepareSum(kept, n)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestWeightedVectorsKeepToTheBound: of norms that are told too small by as much as is allowed,
// no vector adds more than the bound, by integers; and hardly less, if it was longer. The noise
// is so small that a step rounds by less than that.
func TestWeightedVectorsKeepToTheBound(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, signal := range []ClipSignal{SignalNone, SignalDirections} {
		rule := StepRule{Clip: 0.3, Noise: 0x1p-20, Clipping: ClipRule{Signal: signal, GradientNoise: 1.5}, Sampling: event.Poisson, Rate: 1}
		s := openSteps(t, rule, Randomness{Exact: SystemEntropy()})
		for range 300 {
			n := 1 + r.IntN(3) // few values, which round by little
			v := make([]float64, n)
			for i := range v {
				v[i] = r.NormFloat64() * math.Ldexp(1, r.IntN(8)-4)
			}
			norm, _ := Norm(v)
			if r.IntN(3) == 0 { // as long as the bound, but for rounding
				for i := range v {
					v[i] *= 0.3 / norm * (1 + 0x1p-28*float64(r.IntN(9)-4))
				}
				norm, _ = Norm(v)
			}
			sum := preparedSum(t, s, nil, n)
			sum.Lanes(1)
			if err := sum.AddWeighted(0, []float64{norm * (1 - 0x1p-26)}, make([]float64, 1), weighted([][]float64{v})); err != nil {
				t.Fatal(err)
			}
			if err := sum.settle(); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				sum   *ClippedSum
				least float64
			}{{sum.gradients, min(norm, 0.3)}, {sum.second, 1}} {
				if c.sum == nil || c.sum == sum.second && norm <= 0.3*(1+0x1p-20) {
					continue
				}
				if !c.sum.lattice.Within(c.sum.sum, c.sum.bound) {
					t.Fatalf("%v of norm %v adds %v steps of %v, clipped to %v", v, norm, c.sum.sum, c.sum.lattice.Step, c.sum.bound)
				}
				added := make([]float64, n)
				c.sum.lattice.Float(added, c.sum.sum)
				if length, _ := Norm(added); length < c.least*(1-1e-6)-2*c.sum.lattice.Step {
					t.Fatalf("%v of norm %v adds %v alone, of %v", v, norm, length, c.least)
				}
			}
		}
	}
}

// TestWeightedIsOneByOne: vectors that are added by their norms, in lanes, make the sums of
// those added one by one, but for a step or two each, under every rule; one that is not finite
// counts for nothing.
func TestWeightedIsOneByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n, count = 6, 40
	vectors, norms := make([][]float64, count), make([]float64, count)
	for k := range vectors {
		vectors[k] = make([]float64, n)
		for i := range n {
			vectors[k][i] = r.NormFloat64()
		}
		norms[k], _ = Norm(vectors[k])
	}
	for _, signal := range []ClipSignal{SignalNone, SignalCount, SignalDirections} {
		rule := StepRule{Clip: 2.2, Noise: 1.5, Clipping: ClipRule{Signal: signal, GradientNoise: 1.2, Quantile: 0.5}, Sampling: event.Poisson, Rate: 1}
		s := openSteps(t, rule, Randomness{Exact: SystemEntropy()})
		one := preparedSum(t, s, nil, n)
		for _, v := range vectors {
			if err := one.Add(slices.Clone(v)); err != nil {
				t.Fatal(err)
			}
		}
		var kept *StepSum
		for range 2 { // once from nothing, once where something was left from a step that was not ended
			kept = preparedSum(t, s, kept, n)
			kept.Lanes(3)
			for from := 0; from < count; from += 7 {
				to := min(from+7, count)
				if err := kept.AddWeighted(from%3, norms[from:to], make([]float64, 7), weighted(vectors[from:to])); err != nil {
					t.Fatal(err)
				}
			}
			if err := kept.AddWeighted(1, []float64{math.NaN(), math.Inf(1)}, make([]float64, 2), func(_, weights []float64) {
				if weights[0] != 0 || weights[1] != 0 {
					t.Errorf("vectors that are not finite have the weights %v", weights)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time there is nothing left
			if err := kept.settle(); err != nil {
				t.Fatal(err)
			}
		}
		for what, sums := range map[string][2]*ClippedSum{"gradients": {kept.gradients, one.gradients}, "second": {kept.second, one.second}} {
			if sums[0] == nil {
				continue
			}
			for i, v := range sums[0].sum {
				if off := v - sums[1].sum[i]; off > 2*count || off < -2*count {
					t.Errorf("signal %d, %s: value %d is %d, one by one %d", signal, what, i, v, sums[1].sum[i])
				}
			}
		}
		if signal == SignalCount && kept.second.sum[0] != one.second.sum[0] {
			t.Errorf("%d halves, one by one %d", kept.second.sum[0], one.second.sum[0])
		}
		if err := s.Release(make([]int64, n), kept); err != nil {
			t.Fatal(err)
		}
		if err := kept.AddWeighted(0, norms[:1], make([]float64, 1), weighted(vectors[:1])); err == nil {
			t.Error("a sum that was released takes more")
		}
	}
}

// TestLanesStayExact: a lane goes to the sum before it leaves the whole numbers that float64
// has, and sums of noise too small for that, of too small a clip or of too many values are
// added one by one.
func TestLanesStayExact(t *testing.T) {
	rule := StepRule{Clip: 1, Noise: 0x1p-21, Sampling: event.Poisson, Rate: 1}
	s := openSteps(t, rule, Randomness{Exact: SystemEntropy()})
	sum := preparedSum(t, s, nil, 1)
	sum.Lanes(1)
	vectors := slices.Repeat([][]float64{{1}}, 256)
	var want int64
	for range 40 {
		err := sum.AddWeighted(0, slices.Repeat([]float64{1}, 256), make([]float64, 256), func(dst, weights []float64) {
			weighted(vectors)(dst, weights)
			want += 256 * int64(weights[0])
			if dst[0] > 0x1p53 {
				t.Fatalf("a lane holds %v steps", dst[0])
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	most := slices.Repeat([][]float64{{1}}, 2048) // as the documents promise, on the finest lattice
	err := sum.AddWeighted(0, slices.Repeat([]float64{1}, 2048), make([]float64, 2048), func(dst, weights []float64) {
		weighted(most)(dst, weights)
		want += 2048 * int64(weights[0])
	})
	if err != nil || sum.gradients.bound/sum.gradients.lattice.Step < mostWholeSteps/2 {
		t.Fatal(err, sum.gradients.lattice)
	}
	if err := sum.settle(); err != nil || sum.gradients.sum[0] != want || want < 1<<53 {
		t.Errorf("%d steps, want %d; %v", sum.gradients.sum[0], want, err)
	}
	for name, change := range map[string]func(*StepRule){
		"little noise": func(r *StepRule) { r.Noise = 1e-9 },
		"a tiny clip":  func(r *StepRule) { r.Clip = 1e-200 },
	} {
		own := rule
		change(&own)
		s := openSteps(t, own, Randomness{Exact: SystemEntropy()})
		sum := preparedSum(t, s, nil, 1)
		sum.Lanes(1)
		if err := sum.AddWeighted(0, []float64{1}, make([]float64, 1), weighted(vectors)); sum.Weighted() || err == nil {
			t.Errorf("%s: vectors are added by their norms", name)
		}
	}
}
