package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// accuracy is a function, its definition and the bound of its error in units
// of the last place, as functions.go promises it.
type accuracy[F Float] struct {
	name  string
	run   func(dst, x []F)
	exact func(x *big.Float) *big.Float
	fast  func(x float64) float64 // the definition in float64, for float32
	bound func(x float64) float64
	odd   map[float64]float64 // results that no series gives
}

func constantly(bound float64) func(float64) float64 {
	return func(float64) float64 { return bound }
}

func functions[F Float]() []accuracy[F] {
	inf, nan := math.Inf(1), math.NaN()
	return []accuracy[F]{
		{"Exp", Exp[F], bigExp, math.Exp, constantly(2), map[float64]float64{inf: inf, -inf: 0, nan: nan, 1e6: inf, -1e6: 0, 0: 1}},
		{"Tanh", Tanh[F], bigTanh, math.Tanh, constantly(4), map[float64]float64{inf: 1, -inf: -1, nan: nan, 1e6: 1, -1e6: -1, 0: 0}},
		{"Sigmoid", Sigmoid[F], bigSigmoid, func(x float64) float64 {
			return 1 / (1 + math.Exp(-x))
		}, constantly(3), map[float64]float64{inf: 1, -inf: 0, nan: nan, 1e6: 1, -1e6: 0, 0: 0.5}},
	}
}

// arguments covers signs, all exponents, subnormal numbers and, more densely,
// where the functions bend and overflow.
func arguments[F Float](n int, seed uint64) []F {
	r := rand.New(rand.NewPCG(seed, 2))
	x := make([]F, n)
	ends := []float64{88.7228, -87.3365, -103.9721, 709.7827, -708.3964, -745.1332, 0.3466, -0.3466, 1, math.Sqrt2, math.Sqrt2 / 2}
	for i := range x {
		switch r.IntN(5) {
		case 0:
			if isSingle[F]() {
				x[i] = F(math.Float32frombits(r.Uint32()))
			} else {
				x[i] = F(math.Float64frombits(r.Uint64()))
			}
		case 1:
			x[i] = F(20 * r.NormFloat64())
		case 2:
			x[i] = F(r.NormFloat64())
		case 3:
			x[i] = awkward[F]()[7] * F(r.Uint32()>>r.IntN(32)) // subnormal
		default:
			x[i] = F(ends[r.IntN(len(ends))] * (1 + 1e-3*r.NormFloat64()))
		}
	}
	return x
}

func inDomain(x float64) bool {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	return math.Abs(x) < 4000
}

func TestFunctionsAreAccurate(t *testing.T) {
	t.Run("float32", testFunctionsAreAccurate[float32])
	t.Run("float64", testFunctionsAreAccurate[float64])
}

func testFunctionsAreAccurate[F Float](t *testing.T) {
	n := 1200
	if *soak {
		n = 300_000
	}
	for _, f := range functions[F]() {
		for _, set := range []string{Name(), "twin"} {
			t.Run(f.name+"/"+set, func(t *testing.T) {
				x := arguments[F](n, 11)
				y := make([]F, n)
				if set == "twin" || set == "purego" {
					withTwin(func() { f.run(y, x) })
				} else {
					f.run(y, x)
				}
				worst, where := 0.0, F(0)
				for i, v := range x {
					if !inDomain(float64(v)) {
						continue
					}
					if e := ulps(y[i], f.exact(bigFloat(float64(v)))) / f.bound(float64(v)); e > worst {
						worst, where = e, v
					}
				}
				t.Logf("worst error %.3f of the bound, at %v", worst, where)
				if worst > 1 {
					t.Errorf("error %.3f of the bound at %v", worst, where)
				}
				for v, want := range f.odd {
					in, out := []F{F(v)}, []F{0}
					f.run(out, in)
					if !same(out[0], F(want)) {
						t.Errorf("%v gives %v, want %v", v, out[0], want)
					}
				}
			})
		}
	}
}

// TestFunctionsOverAllFloat32 walks through the bit patterns in steps; a soak
// takes every 17th of the four billion.
func TestFunctionsOverAllFloat32(t *testing.T) {
	step := uint64(40_009)
	if *soak {
		step = 17
	}
	const block = 4096
	x, y := make([]float32, 0, block), make([]float32, block)
	for _, f := range functions[float32]() {
		worst, where := 0.0, float32(0)
		flush := func() {
			f.run(y[:len(x)], x)
			for i, v := range x {
				want := f.fast(float64(v))
				e := float32ulps(y[i], want) / f.bound(float64(v))
				if e > worst {
					worst, where = e, v
				}
			}
			x = x[:0]
		}
		for bits := uint64(0); bits < 1<<32; bits += step {
			v := math.Float32frombits(uint32(bits))
			if !inDomain(float64(v)) {
				continue
			}
			if x = append(x, v); len(x) == block {
				flush()
			}
		}
		flush()
		t.Logf("%s: worst error %.3f of the bound, at %v", f.name, worst, where)
		if worst > 1 {
			t.Errorf("%s: error %.3f of the bound at %v", f.name, worst, where)
		}
	}
}

// float32ulps is ulps for a reference in float64.
func float32ulps(got float32, want float64) float64 {
	if math.Abs(want) >= math.MaxFloat32*(1+0x1p-25) || math.IsInf(float64(got), 0) {
		if math.IsInf(float64(got), 0) && math.Abs(want) >= math.MaxFloat32*(1-0x1p-23) {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// TestFunctionsAnyLength: unaligned, in place, with tails; a value's result
// does not depend on its place.
func TestFunctionsAnyLength(t *testing.T) {
	t.Run("float32", testFunctionsAnyLength[float32])
	t.Run("float64", testFunctionsAnyLength[float64])
}

func testFunctionsAnyLength[F Float](t *testing.T) {
	var a arena[F]
	for _, f := range functions[F]() {
		t.Run(f.name, func(t *testing.T) {
			check(t, func(t *rapid.T) {
				defer a.reset()
				n := length(t, functionChunk+3)
				x := a.mixed(source(t), n)
				want := make([]F, n)
				for i := range x {
					f.run(want[i:i+1], x[i:i+1])
				}
				dst := a.make(n)
				f.run(dst, x)
				f.run(x, x)
				for i := range x {
					if !same(dst[i], want[i]) || !same(x[i], want[i]) {
						t.Fatalf("element %d of %d: %v, in place %v, alone %v", i, n, dst[i], x[i], want[i])
					}
				}
				a.done(t)
			})
		})
	}
}
