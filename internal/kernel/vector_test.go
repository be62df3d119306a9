package kernel

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// elementWise is an element-wise function and its definition, from which
// it differs at most in the sign of a zero.
type elementWise[F Float] struct {
	name string
	run  func(dst, x, y []F)
	want func(dst, x, y F) F
	// size bounds the terms of a function that fused multiply-adds may round
	// differently, by one unit in the last place of it; nil: agree exactly.
	size func(dst, x, y F) F
}

func elementWiseFunctions[F Float]() []elementWise[F] {
	const s = 0.375 // exact in both precisions
	nan := F(math.NaN())
	return []elementWise[F]{
		{"Axpy", func(dst, x, _ []F) { Axpy(s, x, dst) }, func(dst, x, _ F) F { return dst + s*x }, func(dst, x, _ F) F { return max(dst, -dst) + s*max(x, -x) }},
		{"Scale", func(dst, x, _ []F) { Scale(dst, s, x) }, func(_, x, _ F) F { return s * x }, nil},
		{"Sub", Sub[F], func(_, x, y F) F { return x - y }, nil},
		{"Maximum", Maximum[F], func(_, x, y F) F {
			if x != x || y != y {
				return nan
			}
			if x > y {
				return x
			}
			return y
		}, nil},
		{"Relu", func(dst, x, _ []F) { Relu(dst, x) }, func(_, x, _ F) F {
			if x < 0 {
				return 0
			}
			return x
		}, nil},
		{"ReluGrad", ReluGrad[F], func(_, x, dy F) F {
			if x > 0 {
				return dy
			}
			return 0
		}, nil},
		{"LeakyRelu", func(dst, x, _ []F) { LeakyRelu(dst, s, x) }, func(_, x, _ F) F {
			if x > 0 {
				return x
			}
			return s * x
		}, nil},
		{"LeakyReluGrad", func(dst, x, dy []F) { LeakyReluGrad(dst, s, x, dy) }, func(_, x, dy F) F {
			if x > 0 {
				return dy
			}
			return s * dy
		}, nil},
		{"SigmoidGrad", SigmoidGrad[F], func(_, y, dy F) F { return dy * (y * (1 - y)) }, nil},
		{"TanhGrad", TanhGrad[F], func(_, y, dy F) F { return dy * (1 - y*y) }, func(_, y, dy F) F { return max(dy, -dy) * (1 + y*y) }},
	}
}

func TestElementWise(t *testing.T) {
	t.Run("float32", testElementWise[float32])
	t.Run("float64", testElementWise[float64])
}

func testElementWise[F Float](t *testing.T) {
	var a arena[F]
	for _, f := range elementWiseFunctions[F]() {
		t.Run(f.name, func(t *testing.T) {
			check(t, func(t *rapid.T) {
				defer a.reset()
				n := length(t, chunk, chunk+1, 2*chunk+37)
				r := source(t)
				dst, x, y := a.mixed(r, n), a.mixed(r, n), a.mixed(r, n)
				inPlace := rapid.Bool().Draw(t, "in place") && f.name != "Axpy"
				want := make([]F, n)
				slack := make([]F, n)
				for i := range want {
					want[i] = f.want(dst[i], x[i], y[i])
					if f.size != nil {
						slack[i] = F(epsilon[F]()) * f.size(dst[i], x[i], y[i])
					}
				}
				if inPlace {
					dst = x
				}
				f.run(dst, x, y)
				for i := range want {
					if d := dst[i] - want[i]; !same(dst[i], want[i]) && !(max(d, -d) <= slack[i]) {
						t.Fatalf("element %d of %d: %v, want %v", i, n, dst[i], want[i])
					}
				}
				a.done(t)
			})
		})
	}
}

func TestReductions(t *testing.T) {
	t.Run("float32", testReductions[float32])
	t.Run("float64", testReductions[float64])
}

func testReductions[F Float](t *testing.T) {
	var a arena[F]
	for _, f := range []struct {
		name string
		run  func(x, y []F) float64
		term func(x, y *big.Float) *big.Float
	}{
		{"Dot", Dot[F], func(x, y *big.Float) *big.Float { return new(big.Float).Mul(x, y) }},
		{"SquaredNorm", func(x, _ []F) float64 { return SquaredNorm(x) }, func(x, _ *big.Float) *big.Float { return new(big.Float).Mul(x, x) }},
		{"SquaredDistance", SquaredDistance[F], func(x, y *big.Float) *big.Float {
			d := new(big.Float).Sub(x, y)
			return d.Mul(d, d)
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			check(t, func(t *rapid.T) {
				defer a.reset()
				n := length(t, chunk, chunk+5)
				r := source(t)
				x, y := a.normal(r, n), a.normal(r, n)
				total, size := new(big.Float).SetPrec(200), 0.0
				for i := range x {
					term := f.term(new(big.Float).SetPrec(200).SetFloat64(float64(x[i])), new(big.Float).SetPrec(200).SetFloat64(float64(y[i])))
					total.Add(total, term)
					v, _ := term.Float64()
					size += math.Abs(v)
				}
				want, _ := total.Float64()
				// Sums are in float64: the bound is float64's for both types.
				if got := f.run(x, y); math.Abs(got-want) > 2*float64(n+2)*0x1p-53*size {
					t.Fatalf("%d values: %v, want %v", n, got, want)
				}
				a.done(t)
			})
		})
	}
}

// TestNormsOfExtremes: a clip must see what is not finite, and must not call
// finite what overflows only in float32.
func TestNormsOfExtremes(t *testing.T) {
	for n := 1; n < 40; n++ {
		x := make([]float32, n)
		for i := range x {
			clear(x)
			x[i] = 1e30
			if got := SquaredNorm(x); math.Abs(got/1e60-1) > 1e-6 {
				t.Fatalf("squared norm %v, want 1e60", got)
			}
			x[i] = float32(math.NaN())
			if !math.IsNaN(SquaredNorm(x)) || !math.IsNaN(Dot(x, x)) {
				t.Fatalf("NaN at %d of %d is not seen", i, n)
			}
			x[i] = float32(math.Inf(-1))
			if !math.IsInf(SquaredNorm(x), 1) {
				t.Fatalf("infinity at %d of %d is not seen", i, n)
			}
		}
	}
}

func TestRows(t *testing.T) {
	t.Run("float32", testRows[float32])
	t.Run("float64", testRows[float64])
}

func testRows[F Float](t *testing.T) {
	var a arena[F]
	check(t, func(t *rapid.T) {
		defer a.reset()
		cols := rapid.IntRange(0, 75).Draw(t, "cols")
		rows := length(t, rowChunk+3)
		r := source(t)
		x, bias, total := a.mixed(r, rows*cols), a.mixed(r, cols), a.normal(r, cols)
		finite := a.normal(r, rows*cols)
		added := append([]F(nil), x...)
		for i := range added {
			added[i] += bias[i%cols]
		}
		positive := append([]F(nil), x...)
		AddToRowsRelu(positive, bias)
		AddToRows(x, bias)
		for i := range x {
			relu := added[i]
			if relu < 0 {
				relu = 0
			}
			if !same(x[i], added[i]) || !same(positive[i], relu) {
				t.Fatalf("element %d of rows of %d: %v and %v, want %v and %v", i, cols, x[i], positive[i], added[i], relu)
			}
		}
		want, size := make([]float64, cols), make([]float64, cols)
		for j, v := range total {
			want[j], size[j] = float64(v), math.Abs(float64(v))
		}
		for i, v := range finite {
			want[i%cols] += float64(v)
			size[i%cols] += math.Abs(float64(v))
		}
		SumRows(total, finite)
		for j := range want {
			if math.Abs(float64(total[j])-want[j]) > float64(rows+1)*epsilon[F]()*size[j] {
				t.Fatalf("sum %d of %d rows: %v, want %v", j, rows, total[j], want[j])
			}
		}
		a.done(t)
	})
}

func TestRowProducts(t *testing.T) {
	t.Run("float32", testRowProducts[float32])
	t.Run("float64", testRowProducts[float64])
}

// testRowProducts writes products by columns out, in double precision.
func testRowProducts[F Float](t *testing.T) {
	var a arena[F]
	check(t, func(t *rapid.T) {
		defer a.reset()
		cols := rapid.IntRange(0, 75).Draw(t, "cols")
		rows := length(t, rowChunk+3)
		r := source(t)
		x, y, dst := a.normal(r, rows*cols), a.normal(r, rows*cols), a.normal(r, rows*cols)
		factor, bias, total := a.normal(r, cols), a.normal(r, cols), a.normal(r, cols)
		want, size := make([]float64, cols), make([]float64, cols)
		for j, v := range total {
			want[j], size[j] = float64(v), math.Abs(float64(v))
		}
		AffineRows(dst, x, factor, bias)
		for i, v := range x {
			j := i % cols
			term := float64(v) * float64(y[i])
			want[j] += term
			size[j] += math.Abs(term)
			product := float64(v) * float64(factor[j])
			if off := math.Abs(float64(dst[i]) - product - float64(bias[j])); off > 2*epsilon[F]()*(math.Abs(product)+math.Abs(float64(bias[j]))) {
				t.Fatalf("element %d of rows of %d: %v, want %v", i, cols, dst[i], product+float64(bias[j]))
			}
		}
		SumProducts(total, x, y)
		for j := range want {
			if math.Abs(float64(total[j])-want[j]) > float64(rows+1)*epsilon[F]()*size[j] {
				t.Fatalf("sum %d of %d rows: %v, want %v", j, rows, total[j], want[j])
			}
		}
		own := append([]F(nil), x...)
		AffineRows(own, own, factor, bias) // in place
		for i := range own {
			if own[i] != dst[i] {
				t.Fatalf("element %d in place: %v, else %v", i, own[i], dst[i])
			}
		}
		a.done(t)
	})
}

func TestMisuseIsNamed(t *testing.T) {
	x := make([]float32, 3)
	for name, f := range map[string]func(){
		"Axpy":       func() { Axpy(1, x, x[:2]) },
		"Dot":        func() { Dot(x, x[:2]) },
		"AddToRows":  func() { AddToRows(x, x[:2]) },
		"products":   func() { SumProducts(x[:1], x, x[:2]) },
		"rows":       func() { SumProducts(x[:2], x, x) },
		"AffineRows": func() { AffineRows(x, x, x[:1], x) },
		"too short":  func() { AffineRows(x[:2], x, x, x) },
		"Transpose":  func() { Transpose(x, x, 2, 2) },
		"Gemm":       func() { Gemm(1, Dense(x, 2, 2), Dense(x, 2, 1), 0, Dense(x, 2, 1), nil) },
		"shapes":     func() { Gemm(1, Dense(x, 1, 2), Dense(x, 3, 1), 0, Dense(x, 1, 1), nil) },
		"Conv":       func() { ConvForward(Conv{InH: 1, InW: 1, InC: 1, OutC: 1}, x, x, x, nil) },
		"filter":     func() { ConvForward(Conv{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}, x, x, x, nil) },
		"Pool":       func() { MaxPool(Pool{InH: 1, InW: 1, Channels: 3}, x, x) },
		"Normals32":  func() { Normals32(x, 1, nil) },
	} {
		mustPanic(t, name, f)
	}
}
