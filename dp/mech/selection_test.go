package mech

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

var mechanisms = []string{event.Exponential, event.PermuteAndFlip, event.NoisyMax}

// wanted computes the choice's distribution from the definitions. x holds
// epsilon*(score-best)/(2*sensitivity).
func wanted(mechanism string, x []float64) []float64 {
	p := make([]float64, len(x))
	switch mechanism {
	case event.Exponential:
		var total float64
		for i := range x {
			p[i] = math.Exp(-x[i])
			total += p[i]
		}
		for i := range p {
			p[i] /= total
		}
	case event.PermuteAndFlip: // every order of the candidates, one by one
		var visit func(left []int, chance float64)
		visit = func(left []int, chance float64) {
			for k, i := range left {
				here := chance / float64(len(left))
				p[i] += here * math.Exp(-x[i])
				rest := append(append([]int(nil), left[:k]...), left[k+1:]...)
				visit(rest, here*(1-math.Exp(-x[i])))
			}
		}
		all := make([]int, len(x))
		for i := range all {
			all[i] = i
		}
		visit(all, 1)
	case event.NoisyMax: // the value of the chosen one, integrated
		density := func(v float64) float64 { return math.Exp(-math.Abs(v)) / 2 }
		above := func(v float64) float64 {
			if v > 0 {
				return math.Exp(-v) / 2
			}
			return 1 - math.Exp(v)/2
		}
		const step = 1e-3
		for v := -40.0; v < 60; v += step {
			for i := range x {
				f := density(v-x[i]) * step
				for j := range x {
					if j != i {
						f *= above(v - x[j])
					}
				}
				p[i] += f
			}
		}
	}
	return p
}

func TestSelectionDistributions(t *testing.T) {
	const epsilon = 0.8
	losses, err := NewLossScores(4, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range [][]float64{{0.5, 2, 1, -3}, {0, math.NaN(), 1, 7}, {0.25, 0.5, math.Inf(1), 0.5}} {
		if err := losses.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := ErrorCounts([]int64{3, 5, 4, 8})
	if err != nil {
		t.Fatal(err)
	}
	rates, err := ErrorRates([]int64{3, 5, 4, 8}, 9)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		scores Scores
		x      []float64
	}{
		"counts": {counts, []float64{0, epsilon, epsilon / 2, 2.5 * epsilon}},
		"rates":  {rates, []float64{0, epsilon * 8 / 9, epsilon * 4 / 9, 2.5 * epsilon * 8 / 9}},
		// Clipped sums 0.75, 4.5, 4, 2.5 in units of the bound 2.
		"losses": {losses.Scores(), []float64{0, 0.9375 * epsilon, 0.8125 * epsilon, 0.4375 * epsilon}},
	} {
		for i, mechanism := range mechanisms {
			s := Selection{Mechanism: mechanism, Epsilon: epsilon}
			want := wanted(mechanism, c.x)
			e, src := keyed(byte(90+i)), rand.NewPCG(8, uint64(i))
			exact, simulated := make([]int, 4), make([]int, 4)
			for range draws() / 50 {
				choice, release, err := s.Choose(c.scores, replaceOne, e)
				if err != nil || release.What != (event.Selection{Mechanism: mechanism, Epsilon: epsilon}) {
					t.Fatal(release, err)
				}
				exact[choice]++
				if choice, _, err = s.Simulate(c.scores, replaceOne, src); err != nil {
					t.Fatal(err)
				}
				simulated[choice]++
			}
			p := func(i int) float64 { return want[i] }
			if err := checkCounts(exact, p); err != nil {
				t.Errorf("%s, %s: %v, wanted shares %v: %v", mechanism, name, exact, want, err)
			}
			if err := checkCounts(simulated, p); err != nil {
				t.Errorf("%s, %s, simulated: %v, wanted shares %v: %v", mechanism, name, simulated, want, err)
			}
			// Planted: the factor 2 of the mechanism forgotten.
			double := append([]float64(nil), c.x...)
			for i := range double {
				double[i] *= 2
			}
			wrong := wanted(mechanism, double)
			if err := checkCounts(exact, func(i int) float64 { return wrong[i] }); err == nil {
				t.Errorf("%s, %s: twice the epsilon passed", mechanism, name)
			}
		}
	}
}

// TestSelectionInBulk draws as often as the other distribution tests, without
// what Choose does around a draw.
func TestSelectionInBulk(t *testing.T) {
	const epsilon = 0.8
	scores, err := ErrorCounts([]int64{3, 5, 4, 8})
	if err != nil {
		t.Fatal(err)
	}
	e := keyed(95)
	x := Selection{event.Exponential, epsilon}.exponents(scores)
	for mechanism, draw := range map[string]func() (int, error){
		event.Exponential:    func() (int, error) { return e.exponential(x) },
		event.PermuteAndFlip: func() (int, error) { return e.permuteAndFlip(x) },
	} {
		want := wanted(mechanism, []float64{0, epsilon, epsilon / 2, 2.5 * epsilon})
		counts := make([]int, 4)
		for range draws() {
			choice, err := draw()
			if err != nil {
				t.Fatal(err)
			}
			counts[choice]++
		}
		if err := checkCounts(counts, func(i int) float64 { return want[i] }); err != nil {
			t.Errorf("%s: %v, wanted shares %v: %v", mechanism, counts, want, err)
		}
		wrong := wanted(mechanism, []float64{0, 1.02 * epsilon, 1.02 * epsilon / 2, 1.02 * 2.5 * epsilon})
		if err := checkCounts(counts, func(i int) float64 { return wrong[i] }); err == nil {
			t.Errorf("%s: an epsilon 2 %% too large passed", mechanism)
		}
	}
	// The noise of noisy-max is what can be wrong about it.
	n := draws()
	var square float64
	const scale = 1 << 20
	for range n {
		v, err := e.laplace(scale)
		if err != nil {
			t.Fatal(err)
		}
		square += float64(v) * float64(v) / (scale * scale)
	}
	// Laplace noise of scale 1 has E[x^2] = 2 and E[x^4] = 24.
	if z := (square/float64(n) - 2) / math.Sqrt(20) * math.Sqrt(float64(n)); math.Abs(z) > zLimit {
		t.Errorf("discrete Laplace: mean square %v, z = %.1f", square/float64(n), z)
	}
}

func TestDiscreteLaplace(t *testing.T) {
	for i, scale := range []uint64{1, 2, 5, 40} {
		e := keyed(byte(100 + i))
		reach := int64(20 * scale)
		counts := make([]int, 2*reach+1)
		for range 200_000 {
			x, err := e.laplace(scale)
			if err != nil {
				t.Fatal(err)
			}
			counts[min(max(x+reach, 0), 2*reach)]++
		}
		q := math.Exp(-1 / float64(scale))
		p := func(i int) float64 { return (1 - q) / (1 + q) * math.Pow(q, math.Abs(float64(int64(i)-reach))) }
		if err := checkCounts(counts, p); err != nil {
			t.Errorf("scale %d: %v", scale, err)
		}
	}
}

func TestNoisyMaxScaleIsRoundedUp(t *testing.T) {
	scores, err := ErrorRates([]int64{1, 2}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, epsilon := range []float64{1e-3, 0.1, 1, 3, 1e3, 1e12} {
		scale, refine, err := noisyMaxScale(scores, epsilon)
		if err != nil {
			t.Fatal(err)
		}
		least := 2 * float64(refine) * 1000 / 999 / epsilon
		if got := float64(scale); got < least*(1-1e-15) || got > least+1 {
			t.Errorf("epsilon %v: scale %d, least %v", epsilon, scale, least)
		}
	}
}

func TestSelectionRefuses(t *testing.T) {
	counts, err := ErrorCounts([]int64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	rates, err := ErrorRates([]int64{1, 2}, 5)
	if err != nil {
		t.Fatal(err)
	}
	far, err := ErrorCounts([]int64{0, math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, word string
		s          Selection
		scores     Scores
		terms      Terms
	}{
		{"no name", "mechanism", Selection{"best", 1}, counts, addRemove},
		{"no epsilon", "epsilon", Selection{event.Exponential, 0}, counts, addRemove},
		{"NaN", "epsilon", Selection{event.NoisyMax, math.NaN()}, counts, addRemove},
		{"no scores", "candidates", Selection{event.Exponential, 1}, Scores{}, addRemove},
		{"rates under add-remove", "replace-one", Selection{event.Exponential, 1}, rates, addRemove},
		{"tiny epsilon", "epsilon", Selection{event.NoisyMax, 1e-20}, counts, addRemove},
	} {
		_, _, err := c.s.Choose(c.scores, c.terms, keyed(1))
		refused(t, c.what, err, c.word)
	}
	for _, m := range mechanisms {
		_, _, err := Selection{m, 1}.Choose(counts, addRemove, NewEntropy(nil))
		refused(t, m+" without entropy", err, "source")
		if choice, _, err := (Selection{m, 1e300}).Choose(counts, addRemove, keyed(1)); err != nil || choice != 0 {
			t.Errorf("%s at a huge epsilon: %d, %v", m, choice, err)
		}
	}
	if choice, _, err := (Selection{event.NoisyMax, 1}).Choose(far, addRemove, keyed(1)); err != nil || choice != 0 {
		t.Errorf("scores far apart: %d, %v", choice, err)
	}
	for _, wrong := range [][]int64{nil, {-1}, {6}} {
		if _, err := ErrorRates(wrong, 5); err == nil {
			t.Errorf("%v wrong of 5 was taken", wrong)
		}
	}
	if _, err := ErrorRates([]int64{0}, 1); err == nil {
		t.Error("a rate of one example was taken")
	}
	if _, err := NewLossScores(0, 1); err == nil {
		t.Error("no candidates were taken")
	}
	if _, err := NewLossScores(1, math.Inf(1)); err == nil {
		t.Error("an endless bound was taken")
	}
	one, err := NewLossScores(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Add([]float64{1, 2}); err == nil {
		t.Error("two losses for one candidate were taken")
	}
}
