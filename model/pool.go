package model

import (
	"cmp"
	"fmt"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	for _, name := range []string{"max-pool", "mean-pool"} {
		registerLayer(layerKind{name: name, keys: []string{"kernel", "stride", "padding"}, single: buildPool[float32], double: buildPool[float64]})
	}
}

// maxPool takes the largest value of every window; the first of equals gets the
// gradient, padding never wins.
type maxPool[F Float] struct {
	bare[F]
	geometry kernel.Pool
}

func (m *maxPool[F]) needsOutput() bool { return true }
func (m *maxPool[F]) cell(int) cell[F]  { return &maxPoolCell[F]{maxPool: m} }

type maxPoolCell[F Float] struct {
	*maxPool[F]
	work kernel.Workspace[F]
}

func (m *maxPoolCell[F]) forward(_, in, out []F, _ int) { kernel.MaxPool(m.geometry, in, out) }

func (m *maxPoolCell[F]) backward(p pass[F]) {
	if p.dIn != nil {
		kernel.MaxPoolGrad(m.geometry, p.in, p.out, p.dOut, p.dIn, &m.work)
	}
}

// meanPool takes the mean of every window. Padding counts as zeros, as PyTorch
// does by default. Without a kernel the window is the whole picture.
type meanPool[F Float] struct {
	bare[F]
	geometry kernel.Pool
}

func (m *meanPool[F]) cell(int) cell[F] { return m }

func (m *meanPool[F]) forward(_, in, out []F, _ int) { kernel.AvgPool(m.geometry, in, out) }

func (m *meanPool[F]) backward(p pass[F]) {
	if p.dIn != nil {
		kernel.AvgPoolGrad(m.geometry, p.dOut, p.dIn)
	}
}

func buildPool[F Float](in Shape, s Layer, _ []Layer) (layer[F], Shape, error) {
	stride := cmp.Or(s.Stride, s.Kernel)
	if s.Kind == "mean-pool" && s.Kernel == 0 && s.Stride == 0 && s.Padding == 0 { // the whole picture
		g := kernel.Pool{InH: in.Height, InW: in.Width, Channels: in.Channels, KernelH: in.Height, KernelW: in.Width, StrideH: 1, StrideW: 1}
		out := Shape{1, 1, in.Channels}
		return &meanPool[F]{bare[F]{out}, g}, out, nil
	}
	if s.Kernel < 1 || 2*s.Padding > s.Kernel {
		return nil, in, fmt.Errorf("kernel %d, padding %d; allowed: 1 or more, at most half the kernel (mean-pool: no key at all, for the whole picture)", s.Kernel, s.Padding)
	}
	g := kernel.Pool{
		InH: in.Height, InW: in.Width, Channels: in.Channels, KernelH: s.Kernel, KernelW: s.Kernel,
		StrideH: stride, StrideW: stride, PadH: s.Padding, PadW: s.Padding,
	}
	if err := g.Validate(); err != nil {
		return nil, in, err
	}
	out := Shape{g.OutH(), g.OutW(), in.Channels}
	if s.Kind == "max-pool" {
		return &maxPool[F]{bare[F]{out}, g}, out, nil
	}
	return &meanPool[F]{bare[F]{out}, g}, out, nil
}
