package rng

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// kolmogorov is the distance between the sample and cdf, times sqrt(n). It
// passes 2.69 once in a million samples of the right distribution.
func kolmogorov(values []float64, cdf func(float64) float64) float64 {
	slices.Sort(values)
	n, worst := float64(len(values)), 0.0
	for i, v := range values {
		p := cdf(v)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	return worst * math.Sqrt(n)
}

const oneInAMillion = 2.69 // 2*exp(-2*x^2) = 1e-6

func sample(n int, f func(s *Stream) float64) []float64 {
	family := NewFamily(7, "test")
	s := family.Stream(0, 0)
	out := make([]float64, n)
	for i := range out {
		out[i] = f(s)
	}
	return out
}

func TestDistributions(t *testing.T) {
	const n = 500_000
	normal := distuv.UnitNormal.CDF
	gamma := func(shape float64) func(float64) float64 { return distuv.Gamma{Alpha: shape, Beta: 1}.CDF }
	for _, c := range []struct {
		name  string
		draw  func(s *Stream) float64
		cdf   func(float64) float64
		wrong bool
	}{
		{"uniform", (*Stream).Float64, func(x float64) float64 { return x }, false},
		{"normal", (*Stream).Normal, normal, false},
		{"gamma 1", func(s *Stream) float64 { return Gamma(s, 1) }, gamma(1), false},
		{"gamma 1.5", func(s *Stream) float64 { return Gamma(s, 1.5) }, gamma(1.5), false},
		{"gamma 500.5", func(s *Stream) float64 { return Gamma(s, 500.5) }, gamma(500.5), false},
		// Planted: errors of 2 % must be seen, or the test proves nothing.
		{"normal, 2 % too wide", func(s *Stream) float64 { return 1.02 * s.Normal() }, normal, true},
		{"gamma, 2 % too large", func(s *Stream) float64 { return 1.02 * Gamma(s, 1.5) }, gamma(1.5), true},
	} {
		if d := kolmogorov(sample(n, c.draw), c.cdf); (d > oneInAMillion) != c.wrong {
			t.Errorf("%s: distance %.3f, limit %.3f, planted error %v", c.name, d, oneInAMillion, c.wrong)
		}
	}
}

func TestNormalTail(t *testing.T) {
	// Beyond layerR the ziggurat's tail serves: 2.58e-4 of the mass. Poisson
	// counts leave +-4.9 standard deviations once in a million.
	const n = 4_000_000
	beyond := 0
	family := NewFamily(8, "tail")
	s := family.Stream(0, 0)
	for range n {
		if math.Abs(s.Normal()) > layerR {
			beyond++
		}
	}
	want := n * math.Erfc(layerR/math.Sqrt2)
	if d := math.Abs(float64(beyond) - want); d > 4.9*math.Sqrt(want) {
		t.Errorf("%d values beyond %.3f, expected %.0f", beyond, layerR, want)
	}
}

func TestStreamsAreKeyedByEverything(t *testing.T) {
	first := func(seed uint64, purpose string, round, client int) uint64 {
		f := NewFamily(seed, purpose)
		return f.Stream(round, client).Uint64()
	}
	base := first(1, "noise", 2, 3)
	if again := first(1, "noise", 2, 3); again != base {
		t.Fatalf("the same key gave %x and %x", base, again)
	}
	for name, other := range map[string]uint64{
		"seed": first(2, "noise", 2, 3), "purpose": first(1, "noisf", 2, 3),
		"round": first(1, "noise", 3, 3), "client": first(1, "noise", 2, 4), "swapped": first(1, "noise", 3, 2),
	} {
		if other == base {
			t.Errorf("another %s gave the same stream", name)
		}
	}
}

func TestKeyRestarts(t *testing.T) {
	f := NewFamily(1, "x")
	s := f.Stream(4, 5)
	a := s.Uint64()
	s.Uint64()
	s.Key(&f, 4, 5)
	if b := s.Uint64(); a != b {
		t.Errorf("after Key: %x, at first %x", b, a)
	}
	if n := testing.AllocsPerRun(100, func() { s.Key(&f, 1, 2); s.Normal() }); n != 0 {
		t.Errorf("keying a stream allocates %v times", n)
	}
}

func TestBelowIsUniform(t *testing.T) {
	// Chi-square with 9 degrees of freedom passes 45.1 once in a million.
	const n, k = 100_000, 10
	var counts [k]int
	f := NewFamily(1, "below")
	s := f.Stream(0, 0)
	for range n {
		counts[s.Below(k)]++
	}
	chi := 0.0
	for _, c := range counts {
		chi += (float64(c) - n/k) * (float64(c) - n/k) / (n / k)
	}
	if chi > 45.1 {
		t.Errorf("chi-square %.1f: %v", chi, counts)
	}
}

func TestShuffleIsAPermutation(t *testing.T) {
	f := NewFamily(1, "shuffle")
	v := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	f.Stream(0, 0).Shuffle(v)
	sorted := slices.Sorted(slices.Values(v))
	for i, x := range sorted {
		if i != x {
			t.Fatalf("not a permutation: %v", v)
		}
	}
}

func BenchmarkNormal(b *testing.B) {
	f := NewFamily(1, "bench")
	s := f.Stream(0, 0)
	for b.Loop() {
		s.Normal()
	}
}
