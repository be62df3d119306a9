package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestConversions: of every length, and of values that are no normal numbers, the
// assembly gives the bits that Go gives, and touches nothing else.
func TestConversions(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-40, math.MaxFloat32, 1 + 0x1p-24, 1 + 3*0x1p-24, math.NaN()}
	var single arena[float32]
	var double arena[float64]
	length := rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{chunk - 1, chunk, chunk + 17, 2*chunk + 5}))
	check(t, func(t *rapid.T) {
		defer single.reset()
		defer double.reset()
		n, r := length.Draw(t, "n"), source(t)
		x, narrow := double.make(n), single.make(n)
		y, small := double.make(n), single.make(n)
		for i := range n {
			x[i], y[i], small[i] = r.NormFloat64(), r.NormFloat64(), float32(r.NormFloat64())
			if i%3 == 0 {
				x[i] = special[r.IntN(len(special))]
				small[i] = float32(special[r.IntN(len(special))])
			}
		}
		want := append([]float64(nil), y...)
		Narrow(narrow, x)
		AddSingle(small, y)
		for i := range n {
			if got, want := math.Float32bits(narrow[i]), math.Float32bits(float32(x[i])); got != want {
				t.Fatalf("value %d of %d: %v in single precision is %x, want %x", i, n, x[i], got, want)
			}
			if got, want := y[i], want[i]+float64(small[i]); got != want && !math.IsNaN(want) {
				t.Fatalf("value %d of %d: %v, want %v", i, n, got, want)
			}
		}
		single.done(t)
		double.done(t)
	})
	mustPanic(t, "Narrow", func() { Narrow(make([]float32, 2), make([]float64, 3)) })
	mustPanic(t, "AddSingle", func() { AddSingle(make([]float32, 2), make([]float64, 3)) })
}
