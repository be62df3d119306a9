package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// PrivateSteps computes noised gradients: every row's gradient is clipped, the
// sum is noised and divided by a public batch size. The noise is simulated: fast
// keyed floats.
type PrivateSteps[F Float] struct {
	engine *Engine[F]
	sum    *mech.LaneSum[F]
	noise  mech.Gaussian
	terms  mech.Terms
	size   int
}

// NewPrivateSteps clips to bound and adds noise of standard deviation
// multiplier*bound to the sum; size is the public divisor. Terms say what the
// steps protect; their relation must go with the batches' sampling.
func NewPrivateSteps[F Float](e *Engine[F], bound, multiplier float64, size int, terms mech.Terms) (*PrivateSteps[F], error) {
	if size < 1 {
		return nil, fmt.Errorf("private step: a batch size of %d; allowed: 1 or more", size)
	}
	sum, err := mech.NewLaneSum[F](e.network.Parameters(), lanes, bound)
	if err != nil {
		return nil, fmt.Errorf("private step: %w", err)
	}
	return &PrivateSteps[F]{engine: e, sum: sum, noise: mech.Gaussian{Multiplier: multiplier}, terms: terms, size: size}, nil
}

// Event is what one step costs on its whole batch; Batches.Event adds the sampling.
func (p *PrivateSteps[F]) Event() event.Gaussian { return p.noise.Event() }

// Gradient sets dst to the noised gradient of a batch, which may be empty. The
// loss that it returns is of the rows themselves and is not protected.
func (p *PrivateSteps[F]) Gradient(dst, theta []F, ex Examples[F], batch []int, src rand.Source) (float64, error) {
	p.sum.Reset()
	loss, err := p.engine.ClippedSum(p.sum, theta, ex, batch)
	if err != nil {
		return 0, fmt.Errorf("private step: %w", err)
	}
	if _, err := mech.SimulateLanes(p.noise, dst, p.sum, p.terms, src); err != nil {
		return 0, fmt.Errorf("private step: %w", err)
	}
	kernel.Scale(dst, 1/F(p.size), dst)
	return loss, nil
}
