package mech

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
	"pgregory.net/rapid"
)

func TestLatticeFor(t *testing.T) {
	for _, c := range []struct{ scale, step float64 }{
		{1, 0x1p-20}, {1.999, 0x1p-20}, {2, 0x1p-19}, {0x1p20, 1}, {3e-5, 0x1p-36},
	} {
		l, err := LatticeFor(c.scale)
		if err != nil || l.Step != c.step {
			t.Errorf("scale %v: step %v, %v; want %v", c.scale, l.Step, err, c.step)
		}
	}
	for _, scale := range []float64{0, -1, math.NaN(), math.Inf(1), 5e-324, math.MaxFloat64} {
		if l, err := LatticeFor(scale); err == nil {
			t.Errorf("scale %v gave a step of %v", scale, l.Step)
		}
	}
	for _, step := range []float64{0, -0.5, 0.3, 3, math.NaN(), math.Inf(1), 0x1p-1000, 0x1p1000} {
		if _, err := NewLattice(step); err == nil {
			t.Errorf("step %v was taken", step)
		}
	}
}

func TestTruncateRefuses(t *testing.T) {
	l := Lattice{Step: 0x1p-20}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0x1p34, -1e300} {
		if err := l.Truncate(make([]int64, 2), []float64{1, x}); err == nil {
			t.Errorf("%v was taken", x)
		}
	}
	if err := l.Truncate(make([]int64, 1), []float64{1, 2}); err == nil {
		t.Error("a short destination was taken")
	}
	if err := (Lattice{Step: 0.3}).Truncate(make([]int64, 1), []float64{1}); err == nil {
		t.Error("a lattice that is none was taken")
	}
}

func vectors(t *rapid.T, name string) []float64 {
	return rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 20).Draw(t, name)
}

// TestTruncateNeverGrows: every coordinate moves toward zero by less than a step,
// and the exact sum of squares says the same as big integers.
func TestTruncateNeverGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := vectors(t, "v")
		l := Lattice{Step: math.Ldexp(1, rapid.IntRange(-30, 5).Draw(t, "exponent"))}
		q, back := make([]int64, len(v)), make([]float64, len(v))
		if err := l.Truncate(q, v); err != nil {
			t.Fatal(err)
		}
		l.Float(back, q)
		sum := new(big.Int)
		for i := range v {
			if back[i] != math.Trunc(v[i]/l.Step)*l.Step || math.Abs(back[i]) > math.Abs(v[i]) || math.Abs(v[i]-back[i]) >= l.Step {
				t.Fatalf("%v became %v on a lattice of %v", v[i], back[i], l.Step)
			}
			sum.Add(sum, new(big.Int).Mul(big.NewInt(q[i]), big.NewInt(q[i])))
		}
		// Probe the edge: the norm itself, and its neighbours.
		root, _ := new(big.Float).SetInt(sum).Float64()
		norm := math.Sqrt(root) * l.Step
		for _, bound := range []float64{norm, math.Nextafter(norm, 0), math.Nextafter(norm, math.Inf(1)), 2 * norm, norm / 2} {
			if bound <= 0 {
				continue
			}
			exact := new(big.Rat).SetFloat64(bound / l.Step)
			want := new(big.Rat).SetInt(sum).Cmp(exact.Mul(exact, exact)) <= 0
			if got := l.Within(q, bound); got != want {
				t.Fatalf("norm^2 %v within %v: %t, want %t", sum, bound, got, want)
			}
		}
	})
}

func TestWithinAtTheEdges(t *testing.T) {
	l := Lattice{Step: 1}
	for _, c := range []struct {
		q     []int64
		bound float64
		want  bool
	}{
		{nil, 1, true},
		{[]int64{0}, 0, false}, {[]int64{0}, math.NaN(), false},
		{[]int64{1}, 1, true}, {[]int64{1}, 0.999, false}, {[]int64{0}, 1e-300, true},
		{[]int64{3, 4}, 5, true}, {[]int64{3, 4, 1}, 5, false},
		{[]int64{math.MinInt64}, 0x1p63, true}, {[]int64{math.MinInt64, 1}, 0x1p63, false},
		{[]int64{math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64}, 0x1p62, false},
		{[]int64{1 << 40}, math.Inf(1), true},
	} {
		if got := l.Within(c.q, c.bound); got != c.want {
			t.Errorf("%v within %v: %t", c.q, c.bound, got)
		}
	}
}

// TestTruncationSlack: two points move at most sqrt(n) steps further apart
// (docs/proofs/lattice-rounding.md), and nearly that far they do.
func TestTruncationSlack(t *testing.T) {
	distance := func(a, b []float64) float64 {
		var sum float64
		for i := range a {
			sum += (a[i] - b[i]) * (a[i] - b[i])
		}
		return math.Sqrt(sum)
	}
	onLattice := func(l Lattice, v []float64) []float64 {
		q, back := make([]int64, len(v)), make([]float64, len(v))
		if err := l.Truncate(q, v); err != nil {
			t.Fatal(err)
		}
		l.Float(back, q)
		return back
	}
	l := Lattice{Step: 1}
	rapid.Check(t, func(t *rapid.T) {
		a := vectors(t, "a")
		b := make([]float64, len(a))
		for i := range b {
			b[i] = a[i] + rapid.Float64Range(-2, 2).Draw(t, "move")
		}
		apart, limit := distance(onLattice(l, a), onLattice(l, b)), distance(a, b)+math.Sqrt(float64(len(a)))
		if apart > limit*(1+1e-12) {
			t.Fatalf("%v apart on the lattice, limit %v", apart, limit)
		}
	})
	a, b := make([]float64, 100), make([]float64, 100)
	for i := range a {
		a[i], b[i] = 1, math.Nextafter(1, 0)
	}
	if apart := distance(onLattice(l, a), onLattice(l, b)); apart != 10 {
		t.Errorf("the slack is not reached: %v", apart)
	}
}

// TestReleaseOnTheLatticeKeepsItsBound: an excess that rounding hid from Clip is
// removed in integers before noise is added, for the Laplace mechanism as for sums.
func TestReleaseOnTheLatticeKeepsItsBound(t *testing.T) {
	lattice, err := NewLattice(1.0 / 1024)
	if err != nil {
		t.Fatal(err)
	}
	release := func(v ...float64) []int64 {
		family := rng.NewFamily(5, "lattice")
		dst := make([]int64, 2)
		// Norm 5, just above its bound, as rounding could leave it.
		c := Clipped{v: v, bound: math.Nextafter(5, 0), public: true}
		if _, err := (Laplace{Multiplier: 1}).OnLattice(dst, make([]int64, 2), c, lattice, NewEntropy(family.Stream(0, 0))); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	got, want := release(3, 4), release(3-1.0/1024, 4-1.0/1024)
	if !slices.Equal(got, want) {
		t.Errorf("%v was released for an update above its bound, want %v", got, want)
	}
}
