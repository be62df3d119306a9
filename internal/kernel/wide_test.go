package kernel

import (
	"testing"

	"pgregory.net/rapid"
)

// TestWideVectorsChangeNoBit: with AVX-512 products and convolutions give what they
// give with AVX2, to the last bit, so a model's hash does not depend on it.
func TestWideVectorsChangeNoBit(t *testing.T) {
	if !wide {
		t.Skip("this machine or build has no AVX-512")
	}
	t.Run("float32", testWide[float32])
	t.Run("float64", testWide[float64])
}

func testWide[F Float](t *testing.T) {
	var ar arena[F]
	equal := func(t *rapid.T, what string, got, want []F) {
		for i, v := range got {
			if v != want[i] {
				t.Fatalf("%s, element %d of %d: %v, without AVX-512 %v", what, i, len(got), v, want[i])
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		defer ar.reset()
		r := source(t)
		m, n, k := dimension.Draw(t, "m"), dimension.Draw(t, "n"), dimension.Draw(t, "k")
		a, b := drawMatrix(t, &ar, r, m, k, "a"), drawMatrix(t, &ar, r, k, n, "b")
		c := ar.normal(r, m*n)
		again := append([]F(nil), c...)
		beta := rapid.SampledFrom([]F{0, 1}).Draw(t, "beta")
		Gemm(3, a, b, beta, Dense(c, m, n), nil)
		withAVX2(func() { Gemm(3, a, b, beta, Dense(again, m, n), nil) })
		equal(t, "product", c, again)

		g := drawConv(t)
		x, filter, dy := ar.normal(r, g.InLen()), ar.normal(r, g.FilterLen()), ar.normal(r, g.OutLen())
		rotated := ar.make(g.RotatedLen())
		RotateFilter(g, rotated, filter)
		all := func() (y, dx, dw []F) {
			y, dx, dw = make([]F, g.OutLen()), make([]F, g.InLen()), make([]F, g.FilterLen())
			ConvForward(g, x, filter, y, nil)
			ConvInputGrad(g, dy, rotated, dx, nil)
			ConvWeightGrad(g, x, dy, dw, false, nil)
			return y, dx, dw
		}
		y, dx, dw := all()
		withAVX2(func() {
			wantY, wantDX, wantDW := all()
			equal(t, "convolution", y, wantY)
			equal(t, "input gradient", dx, wantDX)
			equal(t, "weight gradient", dw, wantDW)
		})
		ar.done(t)
	})
}
