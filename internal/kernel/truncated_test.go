package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// whole draws values around whole numbers, where rounding decides, and others.
func whole[F Float](t *rapid.T, dst []F) {
	r := source(t)
	for i := range dst {
		switch r.IntN(4) {
		case 0:
			dst[i] = F(r.IntN(2001) - 1000)
		case 1:
			dst[i] = F(math.Nextafter(float64(r.IntN(21)-10), float64(r.IntN(2)*40-20)))
		default:
			dst[i] = F(r.NormFloat64() * math.Ldexp(1, r.IntN(20)))
		}
	}
}

func TestTruncatedSums(t *testing.T) {
	t.Run("float32", truncatedSums[float32])
	t.Run("float64", truncatedSums[float64])
}

// truncatedSums holds the assembly against the definition, to the last bit.
func truncatedSums[F Float](t *testing.T) {
	var values arena[F]
	var double arena[float64]
	check(t, func(t *rapid.T) {
		defer values.reset()
		defer double.reset()
		n := length(t, chunk, chunk+37)
		x, y := values.make(n), double.make(n)
		whole(t, x)
		whole(t, y)
		factor := rapid.SampledFrom([]float64{1, -1, 0, 0.5, 1 / 3.0, 1e6}).Draw(t, "factor")
		want := append([]float64(nil), y...)
		AddTruncated(factor, x, y)
		for i := range n {
			if want := want[i] + math.Trunc(factor*float64(x[i])); y[i] != want {
				t.Fatalf("value %d of %d: %v, want %v", i, n, y[i], want)
			}
		}

		rows, high, wide := rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "high"), rapid.IntRange(1, 80).Draw(t, "wide")
		if rapid.IntRange(0, 9).Draw(t, "many") == 0 {
			rows = truncatedRows + rapid.IntRange(0, truncatedRows+1).Draw(t, "more")
		}
		left, right, acc := values.make(rows*high), double.make(rows*wide), double.make(high*wide)
		whole(t, left)
		whole(t, right)
		for i := range acc {
			acc[i] = float64(i)
		}
		want = append([]float64(nil), acc...)
		AddTruncatedProducts(acc, left, right, rows)
		for k := range rows {
			for i := range high {
				for j := range wide {
					want[i*wide+j] += math.Trunc(float64(left[k*high+i]) * right[k*wide+j])
				}
			}
		}
		for i := range want {
			if acc[i] != want[i] {
				t.Fatalf("%d rows into %d x %d: value %d is %v, want %v", rows, high, wide, i, acc[i], want[i])
			}
		}
		values.done(t)
		double.done(t)
	})
	mustPanic(t, "AddTruncated", func() { AddTruncated(1, make([]F, 2), make([]float64, 3)) })
	mustPanic(t, "AddTruncatedProducts", func() { AddTruncatedProducts(make([]float64, 5), make([]F, 4), make([]float64, 6), 2) })
	mustPanic(t, "AddTruncatedProducts", func() { AddTruncatedProducts(make([]float64, 6), make([]F, 5), make([]float64, 6), 2) })
}

// BenchmarkTruncatedProducts adds up 64 examples' gradients of a wide linear layer.
func BenchmarkTruncatedProducts(b *testing.B) {
	const rows, high, wide = 64, 16928, 32
	x, d, acc := make([]float32, rows*high), make([]float64, rows*wide), make([]float64, high*wide)
	for i := range x {
		x[i] = float32(i % 77)
	}
	for i := range d {
		d[i] = float64(i%99) + 0.3
	}
	for b.Loop() {
		AddTruncatedProducts(acc, x, d, rows)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rows*high*wide)*1000, "ps/product")
}
