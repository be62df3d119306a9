package mech

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Laplace is the n-dimensional Laplace mechanism, density ~ exp(-epsilon*|x|),
// with epsilon = n/(Multiplier*bound): docs/proofs/laplace-mixture.md.
type Laplace struct {
	Multiplier float64
}

// Event is what releasing c costs.
func (l Laplace) Event(c Clipped) event.MetricLaplace {
	return event.MetricLaplace{Dimension: len(c.v), NoiseMultiplier: l.Multiplier, Radius: c.bound}
}

// Simulate sets dst to base + c + noise, with float noise from a keyed source.
// It is for simulation: floats are not safe to release.
func (l Laplace) Simulate(dst, base []float64, c Clipped, src rand.Source) (event.MetricLaplace, error) {
	if err := l.check(len(dst), len(base), c); err != nil {
		return event.MetricLaplace{}, err
	}
	e := l.Event(c)
	for i := range dst {
		dst[i] = base[i] + c.v[i]
	}
	// N(0, V) for one V ~ Gamma((n+1)/2, scale 2/eps^2): the same distribution as a norm
	// and a direction, as the papers draw them.
	n := float64(len(dst))
	addNormals(dst, math.Sqrt(2*rng.Gamma(src, (n+1)/2))/e.Epsilon(), src)
	return e, nil
}

func (l Laplace) check(dst, base int, c Clipped) error {
	switch {
	case !(l.Multiplier > 0) || math.IsInf(l.Multiplier, 0):
		return fmt.Errorf("laplace: noise multiplier %v must be positive and finite", l.Multiplier)
	case c.v == nil || c.bound <= 0:
		return fmt.Errorf("laplace: the vector was not made by Clip or OwnRadius")
	case dst != len(c.v) || base != len(c.v):
		return fmt.Errorf("laplace: %d coordinates to release, but base has %d and destination %d", len(c.v), base, dst)
	}
	return nil
}

// OnLattice sets dst to base + c + exact noise, all in steps of the lattice: the
// form that may be released. c is truncated toward zero and held against its bound
// in integers, so that the bound survives.
func (l Laplace) OnLattice(dst, base []int64, c Clipped, lattice Lattice, from *Entropy) (event.MetricLaplace, error) {
	if err := l.check(len(dst), len(base), c); err != nil {
		return event.MetricLaplace{}, err
	}
	e := l.Event(c)
	if err := from.LatticeLaplace(dst, e.Epsilon(), lattice); err != nil {
		return event.MetricLaplace{}, err
	}
	update := make([]int64, len(c.v))
	if err := lattice.Truncate(update, c.v); err != nil {
		return event.MetricLaplace{}, fmt.Errorf("laplace: %w", err)
	}
	lattice.shrink(update, c.bound)
	const most = 1 << 61 // of the noise and of the base; updates are far below
	for i, x := range update {
		if magnitude(base[i]) > most || magnitude(dst[i]) > most {
			return event.MetricLaplace{}, fmt.Errorf("laplace: coordinate %d does not fit the lattice of step %v", i, lattice.Step)
		}
		dst[i] += base[i] + x
	}
	return e, nil
}

// MostRadius is the largest bound that OnLattice takes on a lattice for n coordinates:
// wider noise would leave exact integers. It is public, as the lattice is.
func (l Laplace) MostRadius(n int, lattice Lattice) float64 {
	wide := float64(n) * lattice.Step * MaxSigma / (l.Multiplier * (math.Sqrt(float64(n)) + 256))
	return min(wide, lattice.Step*MaxCoordinate) / 2
}
