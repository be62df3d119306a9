package mech

import (
	"math"
	"math/rand/v2"
	"testing"
)

// angleBetween is exact enough also for tiny angles.
func angleBetween(a, b []float64) float64 {
	na, _ := Norm(a)
	nb, _ := Norm(b)
	var minus, plus float64
	for i := range a {
		minus += (a[i]/na - b[i]/nb) * (a[i]/na - b[i]/nb)
		plus += (a[i]/na + b[i]/nb) * (a[i]/na + b[i]/nb)
	}
	return 2 * math.Atan2(math.Sqrt(minus), math.Sqrt(plus))
}

func randomVector(source *rand.Rand, n int, scale float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = scale * source.NormFloat64()
	}
	return v
}

func TestSectorClipsNormAndAngle(t *testing.T) {
	source := rand.New(rand.NewPCG(5, 5))
	for range 20_000 {
		n := 1 + source.IntN(12)
		upper := math.Exp(source.NormFloat64())
		lower := upper * source.Float64()
		angle := minAngle + source.Float64()*(math.Pi-minAngle)
		if source.IntN(4) == 0 {
			angle = minAngle * (1 + source.Float64())
		}
		s, err := NewSector(randomVector(source, n, 3), lower, upper, angle)
		if err != nil {
			t.Fatal(err)
		}
		v := randomVector(source, n, upper*math.Exp(3*source.NormFloat64()))
		switch source.IntN(8) {
		case 0:
			clear(v)
		case 1: // opposite, or nearly
			for i := range v {
				v[i] = -s.axis[i] + 1e-14*source.NormFloat64()
			}
		}
		before := append([]float64(nil), v...)
		c, err := s.Clip(v)
		if err != nil {
			t.Fatal(err)
		}
		norm, _ := Norm(c.v)
		if norm < lower*(1-1e-12) || norm > upper*(1+1e-12) {
			t.Fatalf("norm %v is outside [%v, %v]", norm, lower, upper)
		}
		if got := angleBetween(c.v, s.axis); norm > 0 && got > angle+1e-9 {
			t.Fatalf("angle %v, limit %v, from %v", got, angle, before)
		}
		if old, _ := Norm(before); old >= lower && old <= upper && old > 0 && angleBetween(before, s.axis) < angle-1e-9 {
			for i := range v {
				if math.Abs(v[i]-before[i]) > 1e-12*upper {
					t.Fatalf("a vector of the sector moved from %v to %v", before, v)
				}
			}
		}
	}
}

// TestSectorDiameter: no two clipped vectors are further apart, and the corners
// of the sector reach it.
func TestSectorDiameter(t *testing.T) {
	source := rand.New(rand.NewPCG(6, 6))
	for _, c := range []struct{ lower, upper, angle float64 }{
		{0, 1, math.Pi}, {0.5, 1, math.Pi / 2}, {0.9, 1, 0.1}, {0.1, 1, 0.1}, {0, 2, 0.7}, {1, 1, 0.01}, {0.2, 1, 2},
	} {
		s, err := NewSector([]float64{1, 0, 0}, c.lower, c.upper, c.angle)
		if err != nil {
			t.Fatal(err)
		}
		at := func(r, angle float64) []float64 {
			v, err := s.Clip([]float64{r * math.Cos(angle), r * math.Sin(angle), 0})
			if err != nil {
				t.Fatal(err)
			}
			return v.v
		}
		half := min(c.angle, math.Pi/2)
		var reached float64
		for _, other := range []float64{c.lower, c.upper} {
			a, b := at(c.upper, half), at(max(other, 1e-9), -half)
			reached = max(reached, math.Hypot(a[0]-b[0], a[1]-b[1]))
		}
		if reached > s.Diameter() || reached < s.Diameter()*(1-1e-8) {
			t.Errorf("%+v: corners are %v apart, diameter %v", c, reached, s.Diameter())
		}
		for range 5000 {
			a, _ := s.Clip(randomVector(source, 3, 2))
			b, _ := s.Clip(randomVector(source, 3, 2))
			var square float64
			for i := range a.v {
				square += (a.v[i] - b.v[i]) * (a.v[i] - b.v[i])
			}
			if math.Sqrt(square) > s.Diameter() {
				t.Fatalf("%+v: %v and %v are %v apart, diameter %v", c, a.v, b.v, math.Sqrt(square), s.Diameter())
			}
		}
	}
}

func TestSectorSumHoldsUnderReplaceOneOnly(t *testing.T) {
	s, err := NewSector([]float64{1, 1}, 0.8, 1, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	l := Lattice{Step: 0x1p-20}
	sum, err := NewSectorSum(s, l)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Clip([]float64{5, -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := sum.AddSector(c); err != nil {
		t.Fatal(err)
	}
	if want := (s.Diameter() + l.Step*math.Sqrt2) / 2; sum.Bound() != want {
		t.Errorf("bound %v, want %v", sum.Bound(), want)
	}
	dst := make([]int64, 2)
	_, err = Gaussian{Multiplier: 1}.Release(dst, sum, addRemove, keyed(1))
	refused(t, "add-remove", err, "replace-one")
	if _, err := (Gaussian{Multiplier: 1}).Release(dst, sum, replaceOne, keyed(1)); err != nil {
		t.Errorf("replace-one: %v", err)
	}
	refused(t, "plain vector", sum.Add(mustClip(t, 1, 1, 1)), "sector")
	floats := NewSimulatedSectorSum(s)
	if err := floats.AddSector(c); err != nil || math.Abs(floats.sum[0]-c.v[0]) > 0 {
		t.Errorf("simulated: %v, %v", floats.sum, err)
	}
	out := make([]float64, 2)
	_, err = Gaussian{Multiplier: 1}.Simulate(out, floats, addRemove, rand.NewPCG(1, 1))
	refused(t, "simulated add-remove", err, "replace-one")
	if _, err := (Gaussian{Multiplier: 1}).Simulate(out, floats, replaceOne, rand.NewPCG(1, 1)); err != nil {
		t.Errorf("simulated replace-one: %v", err)
	}
	refused(t, "simulated plain vector", NewSimulatedSectorSum(s).Add(mustClip(t, 1, 1, 1)), "sector")

	other, _ := NewSector([]float64{1, 1}, 0.8, 1, 0.2)
	foreign, _ := other.Clip([]float64{1, 1})
	refused(t, "another sector", sum.AddSector(foreign), "sector")
}

func TestSectorRefuses(t *testing.T) {
	axis := []float64{1, 0}
	for _, c := range []struct {
		axis                []float64
		lower, upper, angle float64
	}{
		{axis, -1, 1, 1}, {axis, 2, 1, 1}, {axis, 0, 0, 1}, {axis, 0, math.Inf(1), 1}, {axis, math.NaN(), 1, 1},
		{axis, 0, 1, 0}, {axis, 0, 1, 4}, {axis, 0, 1, math.NaN()}, {[]float64{0, 0}, 0, 1, 1}, {nil, 0, 1, 1},
		{[]float64{math.NaN(), 1}, 0, 1, 1},
	} {
		if _, err := NewSector(c.axis, c.lower, c.upper, c.angle); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	s, err := NewSector(axis, 0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][]float64{{1}} {
		if _, err := s.Clip(v); err == nil {
			t.Errorf("%v was taken", v)
		}
	}
}
