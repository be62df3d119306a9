package model

import "github.com/coterie-fl/coterie/internal/kernel"

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
// does by default.
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
