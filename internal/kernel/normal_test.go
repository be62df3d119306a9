package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A sample of n values of the right distribution passes these limits once in a
// million times each.
const (
	kolmogorovLimit = 2.69   // 2*exp(-2*x^2) = 1e-6
	normalLimit     = 4.8916 // two-sided quantile of the normal distribution
)

// randomBytes are words, the low byte first.
func randomBytes(r *rand.Rand, n int) []byte {
	words := make([]byte, 0, n)
	for len(words) < n {
		words = binary.LittleEndian.AppendUint32(words, r.Uint32())
	}
	return words
}

func normalCDF(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// misfit returns how often the sample passes its limits: of the distribution,
// the mean, the variance, the correlation of neighbours at several distances, and of the
// squares of the two values of a pair.
func misfit(values []float64, pairDistance int) (failed []string) {
	n := float64(len(values))
	var sum, square float64
	for _, v := range values {
		sum += v
		square += v * v
	}
	if z := sum / math.Sqrt(n); math.Abs(z) > normalLimit {
		failed = append(failed, "mean")
	}
	if z := (square/n - 1) / math.Sqrt(2/n); math.Abs(z) > normalLimit {
		failed = append(failed, "variance")
	}
	for _, d := range []int{1, 2, pairDistance, 2 * pairDistance} {
		var c float64
		for i := d; i < len(values); i++ {
			c += values[i] * values[i-d]
		}
		if z := c / math.Sqrt(n); math.Abs(z) > normalLimit {
			failed = append(failed, "correlation")
		}
	}
	var c float64 // (x*x-1)*(y*y-1) has variance 4
	for i := pairDistance; i < len(values); i++ {
		c += (values[i]*values[i] - 1) * (values[i-pairDistance]*values[i-pairDistance] - 1)
	}
	if z := c / math.Sqrt(4*n); math.Abs(z) > normalLimit {
		failed = append(failed, "correlation of squares")
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	worst := 0.0
	for i, v := range sorted {
		p := normalCDF(v)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	if worst*math.Sqrt(n) > kolmogorovLimit {
		failed = append(failed, "distribution")
	}
	return failed
}

// TestNormals: eight comparisons of 1e-6 each, for two samplers, at a fixed
// seed; and errors that must not pass.
func TestNormals(t *testing.T) {
	n := 250_003
	if *soak {
		n = 20_000_003
	}
	r := rand.New(rand.NewPCG(8, 9))
	words32 := randomBytes(r, NormalBytes32(n))
	single := make([]float32, n)
	widen := func(x []float32) []float64 {
		out := make([]float64, len(x))
		for i, v := range x {
			out[i] = float64(v)
		}
		return out
	}
	pass := func(name string, values []float64, pair int) {
		t.Helper()
		if failed := misfit(values, pair); len(failed) > 0 {
			t.Errorf("%s: %v", name, failed)
		}
	}
	Normals32(single, 1, words32)
	double := widen(single)
	pass("float32", double, normalBlock32/2)
	twin32 := make([]float32, n)
	withTwin(func() {
		Normals32(twin32, 1, words32)
	})
	pass("float32 twin", widen(twin32), normalBlock32/2)
	for i := range single {
		if d := math.Abs(float64(single[i]) - float64(twin32[i])); d > 4e-6*(1+math.Abs(float64(twin32[i]))) {
			t.Fatalf("float32 value %d: %v, twin %v", i, single[i], twin32[i])
		}
	}

	planted := func(name string, bug func(i int, v float64) float64) {
		t.Helper()
		wrong := make([]float64, n)
		for i, v := range double {
			wrong[i] = bug(i, v)
		}
		if len(misfit(wrong, normalBlock32/2)) == 0 {
			t.Errorf("planted error is not seen: %s", name)
		}
	}
	planted("1 % too wide", func(_ int, v float64) float64 { return 1.01 * v })
	planted("mean 0.02", func(_ int, v float64) float64 { return v + 0.02 })
	planted("sign bit of radii lost", func(i int, v float64) float64 {
		if i%16 < 8 {
			return math.Abs(v)
		}
		return v
	})
	planted("the pair's second value is its first", func(i int, _ float64) float64 { return double[i&^8] })
	planted("no exchange: |x| > |y|", func(i int, v float64) float64 {
		if i|8 >= n {
			return v
		}
		x, y := math.Abs(double[i&^8]), math.Abs(double[i|8])
		if i&8 == 0 {
			return math.Copysign(max(x, y), v)
		}
		return math.Copysign(min(x, y), v)
	})
}

// TestNormalsOfExtremeWords: the ends of the words' range give finite values
// within the bounds that the documentation states.
func TestNormalsOfExtremeWords(t *testing.T) {
	for _, set := range []func(func()){func(f func()) { f() }, withTwin} {
		set(func() {
			for _, a := range []uint64{0, 1, 2, 3, math.MaxUint64, math.MaxUint64 - 1, 1 << 63, 1<<63 - 1} {
				for _, b := range []uint64{0, 1, 2, 3, math.MaxUint64, math.MaxUint64 - 1, 1 << 63, 1<<63 - 1} {
					var words32 []byte
					for i := range 16 {
						word := uint32(a>>32) | uint32(a)
						if i >= 8 {
							word = uint32(b>>32) | uint32(b)
						}
						words32 = binary.LittleEndian.AppendUint32(words32, word)
					}
					single := make([]float32, 16)
					Normals32(single, 1, words32)
					for _, v := range single {
						if !(math.Abs(float64(v)) < 6.7) {
							t.Fatalf("words %x and %x give %v", a, b, v)
						}
					}
				}
			}
		})
	}
}

// TestNormalsAnyLength: a prefix of the words gives a prefix of the values, and
// sigma scales them.
func TestNormalsAnyLength(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	const most = 2*functionChunk + 40
	words32 := randomBytes(r, NormalBytes32(most))
	all32 := make([]float32, most)
	Normals32(all32, 1, words32)
	var a32 arena[float32]
	for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 100, functionChunk - 1, functionChunk + 1, most} {
		single := a32.make(n)
		Normals32(single, 2, words32[:NormalBytes32(n)])
		for i := range n {
			if math.Abs(float64(single[i]-2*all32[i])) > 1e-6*math.Abs(float64(all32[i])) {
				t.Fatalf("value %d of %d: %v, want twice %v", i, n, single[i], all32[i])
			}
		}
		a32.reset()
	}
}
