package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "residual", keys: []string{"inner"}, single: buildResidual[float32], double: buildResidual[float64]})
}

// residual adds its input to what its inner layers make of it.
type residual[F Float] struct{ inner *chain[F] }

func (r *residual[F]) output() Shape                         { return r.inner.output() }
func (r *residual[F]) views() []View                         { return r.inner.views() }
func (r *residual[F]) initialise(theta []F, src rand.Source) { r.inner.initialise(theta, src) }
func (r *residual[F]) prepare(theta []F, examples int)       { r.inner.prepare(theta, examples) }
func (r *residual[F]) inPlace() bool                         { return false }
func (r *residual[F]) needsOutput() bool                     { return false }
func (r *residual[F]) oneByOne() bool                        { return false } // its inner layers may be

func (r *residual[F]) cell(examples int) cell[F] {
	return &residualCell[F]{inner: r.inner.newCell(examples), d: make([]F, examples*r.output().Len())}
}

type residualCell[F Float] struct {
	inner *chainCell[F]
	d     []F
}

func (r *residualCell[F]) forward(theta, in, out []F, g int) {
	copy(out, r.inner.forward(theta, in, g))
	kernel.Axpy(1, in, out)
}

func (r *residualCell[F]) backward(p pass[F]) {
	d := r.d[:len(p.dOut)]
	copy(d, p.dOut) // the inner layers overwrite theirs
	inner := r.inner.backward(p.theta, d, p.acc, p.norms, p.g, p.dIn != nil)
	if p.dIn != nil {
		copy(p.dIn, inner)
		kernel.Axpy(1, p.dOut[:len(p.dIn)], p.dIn)
	}
}

func (r *residualCell[F]) settle() { r.inner.settle() }

func (r *residualCell[F]) add(acc, _, weights []F, g int) { r.inner.add(acc, weights, g) }

func buildResidual[F Float](in Shape, s Layer, _ []Layer) (layer[F], Shape, error) {
	inner, err := build[F](in, s.Inner)
	if err != nil {
		return nil, in, err
	}
	if inner.output() != in {
		return nil, in, fmt.Errorf("its inner layers end with %v, but the input is added to it", inner.output())
	}
	return &residual[F]{inner}, in, nil
}
