package model

import (
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// affine is what normalising layers share: after it, every channel is multiplied by a
// factor and a constant is added, which are trained. They begin with 1 and 0.
type affine[F Float] struct {
	bare[F]
	factors []F // as of the last prepare: they may change on the way back
	ones    []F
	zeros   []F
}

func newAffine[F Float](shape Shape) affine[F] {
	a := affine[F]{bare: bare[F]{shape}, factors: make([]F, shape.Channels), ones: make([]F, shape.Channels), zeros: make([]F, shape.Channels)}
	for i := range a.ones {
		a.ones[i] = 1
	}
	return a
}

func (a *affine[F]) views() []View {
	n := a.shape.Channels
	return []View{{Name: "weight", Shape: []int{n}}, {Name: "bias", Offset: n, Shape: []int{n}}}
}

func (a *affine[F]) initialise(theta []F, _ rand.Source) {
	n := copy(theta, a.ones)
	clear(theta[n:])
}

func (a *affine[F]) prepare(theta []F, _ int) { copy(a.factors, theta) }

// affineCell keeps the examples' gradients of factors and constants.
type affineCell[F Float] struct {
	kept []F // of every example, until its weight is known
	own  []F // of one example whose gradient is not kept
}

func newAffineCell[F Float](channels, examples int) affineCell[F] {
	return affineCell[F]{kept: make([]F, examples*2*channels), own: make([]F, 2*channels)}
}

// gradient is where example i's of a pass goes, cleared.
func (a *affineCell[F]) gradient(p pass[F], i int) []F {
	own := a.own
	if p.norms != nil {
		own = a.kept[(p.first+i)*len(own):][:len(own)]
	}
	clear(own)
	return own
}

// deliver hands example i's gradient to what the pass asks for.
func (a *affineCell[F]) deliver(p pass[F], i int, own []F) {
	switch {
	case p.acc != nil:
		kernel.Axpy(1, own, p.acc)
	case p.norms != nil:
		p.norms[i] += kernel.SquaredNorm(own)
	}
}

func (a *affineCell[F]) add(acc, _, weights []F, g int) {
	n := len(a.own)
	for i, w := range weights[:g] {
		if w != 0 {
			kernel.Axpy(w, a.kept[i*n:(i+1)*n], acc)
		}
	}
}

func (a *affineCell[F]) addWhole(acc []float64, _ []F, weights []float64, g int) {
	addWholeRows(acc, a.kept, weights[:g])
}
