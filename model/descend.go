package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// Descend takes one plain step downhill, theta -= step*gradient, and returns the
// mean loss before it. A batch of one chunk adds its gradient straight to the
// parameters: for a small batch on a large layer, clearing, writing and reading a
// gradient costs more than its arithmetic.
func (e *Engine[F]) Descend(theta []F, ex Examples[F], order []int, step float64) (float64, error) {
	if len(order) == 0 {
		return 0, fmt.Errorf("a step on no rows")
	}
	if len(order) > e.chunk {
		return e.descendInChunks(theta, ex, order, step)
	}
	objective := e.objective
	_, root := objective.(rootSquaredError[F])
	if root {
		e.objective = squaredError[F]{}
		defer func() { e.objective = objective }()
	}
	out := e.network.Output().Len()
	err := e.each(theta, ex, order, func(w *workspace[F], _ int, rows []int) error {
		g := len(rows)
		share := -step / float64(g)
		if root { // the mean is taken below the root
			share *= rootShare(math.Sqrt(mean(e.losses)))
		}
		d := w.d[:g*out]
		kernel.Scale(d, F(share), d)
		// Every layer reads its parameters for the way back before it adds to them.
		w.cell.backward(theta, d, theta, nil, g, false)
		return nil
	}, nil)
	if err != nil {
		return 0, err
	}
	loss := mean(e.losses)
	if root {
		loss = math.Sqrt(loss)
	}
	return loss, nil
}

func (e *Engine[F]) descendInChunks(theta []F, ex Examples[F], order []int, step float64) (float64, error) {
	if e.gradient == nil {
		e.gradient = make([]F, len(theta))
	}
	loss, err := e.Gradient(e.gradient, theta, ex, order)
	if err != nil {
		return 0, err
	}
	kernel.Axpy(-F(step), e.gradient, theta)
	return loss, nil
}

// rootShare is the derivative of the root at the mean squared error: 0 at a perfect fit.
func rootShare(root float64) float64 {
	if root == 0 {
		return 0
	}
	return 1 / (2 * root)
}
