package model

import (
	"math"

	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// WholeSum adds every row's gradient, clipped to the sum's bound, to sum, as whole numbers of
// its lattice's steps: see mech.StepSum.AddWeighted. What a row adds depends on that row and
// the parameters alone. No row's gradient of a linear layer is ever formed; layers on places, and
// of words, form one at a time. A row whose gradient is not finite counts as zero.
func (e *Engine[F]) WholeSum(sum *mech.StepSum, theta []F, ex Examples[F], order []int) error {
	for len(e.weights) < len(e.work) {
		e.weights = append(e.weights, make([]float64, len(e.work[0].norms)))
	}
	sum.Lanes(len(e.work))
	e.least = min(len(e.work[0].norms), e.leastAlike())
	e.formsWhole(true)
	defer func() {
		e.formsWhole(false)
		e.least = 0
	}()
	return e.each(theta, ex, order, func(w *workspace[F], _ int, rows []int) error {
		if rows = e.finiteRows(w, theta, ex, rows); len(rows) == 0 {
			return nil
		}
		return sum.AddWeighted(w.worker, w.norms[:len(rows)], e.weights[w.worker], func(dst, weights []float64) { w.cell.addWhole(dst, weights, len(rows)) })
	}, nil)
}

func (e *Engine[F]) formsWhole(on bool) {
	for _, w := range e.work {
		w.cell.formsWhole(on)
	}
}

// canAddWhole says whether the network's layers can add whole numbers.
func (e *Engine[F]) canAddWhole() bool { return e.work[0].cell.canAddWhole() }

// leastAlike is from how many rows on each row's values are the same, to the last bit,
// whatever stands beside it: products of a single row, and tiny ones, are added up in another
// order (kernel.Gemm).
func (e *Engine[F]) leastAlike() int {
	return kernel.AlikeFrom(e.network.chain.smallestProduct())
}

// smallestProduct is the least number of weights of a linear layer, on places or not.
func (c *chain[F]) smallestProduct() int {
	smallest := math.MaxInt
	for _, l := range c.layers {
		switch l := l.(type) {
		case *dense[F]:
			smallest = min(smallest, l.in*l.out)
		case *places[F]:
			smallest = min(smallest, l.in*l.out)
		case *words[F]:
			smallest = min(smallest, l.own, l.inner.smallestProduct())
		case *residual[F]:
			smallest = min(smallest, l.inner.smallestProduct())
			if l.shortcut != nil {
				smallest = min(smallest, l.shortcut.smallestProduct())
			}
		}
	}
	return smallest
}

// forming is what layers have that can form one example's gradient, for its norm and for whole
// numbers: where many places' gradients cancel, a norm that is made without that is not exact.
type forming[F Float] struct {
	forms  bool // norms are those of what is formed
	formed []F
}

func (f *forming[F]) formsWhole(on bool) { f.forms = on }

func (f *forming[F]) room(n int) []F {
	f.formed = grown(f.formed, n)[:n]
	return f.formed
}
