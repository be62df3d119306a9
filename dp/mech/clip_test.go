package mech

import (
	"math"
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
		"NaN":            {[]float64{1, math.NaN()}, 1},
		"infinity":       {[]float64{math.Inf(-1)}, 1},
		"zero bound":     {[]float64{1}, 0},
		"negative bound": {[]float64{1}, -1},
		"NaN bound":      {[]float64{1}, math.NaN()},
		"infinite bound": {[]float64{1}, math.Inf(1)},
		"norm too large": {[]float64{math.MaxFloat64, math.MaxFloat64}, 1},
	} {
		if _, err := Clip(c.v, c.bound); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestOwnRadius(t *testing.T) {
	c, err := OwnRadius([]float64{3, 4}, 1e-6)
	if err != nil || c.Bound() != 5 || c.Public() {
		t.Errorf("bound %v, public %v, %v", c.Bound(), c.Public(), err)
	}
	if c, err = OwnRadius([]float64{0, 0}, 1e-6); err != nil || c.Bound() != 1e-6 {
		t.Errorf("an update of length 0 has the radius %v, want the floor (%v)", c.Bound(), err)
	}
	if _, err = OwnRadius([]float64{math.NaN()}, 1e-6); err == nil {
		t.Error("NaN was accepted")
	}
	if _, err = OwnRadius([]float64{1}, 0); err == nil {
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
