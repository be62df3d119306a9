package mech

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/dp/event"
)

var (
	addRemove  = Terms{Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal}
	replaceOne = Terms{Unit: event.UnitExample, Relation: event.ReplaceOne, Trust: event.TrustLocal}
)

func mustClip(t *testing.T, bound float64, v ...float64) Clipped {
	t.Helper()
	c, err := Clip(v, bound)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustSum(t *testing.T, n int, bound float64, l Lattice) *ClippedSum {
	t.Helper()
	s, err := NewClippedSum(n, bound, l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refused fails the test unless err mentions word.
func refused(t *testing.T, what string, err error, word string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), word) {
		t.Errorf("%s: error %v, want one about %q", what, err, word)
	}
}

func TestGaussianReleaseIsSumPlusNoise(t *testing.T) {
	g := Gaussian{Multiplier: 1.5}
	l, err := g.Lattice(2)
	if err != nil {
		t.Fatal(err)
	}
	sum := mustSum(t, 3, 2, l)
	for _, v := range [][]float64{{1, 0, 0}, {0, 10, 0}, {0.1, 0.2, -0.3}} {
		if err := sum.Add(mustClip(t, 2, v...)); err != nil {
			t.Fatal(err)
		}
	}
	dst, noise := make([]int64, 3), make([]int64, 3)
	release, err := g.Release(dst, sum, addRemove, keyed(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := keyed(1).DiscreteGaussian(noise, 3<<19); err != nil { // sigma 3 on steps of 2^-19
		t.Fatal(err)
	}
	got := make([]float64, 3)
	for i := range dst {
		dst[i] -= noise[i]
	}
	l.Float(got, dst)
	for i, want := range []float64{1.1, 2.2, -0.3} {
		if math.Abs(got[i]-want) > 3*l.Step {
			t.Errorf("coordinate %d: %v, want %v", i, got[i], want)
		}
	}
	want := event.Release{
		Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved,
		Trust: event.TrustLocal, What: event.Gaussian{Noise: 1.5},
	}
	if release != want {
		t.Errorf("event %+v, want %+v", release, want)
	}
	_, err = g.Release(dst, sum, addRemove, keyed(1))
	refused(t, "second release", err, "released already")
	refused(t, "late term", sum.Add(mustClip(t, 2, 0, 0, 0)), "released")
	sum.Reset()
	if err := sum.Add(mustClip(t, 2, 0, 0, 0)); err != nil {
		t.Errorf("after Reset: %v", err)
	}
}

func TestSigmaIsRoundedUp(t *testing.T) {
	for _, multiplier := range []float64{0.1, 1, 1.0000001, math.Pi, 1e6} {
		g := Gaussian{Multiplier: multiplier}
		l, err := g.Lattice(3)
		if err != nil {
			t.Fatal(err)
		}
		sigma, err := g.Sigma(3, l)
		if err != nil {
			t.Fatal(err)
		}
		if wanted := multiplier * 3 / l.Step; float64(sigma) < wanted || float64(sigma) > wanted+2 {
			t.Errorf("multiplier %v: %d steps, wanted %v", multiplier, sigma, wanted)
		}
	}
}

func TestReleaseRefuses(t *testing.T) {
	g := Gaussian{Multiplier: 1}
	l := Lattice{Step: 0x1p-20}
	fresh := func() *ClippedSum { return mustSum(t, 2, 1, l) }
	dst := make([]int64, 2)
	for _, c := range []struct {
		what, word string
		g          Gaussian
		dst        []int64
		terms      Terms
	}{
		{"zero noise", "positive", Gaussian{}, dst, addRemove},
		{"no number", "positive", Gaussian{Multiplier: math.NaN()}, dst, addRemove},
		{"endless noise", "positive", Gaussian{Multiplier: math.Inf(1)}, dst, addRemove},
		{"huge noise", "lattice", Gaussian{Multiplier: 1e300}, dst, addRemove},
		{"short destination", "destination", g, dst[:1], addRemove},
		{"metric relation", "relation", g, dst, Terms{event.UnitExample, event.Metric, event.TrustLocal}},
		{"no terms", "relation", g, dst, Terms{}},
		{"no unit", "unit", g, dst, Terms{Relation: event.AddRemove, Trust: event.TrustLocal}},
	} {
		_, err := c.g.Release(c.dst, fresh(), c.terms, keyed(1))
		refused(t, c.what, err, c.word)
	}
	_, err := g.Release(dst, fresh(), addRemove, NewEntropy(nil))
	refused(t, "no entropy", err, "source")

	other := mustClip(t, 2, 1, 1)
	refused(t, "another bound", fresh().Add(other), "bound")
	refused(t, "no clip", fresh().Add(Clipped{}), "bound")
	own, err := OwnRadius([]float64{1, 0}, 1, 10)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "private radius", fresh().Add(own), "public")
	refused(t, "another length", fresh().Add(mustClip(t, 1, 1, 2, 3)), "coordinates")
	for _, bound := range []float64{0, -1, math.NaN(), math.Inf(1), 1e300} {
		if _, err := NewClippedSum(2, bound, l); err == nil {
			t.Errorf("bound %v was taken", bound)
		}
	}
}

// TestSumChecksTheNormInIntegers: a float norm does not see coordinates whose
// squares are below its last bit, so Clip lets the vector pass.
func TestSumChecksTheNormInIntegers(t *testing.T) {
	v := make([]float64, 1000)
	for i := range v {
		v[i] = 0x1p-27
	}
	v[0] = 1
	l := Lattice{Step: 0x1p-27}
	sum := mustSum(t, len(v), 1, l)
	c := mustClip(t, 1, v...)
	q := make([]int64, len(v))
	if err := l.Truncate(q, c.v); err != nil || l.Within(q, 1) {
		t.Fatalf("the vector shows no excess (%v); the test has lost its power", err)
	}
	if err := sum.Add(c); err != nil || !l.Within(sum.sum, 1) {
		t.Errorf("a term longer than the bound entered the sum (%v)", err)
	}
}

func TestSumRefusesToOverflow(t *testing.T) {
	sum := mustSum(t, 1, 0x1p52, Lattice{Step: 1})
	c := mustClip(t, 0x1p52, 0x1p52)
	for range 511 {
		if err := sum.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if sum.sum[0] != 511<<52 {
		t.Errorf("sum %d", sum.sum[0])
	}
	refused(t, "one too many", sum.Add(c), "int64")
}

func TestSimulatedSum(t *testing.T) {
	g := Gaussian{Multiplier: 0.5}
	s, err := NewSimulatedSum(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range [][]float64{{3, 4}, {0.3, 0.4}, {0, 0}} {
		if err := s.Add(mustClip(t, 1, v...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add(mustClip(t, 1, 30, 40)); err != nil {
		t.Fatal(err)
	}
	if math.Abs(s.sum[0]-1.5) > 1e-12 || math.Abs(s.sum[1]-2) > 1e-12 {
		t.Errorf("sum %v", s.sum)
	}
	dst := make([]float64, 2)
	release, err := g.Simulate(dst, s, replaceOne, rand.NewPCG(1, 1))
	if err != nil || release.What != (event.Gaussian{Noise: 0.5}) || release.Relation != event.ReplaceOne {
		t.Errorf("%+v, %v", release, err)
	}
	_, err = g.Simulate(dst, s, replaceOne, rand.NewPCG(1, 1))
	refused(t, "second release", err, "released already")
	s.Reset()
	refused(t, "private radius", s.Add(Clipped{v: []float64{0, 0}, bound: 1}), "public")
}

func TestLaneSum(t *testing.T) {
	g := Gaussian{Multiplier: 0.5}
	s, err := NewLaneSum[float64](2, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	factors := make([]float64, 3)
	// (3, 4) is scaled to (0.6, 0.8); (0.3, 0.4) and 0 stay.
	add := func(lane int) error {
		return s.AddWeighted(lane, []float64{5, 0.5, 0}, factors, func(dst, f []float64) {
			dst[0] += 3*f[0] + 0.3*f[1]
			dst[1] += 4*f[0] + 0.4*f[1]
		})
	}
	if err := errors.Join(add(0), add(2)); err != nil {
		t.Fatal(err)
	}
	dst := make([]float64, 2)
	refused(t, "wrong length", s.Unprotected(dst[:1]), "does not fit")
	_, err = SimulateLanes(g, dst, s, Terms{Unit: event.UnitExample, Relation: event.Metric}, rand.NewPCG(1, 1))
	refused(t, "other relation", err, "relation")
	if err := s.Unprotected(dst); err != nil || math.Abs(dst[0]-1.8) > 1e-12 || math.Abs(dst[1]-2.4) > 1e-12 {
		t.Errorf("sum %v, %v", dst, err)
	}
	_, err = SimulateLanes(g, dst, s, replaceOne, rand.NewPCG(1, 1))
	refused(t, "second release", err, "released already")
	refused(t, "late batch", add(0), "released")
	s.Reset()
	release, err := SimulateLanes(g, dst, s, replaceOne, rand.NewPCG(1, 1))
	if err != nil || release.What != (event.Gaussian{Noise: 0.5}) || dst[0] == 0 || math.Abs(dst[0]) > 5 {
		t.Errorf("%+v, %v, %v: want noise alone after Reset", release, dst, err)
	}
	for _, bound := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := NewLaneSum[float32](2, 1, bound); err == nil {
			t.Errorf("bound %v was accepted", bound)
		}
	}
}

// TestVectorNoise holds the noise of many coordinates, which vector arithmetic
// draws, against the normal distribution, in both precisions.
func TestVectorNoise(t *testing.T) {
	const n = 400_000
	for name, scale := range map[string]float64{"right": 1, "5 % too wide": 1.05} {
		single, double := make([]float32, n), make([]float64, n)
		addNormals(single, 2, rand.NewPCG(3, 3))
		addNormals(double, 2, rand.NewPCG(4, 4))
		values := make([]float64, n)
		for i, x := range single {
			values[i] = scale * float64(x)
		}
		for i := range double {
			double[i] *= scale
		}
		cdf := distuv.Normal{Sigma: 2}.CDF
		if e32, e64 := checkKolmogorov(values, cdf), checkKolmogorov(double, cdf); (e32 == nil) != (scale == 1) || (e64 == nil) != (scale == 1) {
			t.Errorf("%s: float32 %v, float64 %v", name, e32, e64)
		}
	}
}

func TestSimulatedGaussianDistribution(t *testing.T) {
	n := draws()
	s, err := NewSimulatedSum(n, 2)
	if err != nil {
		t.Fatal(err)
	}
	dst, steps := make([]float64, n), make([]int64, n)
	if _, err := (Gaussian{Multiplier: 3}).Simulate(dst, s, addRemove, rand.NewPCG(7, 7)); err != nil {
		t.Fatal(err)
	}
	for i, x := range dst {
		steps[i] = int64(math.Floor(x * (1 << 20)))
	}
	if err := checkNormal(steps, 6<<20); err != nil {
		t.Error(err)
	}
	if err := checkNormal(steps, 6.06*(1<<20)); err == nil {
		t.Error("a scale error of 1 % passed")
	}
}
