package kernel

import (
	"slices"
	"testing"
)

// TestSidesChangeNoBit: the gradient of an input without the products with zeros at its
// sides is, to the last bit, the one with them.
func TestSidesChangeNoBit(t *testing.T) {
	t.Run("float32", testSides[float32])
	t.Run("float64", testSides[float64])
}

func testSides[F Float](t *testing.T) {
	for _, s := range []struct {
		g      Conv
		margin int
	}{
		{Conv{InH: 26, InW: 26, InC: 16, OutC: 32, KernelH: 4, KernelW: 4, StrideH: 1, StrideW: 1}, 3},
		{Conv{InH: 24, InW: 24, InC: 32, OutC: 8, KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1}, 2},
		{Conv{InH: 19, InW: 15, InC: 1, OutC: 3, KernelH: 3, KernelW: 5, StrideH: 1, StrideW: 1, PadH: 2, PadW: 1}, 3},
		{Conv{InH: 17, InW: 9, InC: 37, OutC: 2, KernelH: 2, KernelW: 5, StrideH: 1, StrideW: 1, PadW: 3}, 1},
		{Conv{InH: 20, InW: 20, InC: 5, OutC: 4, KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, PadH: 2, PadW: 2}, 0},
		{Conv{InH: 20, InW: 21, InC: 5, OutC: 4, KernelH: 3, KernelW: 3, StrideH: 2, StrideW: 2}, 0},
		{Conv{InH: 8, InW: 20, InC: 5, OutC: 4, KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1}, 0},
		{Conv{InH: 20, InW: 20, InC: 5, OutC: 4, KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, CropH: 1, CropW: 1}, 0},
		{Conv{InH: 30, InW: 30, InC: 2, OutC: 500, KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1}, 0},
	} {
		g := s.g
		if g.margin() != s.margin {
			t.Errorf("%+v: %d columns are left out, want %d", g, g.margin(), s.margin)
		}
		filter, dy := numbers[F](g.FilterLen()), numbers[F](g.OutLen())
		rotated, got, want := make([]F, g.RotatedLen()), numbers[F](g.InLen()), make([]F, g.InLen())
		RotateFilter(g, rotated, filter)
		ConvInputGrad(g, dy, rotated, got, nil)
		with := correlation{
			height: (g.OutH()-1)*g.StrideH + 1, width: g.InW + g.KernelW - 1, channels: g.OutC,
			kernelH: g.KernelH, kernelW: g.KernelW, strideH: 1, strideW: 1, top: g.KernelH - 1 - g.PadH,
			outH: g.InH, outW: g.InW, outC: g.InC,
		}
		image := widen(dy, g.OutH(), g.OutW(), g.OutC, g.KernelW-1-g.PadW, with.width, g.StrideH, g.StrideW, new(Workspace[F]))
		correlate(&with, image, rotated, want)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: another input gradient", g)
		}
	}
}
