package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/mech"
)

// Planted are examples that stand in no data, for audits of the step itself: example k
// has the gradient Length along coordinate At[k], whatever the parameters are. They
// follow the client's own examples, and are drawn, clipped, added and noised with them,
// by the same code. What is trained with them is not for use.
type Planted struct {
	At     []int
	Length float64
}

// count is how many there are.
func (p *Planted) count() int {
	if p == nil {
		return 0
	}
	return len(p.At)
}

// check refuses what cannot be planted in n parameters.
func (p *Planted) check(n int, bound float64) error {
	switch {
	case bound == 0:
		return fmt.Errorf("step: planted gradients, but nothing is clipped; allowed: only where examples are")
	case math.IsNaN(p.Length) || math.IsInf(p.Length, 0):
		return fmt.Errorf("step: a planted gradient has the length %v; allowed: finite ones", p.Length)
	}
	for k, at := range p.At {
		if at < 0 || at >= n {
			return fmt.Errorf("step: planted gradient %d lies along parameter %d of %d", k, at, n)
		}
	}
	return nil
}

// part keeps a batch's own examples in it and notes which planted ones were drawn.
func (p *Pass) part(batch []int) []int {
	p.own, p.present = p.own[:0], p.present[:0] // also where the last client's were planted
	if p.Planted == nil {
		return batch
	}
	own := p.examples - p.Planted.count()
	for _, i := range batch {
		if i < own {
			p.own = append(p.own, i)
		} else {
			p.present = append(p.present, i-own)
		}
	}
	return p.own
}

// plantFloats adds the drawn ones to an empty float sum.
func plantFloats[F Float](sum *mech.LaneSum[F], step *Step) error {
	if len(step.present) == 0 {
		return nil
	}
	norms, factors := slices.Repeat([]float64{math.Abs(step.Planted.Length)}, len(step.present)), make([]F, len(step.present))
	return sum.AddWeighted(0, norms, factors, func(dst, factors []F) {
		for k, i := range step.present {
			dst[step.Planted.At[i]] += factors[k] * F(step.Planted.Length)
		}
	})
}

// plantIntegers adds the drawn ones to an empty integer sum of n coordinates.
func plantIntegers(sum *mech.StepSum, n int, step *Step) error {
	if len(step.present) == 0 {
		return nil
	}
	v := make([]float64, n)
	for _, i := range step.present {
		clear(v)
		v[step.Planted.At[i]] = step.Planted.Length
		if err := sum.Add(v); err != nil {
			return fmt.Errorf("planted gradient %d: %w", i, err)
		}
	}
	return nil
}
