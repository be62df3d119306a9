package mech

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// positiveSum is a positive sum of vectors, in steps of a lattice.
func positiveSum(t *testing.T, relation event.Relation, l Lattice, vectors ...[]float64) *ClippedSum {
	t.Helper()
	sum, err := NewPositiveSum(len(vectors[0]), 1, relation, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		c, err := Clip(append([]float64(nil), v...), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := sum.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return sum
}

// TestPositiveSensitivityByReplay: one vector more moves a positive sum by at most 1, one
// replaced by at most sqrt(2), which is what the noise goes by; both are attained. Without
// the rule for negative coordinates a replaced vector would move it by 2.
func TestPositiveSensitivityByReplay(t *testing.T) {
	source := rand.New(rand.NewPCG(17, 17))
	l := Lattice{Step: 0x1p-20}
	terms := map[event.Relation]Terms{event.AddRemove: addRemove, event.ReplaceOne: replaceOne}
	for relation, most := range map[event.Relation]float64{event.AddRemove: 1, event.ReplaceOne: math.Sqrt2} {
		attained := 0.0
		for trial := range 5000 {
			n := 1 + source.IntN(6)
			common, one := randomVector(source, n, 2), randomVector(source, n, 2)
			other := make([]float64, n) // without the vector
			if relation == event.ReplaceOne {
				other = randomVector(source, n, 2)
			}
			if trial%3 == 0 { // cells of a histogram
				clear(one)
				one[0] = 1
				if relation == event.ReplaceOne {
					clear(other)
					other[n-1] = 1
				}
			}
			if trial%50 == 1 {
				one[0] = math.NaN()
			}
			var out [2][]int64
			var bound float64
			for side, v := range [][]float64{one, other} {
				sum := positiveSum(t, relation, l, common, v)
				out[side], bound = make([]int64, n), sum.Bound()
				if _, err := (Gaussian{Multiplier: 1}).Release(out[side], sum, terms[relation], keyed(161)); err != nil {
					t.Fatal(err)
				}
			}
			apart := 0.0
			for i := range out[0] {
				out[0][i] -= out[1][i]
				apart = math.Hypot(apart, float64(out[0][i])*l.Step)
			}
			attained = max(attained, apart)
			factor := 1.0 // that accountants multiply the bound by
			if relation == event.ReplaceOne {
				factor = 2
			}
			if !l.Within(out[0], factor*bound) || factor*bound > most*(1+1e-15) {
				t.Fatalf("%s: %v apart, noised for %v, want at most %v", relation, apart, factor*bound, most)
			}
		}
		if attained < most*(1-1e-5) {
			t.Errorf("%s: neighbours are at most %v apart; %v can be", relation, attained, most)
		}
	}
}

// TestPositiveSumsKeepToTheirRelation: noise for half of sqrt(2) is too little where a row
// comes or goes.
func TestPositiveSumsKeepToTheirRelation(t *testing.T) {
	l := Lattice{Step: 0x1p-20}
	out := make([]int64, 1)
	if _, err := (Gaussian{Multiplier: 1}).Release(out, positiveSum(t, event.ReplaceOne, l, []float64{1}), addRemove, keyed(162)); err == nil {
		t.Error("a sum that was made for replace-one is released under add-remove")
	}
	if _, err := (Gaussian{Multiplier: 1}).Release(out, positiveSum(t, event.AddRemove, l, []float64{1}), replaceOne, keyed(162)); err != nil {
		t.Errorf("more noise than replace-one needs is refused: %v", err)
	}
	for _, bad := range []struct {
		bound    float64
		relation event.Relation
	}{{0, event.AddRemove}, {math.Inf(1), event.AddRemove}, {math.NaN(), event.ReplaceOne}, {1, event.Metric}, {1, ""}} {
		if _, err := NewPositiveSum(2, bad.bound, bad.relation, l); err == nil {
			t.Errorf("a positive sum with bound %v under %q is made", bad.bound, bad.relation)
		}
	}
}
