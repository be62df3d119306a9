package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "residual", keys: []string{"inner", "shortcut"}, single: buildResidual[float32], double: buildResidual[float64]})
}

// residual adds its input, or what a shortcut makes of it, to what its inner layers make
// of it. The shortcut's parameters come after the inner layers'.
type residual[F Float] struct{ inner, shortcut *chain[F] } // no shortcut: nil

func (r *residual[F]) output() Shape     { return r.inner.output() }
func (r *residual[F]) inPlace() bool     { return false }
func (r *residual[F]) needsOutput() bool { return false }
func (r *residual[F]) oneByOne() bool    { return false } // its inner layers may be

func (r *residual[F]) views() []View {
	views := r.inner.views()
	if r.shortcut != nil {
		for _, v := range r.shortcut.views() {
			v.Name = "shortcut." + v.Name
			v.Offset += r.inner.parameters()
			views = append(views, v)
		}
	}
	return views
}

// values is how many activations one example has in the layers within.
func (r *residual[F]) values() int {
	n := r.inner.values() - r.inner.input.Len()
	if r.shortcut != nil {
		n += r.shortcut.values() - r.shortcut.input.Len()
	}
	return n
}

// check refuses an example that the first layers within cannot read.
func (r *residual[F]) check(example []F) error {
	if err := r.inner.check(example); err != nil || r.shortcut == nil {
		return err
	}
	return r.shortcut.check(example)
}

func (r *residual[F]) initialise(theta []F, src rand.Source) {
	r.inner.initialise(theta, src)
	if r.shortcut != nil {
		r.shortcut.initialise(theta[r.inner.parameters():], src)
	}
}

func (r *residual[F]) prepare(theta []F, examples int) {
	r.inner.prepare(theta, examples)
	if r.shortcut != nil {
		r.shortcut.prepare(theta[r.inner.parameters():], examples)
	}
}

func (r *residual[F]) cell(examples int) cell[F] {
	c := &residualCell[F]{inner: r.inner.newCell(examples), own: r.inner.parameters(), d: make([]F, examples*r.output().Len())}
	if r.shortcut != nil {
		c.shortcut = r.shortcut.newCell(examples)
	}
	return c
}

type residualCell[F Float] struct {
	inner, shortcut *chainCell[F]
	own             int // parameters of the inner layers
	d               []F
}

func (r *residualCell[F]) forward(theta, in, out []F, g int) {
	copy(out, r.inner.forward(theta, in, g))
	if r.shortcut != nil {
		in = r.shortcut.forward(theta[r.own:], in, g)
	}
	kernel.Axpy(1, in, out)
}

func (r *residualCell[F]) backward(p pass[F]) {
	d := r.d[:len(p.dOut)]
	copy(d, p.dOut) // the inner layers overwrite theirs
	inner := r.inner.backward(p.theta, d, p.acc, p.norms, p.g, p.dIn != nil)
	if p.dIn != nil {
		copy(p.dIn, inner)
	}
	past := p.dOut
	if r.shortcut != nil {
		acc := p.acc
		if acc != nil {
			acc = acc[r.own:]
		}
		past = r.shortcut.backward(p.theta[r.own:], p.dOut, acc, p.norms, p.g, p.dIn != nil)
	}
	if p.dIn != nil {
		kernel.Axpy(1, past[:len(p.dIn)], p.dIn)
	}
}

// settle adds what the layers within have laid aside.
func (r *residualCell[F]) settle() {
	r.inner.settle()
	if r.shortcut != nil {
		r.shortcut.settle()
	}
}

func (r *residualCell[F]) add(acc, _, weights []F, g int) {
	r.inner.add(acc, weights, g)
	if r.shortcut != nil {
		r.shortcut.add(acc[r.own:], weights, g)
	}
}

func (r *residualCell[F]) canAddWhole() bool {
	return r.inner.canAddWhole() && (r.shortcut == nil || r.shortcut.canAddWhole())
}

func (r *residualCell[F]) formsWhole(on bool) {
	r.inner.formsWhole(on)
	if r.shortcut != nil {
		r.shortcut.formsWhole(on)
	}
}

func (r *residualCell[F]) addWhole(acc []float64, _ []F, weights []float64, g int) {
	r.inner.addWhole(acc[:r.own], weights, g)
	if r.shortcut != nil {
		r.shortcut.addWhole(acc[r.own:], weights, g)
	}
}

func buildResidual[F Float](in Shape, s Layer, _ []Layer) (layer[F], Shape, error) {
	inner, err := build[F](in, s.Inner)
	if err != nil {
		return nil, in, err
	}
	out := inner.output()
	if len(s.Shortcut) == 0 {
		if out != in {
			return nil, in, fmt.Errorf("its inner layers end with %v, but the input is added to it; give a shortcut that ends so", out)
		}
		return &residual[F]{inner: inner}, in, nil
	}
	shortcut, err := build[F](in, s.Shortcut)
	if err != nil {
		return nil, in, fmt.Errorf("shortcut: %w", err)
	}
	if shortcut.output() != out {
		return nil, in, fmt.Errorf("its inner layers end with %v, its shortcut with %v; allowed: the same", out, shortcut.output())
	}
	return &residual[F]{inner, shortcut}, out, nil
}
