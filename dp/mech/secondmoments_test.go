package mech

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// momentSum is a sum of second moments of rows.
func momentSum(t *testing.T, clip float64, relation event.Relation, rows ...[]float64) *MomentSum {
	t.Helper()
	sum, err := NewMomentSum(len(rows[0]), clip, relation)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range rows {
		if err := sum.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	return sum
}

// apart is the squared distance of two triangles, what lies above the diagonal counted
// twice, in whole numbers.
func apart(a, b []int64, features int) *big.Int {
	total := new(big.Int)
	for i := range a {
		d := big.NewInt(a[i] - b[i])
		d.Mul(d, d)
		if i >= features {
			d.Lsh(d, 1)
		}
		total.Add(total, d)
	}
	return total
}

// TestSecondMomentSensitivity: one row more moves the matrix by at most clip^2, one
// replaced by at most sqrt(2)*clip^2, in whole numbers and after truncation; noise goes by
// that, and both are attained. Wild rows are among them.
func TestSecondMomentSensitivity(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 3))
	for relation, factor := range map[event.Relation]float64{event.AddRemove: 1, event.ReplaceOne: math.Sqrt2} {
		attained := 0.0
		for trial := range 3000 {
			d, clip := 1+source.IntN(5), math.Exp(8*source.Float64()-4)
			draw := func() []float64 { return randomVector(source, d, 3*clip) }
			common, one, other := draw(), draw(), make([]float64, d)
			if relation == event.ReplaceOne {
				other = draw()
			}
			switch trial % 50 {
			case 0:
				one[0] = math.NaN()
			case 1:
				one[0] = math.MaxFloat64
			case 2:
				one[0] = math.Inf(-1)
			case 3, 4: // at right angles
				clear(one)
				clear(other)
				one[0] = 2 * clip
				if relation == event.ReplaceOne {
					other[d-1] = 2 * clip
				}
			}
			a := momentSum(t, clip, relation, common, one)
			b := momentSum(t, clip, relation, common, other)
			a.settle()
			b.settle()
			moved := new(big.Float).SetInt(apart(a.sum, b.sum, d))
			moved.Sqrt(moved.SetPrec(200))
			moved.Mul(moved, big.NewFloat(a.lattice.Step*a.lattice.Step))
			noised := a.bound
			if relation == event.ReplaceOne {
				noised *= 2 // as accountants do
			}
			if moved.Cmp(big.NewFloat(noised)) > 0 {
				t.Fatalf("%s: the sum moved by %v, noised for %v", relation, moved, noised)
			}
			if noised > factor*clip*clip*(1+1e-15) {
				t.Fatalf("%s: noised for %v at clip %v, which is more than it takes", relation, noised, clip)
			}
			share, _ := moved.Float64()
			attained = max(attained, share/(factor*clip*clip))
		}
		if attained < 1-1e-4 {
			t.Errorf("%s: neighbours are at most %v of the bound apart", relation, attained)
		}
	}
}

// TestSecondMomentsAreThose: the triangle is the matrix that plain loops add up, also past
// the number of rows that floats add without rounding.
func TestSecondMomentsAreThose(t *testing.T) {
	const d, rows = 3, mostWhole + 300
	source := rand.New(rand.NewPCG(5, 5))
	sum, err := NewMomentSum(d, 1, event.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	plain := NewPlainMoments(d)
	want := make([]int64, TriangleLength(d))
	for range rows {
		x := randomVector(source, d, 0.3)
		if norm, _ := Norm(x); norm > 1 {
			continue
		}
		if err := sum.Add(x); err != nil {
			t.Fatal(err)
		}
		if err := plain.Add(x); err != nil {
			t.Fatal(err)
		}
		at := d
		for i := range d {
			a := int64(x[i] / sum.lattice.Step)
			want[i] += a * a
			for j := i + 1; j < d; j++ {
				want[at] += a * int64(x[j]/sum.lattice.Step)
				at++
			}
		}
	}
	unprotected := make([]float64, len(want))
	if err := plain.Unprotected(unprotected); err != nil {
		t.Fatal(err)
	}
	sum.settle()
	for i, v := range sum.sum {
		if v != want[i] {
			t.Fatalf("value %d is %d, want %d", i, v, want[i])
		}
		if float := float64(v) * sum.lattice.Step * sum.lattice.Step; math.Abs(float-unprotected[i]) > 1 {
			t.Errorf("value %d is %v on the lattice and %v in floats", i, float, unprotected[i])
		}
	}
	whole := make([]float64, d*d)
	if err := Mirror(whole, unprotected, d); err != nil {
		t.Fatal(err)
	}
	if whole[1] != unprotected[d] || whole[d] != unprotected[d] || whole[2] != unprotected[d+1] || whole[5] != unprotected[d+2] || whole[4] != unprotected[1] {
		t.Errorf("%v is mirrored to %v", unprotected, whole)
	}
}

// TestSecondMomentNoise: noise has the deviation that is paid for on the diagonal, half
// the variance above it, drawn exactly or not. A right one fails with probability at most
// 8e-6 (eight checks); 5 % less noise, or the same above the diagonal as on it, is seen.
func TestSecondMomentNoise(t *testing.T) {
	const d, releases, clip, multiplier = 40, 60, 3.0, 2.5
	for relation, bound := range map[event.Relation]float64{event.AddRemove: clip * clip, event.ReplaceOne: clip * clip * math.Sqrt2 / 2} {
		terms := map[event.Relation]Terms{event.AddRemove: addRemove, event.ReplaceOne: replaceOne}[relation]
		for _, exact := range []bool{true, false} {
			var on, above float64
			source, entropy := rand.NewPCG(7, 7), keyed(7)
			out := make([]float64, TriangleLength(d))
			for range releases {
				sum := momentSum(t, clip, relation, make([]float64, d))
				var err error
				if exact {
					_, err = Gaussian{multiplier}.ReleaseMoments(out, sum, terms, entropy)
				} else {
					_, err = Gaussian{multiplier}.SimulateMoments(out, sum, terms, source)
				}
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range out {
					if i < d {
						on += v * v
					} else {
						above += v * v
					}
				}
			}
			variance := multiplier * multiplier * bound * bound
			check := func(where string, sum, want float64, n float64) {
				// A mean of n squares of normal values has deviation sqrt(2/n) of itself.
				slack := zLimit * math.Sqrt(2/n)
				if got := sum / n / want; math.Abs(got-1) > slack {
					t.Errorf("%s, exact %t: variance %s is %v of what was paid for (± %v)", relation, exact, where, got, slack)
				} else if where == "above" && math.Abs(got*0.95*0.95-1) < slack {
					t.Errorf("5 %% less noise would not be seen: slack %v", slack)
				}
			}
			check("on the diagonal", on, variance, d*releases)
			check("above", above, variance/2, float64((TriangleLength(d)-d)*releases))
		}
	}
}

// TestSecondMomentsAreReleasedOnce, as paid for, under their relation.
func TestSecondMomentsAreReleasedOnce(t *testing.T) {
	row, out := []float64{1, 2}, make([]float64, 3)
	g := Gaussian{Multiplier: 1}
	sum := momentSum(t, 1, event.AddRemove, row)
	if _, err := g.ReleaseMoments(out, sum, addRemove, keyed(1)); err != nil {
		t.Fatal(err)
	}
	_, err := g.ReleaseMoments(out, sum, addRemove, keyed(1))
	refused(t, "second release", err, "released already")
	refused(t, "late row", sum.Add(row), "released already")
	_, err = g.ReleaseMoments(out, momentSum(t, 1, event.ReplaceOne, row), addRemove, keyed(1))
	refused(t, "a sum for replace-one under add-remove", err, "replace-one only")
	_, err = g.SimulateMoments(out, momentSum(t, 1, event.ReplaceOne, row), addRemove, rand.NewPCG(1, 1))
	refused(t, "the same, simulated", err, "replace-one only")
	_, err = g.ReleaseMoments(out[:2], momentSum(t, 1, event.AddRemove, row), addRemove, keyed(1))
	refused(t, "no room", err, "does not fit")
	_, err = Gaussian{Multiplier: 1e-6}.ReleaseMoments(out, momentSum(t, 1, event.AddRemove, row), addRemove, keyed(1))
	refused(t, "too little noise for the lattice", err, "allowed: 8.6")
	refused(t, "a short row", momentSum(t, 1, event.AddRemove, row).Add(row[:1]), "1 features")

	paid, err := NewPaid(event.Release{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustLocal, What: g.Event()})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "less noise than paid for", paid.Moments(Gaussian{Multiplier: 0.5}, out, momentSum(t, 1, event.AddRemove, row), Randomness{Exact: keyed(1)}), ErrUnpaid.Error())
	if err := paid.Moments(g, out, momentSum(t, 1, event.AddRemove, row), Randomness{Exact: keyed(1)}); err != nil {
		t.Error(err)
	}
	refused(t, "a second draw", paid.Moments(g, out, momentSum(t, 1, event.AddRemove, row), Randomness{Exact: keyed(1)}), ErrUnpaid.Error())

	for _, bad := range []struct {
		features int
		clip     float64
		relation event.Relation
	}{{0, 1, event.AddRemove}, {MostMomentFeatures + 1, 1, event.AddRemove}, {2, 0, event.AddRemove}, {2, math.NaN(), event.AddRemove}, {2, 1e200, event.AddRemove}, {2, 1, event.Metric}} {
		if _, err := NewMomentSum(bad.features, bad.clip, bad.relation); err == nil {
			t.Errorf("a sum of second moments of %v is made", bad)
		}
	}
}

// TestSecondMomentClipHoldsInWholeNumbers: of a row whose norm rounds to the clip and lies
// above it, floats see no excess; integers do.
func TestSecondMomentClipHoldsInWholeNumbers(t *testing.T) {
	clip := math.Sqrt(3) // below the root of 3
	sum := momentSum(t, clip, event.AddRemove, []float64{1, 1, 1})
	sum.settle()
	var square int64
	for _, v := range sum.sum[:3] {
		square += v
	}
	length := new(big.Float).SetPrec(200).SetInt64(square)
	length.Mul(length, big.NewFloat(sum.lattice.Step*sum.lattice.Step))
	exact := new(big.Float).SetPrec(200).SetFloat64(clip)
	if length.Cmp(exact.Mul(exact, exact)) > 0 {
		t.Errorf("a row clipped to %v has the squared length %v", clip, length)
	}
}

// TestSecondMomentsStayWhole: 200,001 rows of the largest odd product pass 2^53, where floats
// begin to round.
func TestSecondMomentsStayWhole(t *testing.T) {
	sum, err := NewMomentSum(1, math.Nextafter(2, 0), event.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 200_001
	for range rows {
		if err := sum.Add([]float64{2}); err != nil {
			t.Fatal(err)
		}
	}
	sum.settle()
	if one := int64(1<<18 - 1); sum.sum[0] != rows*one*one {
		t.Errorf("%d rows add up to %d, want %d", rows, sum.sum[0], rows*one*one)
	}
}
