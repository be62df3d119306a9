package mech

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestClipNeverExceedsItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(-1e200, 1e200), 1, 40).Draw(t, "v")
		bound := rapid.Float64Range(1e-150, 1e150).Draw(t, "bound")
		c, err := Clip(v, bound)
		if err != nil {
			t.Fatal(err)
		}
		if norm, err := Norm(c.v); err != nil || norm > bound {
			t.Fatalf("norm %v above the bound %v (%v)", norm, bound, err)
		}
		if !c.Public() || c.Bound() != bound {
			t.Fatalf("bound %v, public %v", c.Bound(), c.Public())
		}
	})
}

func TestClipKeepsWhatIsShortEnough(t *testing.T) {
	v := []float64{3, 4}
	if _, err := Clip(v, 5); err != nil || v[0] != 3 || v[1] != 4 {
		t.Errorf("%v, %v", v, err)
	}
	zero := []float64{0, 0}
	if _, err := Clip(zero, 1); err != nil || zero[0] != 0 {
		t.Errorf("%v, %v", zero, err)
	}
	long := []float64{30, 40}
	if _, err := Clip(long, 5); err != nil || math.Abs(long[0]-3) > 1e-15 || math.Abs(long[1]-4) > 1e-15 {
		t.Errorf("%v, %v", long, err)
	}
}

func TestClipRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		v     []float64
		bound float64
	}{
		"zero bound":     {[]float64{1}, 0},
		"negative bound": {[]float64{1}, -1},
		"NaN bound":      {[]float64{1}, math.NaN()},
		"infinite bound": {[]float64{1}, math.Inf(1)},
	} {
		if _, err := Clip(c.v, c.bound); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// TestNotFiniteBecomesFixed: what leaves the finite numbers takes a fixed value in the
// clip set, by every way of clipping; a refusal would tell of the data.
func TestNotFiniteBecomesFixed(t *testing.T) {
	sector, err := NewSector([]float64{3, 4}, 0.5, 2, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][]float64{
		{1, math.NaN()}, {math.Inf(-1), 0}, {math.Inf(1), math.Inf(-1)}, {math.MaxFloat64, math.MaxFloat64},
	} {
		c, err := Clip(slices.Clone(v), 1)
		if err != nil || !c.Replaced() || !slices.Equal(c.v, []float64{0, 0}) || c.Bound() != 1 || !c.Public() {
			t.Errorf("%v is clipped to %+v (%v)", v, c, err)
		}
		own, err := OwnRadius(slices.Clone(v), 1e-6, 10)
		if err != nil || !own.Replaced() || !slices.Equal(own.v, []float64{0, 0}) || own.Bound() != 1e-6 {
			t.Errorf("%v has its own radius as %+v (%v)", v, own, err)
		}
		on, err := sector.Clip(slices.Clone(v))
		if err != nil || math.Abs(on.v[0]-0.3) > 1e-12 || math.Abs(on.v[1]-0.4) > 1e-12 {
			t.Errorf("%v lies in the sector at %v (%v), not on its axis at the lower bound", v, on.v, err)
		}
	}
	if c, _ := Clip([]float64{3, 4}, 1); c.Replaced() {
		t.Error("a finite vector counts as replaced")
	}
}

// TestFactorsOfNotFiniteNorms: such an example is left out, and the others stay.
func TestFactorsOfNotFiniteNorms(t *testing.T) {
	s, err := NewLaneSum[float64](1, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	norms := []float64{1, math.NaN(), 4, math.Inf(1)}
	var got []float64
	if err := s.AddWeighted(0, norms, make([]float64, 4), func(_, factors []float64) { got = slices.Clone(factors) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []float64{1, 0, 0.5, 0}) {
		t.Errorf("factors %v of norms %v", got, norms)
	}
}

func TestOwnRadius(t *testing.T) {
	c, err := OwnRadius([]float64{3, 4}, 1e-6, 10)
	if err != nil || c.Bound() != 5 || c.Public() {
		t.Errorf("bound %v, public %v, %v", c.Bound(), c.Public(), err)
	}
	if c, err = OwnRadius([]float64{0, 0}, 1e-6, 10); err != nil || c.Bound() != 1e-6 {
		t.Errorf("an update of length 0 has the radius %v, want the floor (%v)", c.Bound(), err)
	}
	if c, err = OwnRadius([]float64{3, 4}, 1e-6, 2); err != nil || c.Bound() != 2 || c.Public() || math.Abs(c.v[0]-1.2) > 1e-12 {
		t.Errorf("above the ceiling: %+v (%v)", c, err)
	}
	if _, err = OwnRadius([]float64{1}, 2, 1); err == nil {
		t.Error("a ceiling below the floor was accepted")
	}
	if _, err = OwnRadius([]float64{1}, 0, 1); err == nil {
		t.Error("a floor of 0 was accepted: an update of 0 would go out without noise")
	}
}

func TestNormAtTheEdgesOfFloat64(t *testing.T) {
	for _, c := range []struct{ v, want float64 }{{1e-200, 1e-200 * math.Sqrt2}, {1e200, 1e200 * math.Sqrt2}, {0, 0}} {
		got, err := Norm([]float64{c.v, c.v})
		if err != nil || math.Abs(got-c.want) > 1e-15*c.want {
			t.Errorf("norm of (%v, %v) is %v, want %v (%v)", c.v, c.v, got, c.want, err)
		}
	}
}

// Bound is the largest norm that the vector can have.
func (c Clipped) Bound() float64 { return c.bound }

// Public says whether the bound was fixed without looking at private data.
func (c Clipped) Public() bool { return c.public }

// Len is the number of coordinates.
func (c Clipped) Len() int { return len(c.v) }

// TestCheckFiniteRefusesWhatNormRefuses: wherever the value stands that is none, and not
// values whose squares alone leave float64.
func TestCheckFiniteRefusesWhatNormRefuses(t *testing.T) {
	const length = 5000 // more than one pass of a kernel
	for _, x := range []float64{0, 1, -1e-300, 1e160, -1e200, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, at := range []int{0, 1, 7, 4095, 4096, length - 1} {
			v := make([]float64, length)
			v[at] = x
			_, want := Norm(v)
			if got := CheckFinite(v); (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
				t.Errorf("%v at %d: %v, want %v", x, at, got, want)
			}
		}
	}
	all := slices.Repeat([]float64{math.MaxFloat64}, 3)
	if CheckFinite(all) == nil {
		t.Error("a norm beyond float64 is let through")
	}
}
