package account

import (
	"cmp"
	"fmt"
	"math"
)

// Noise that is drawn exactly, on a lattice (dp/mech), has the discrete Gaussian's
// distribution. Its Rényi divergences are at most the continuous normal's: without
// sampling at every order, on a Poisson sample at whole orders. Other bounds hold for
// it with a term of their own. docs/proofs/gaussian.md has the proofs.

// LeastSigma is the least standard deviation of exact noise in steps of its lattice, as
// dp/mech chooses lattices.
const LeastSigma = 1 << 20

// Lattice says that noise is exact, and where it is drawn.
type Lattice struct {
	Coordinates int64   // that are released from one batch; the Rényi bounds do not ask
	Sigma       float64 // standard deviation in steps, at least 2^10; 0 for LeastSigma
}

func (l Lattice) sigma() float64 { return cmp.Or(l.Sigma, LeastSigma) }

func (l Lattice) check() error {
	switch {
	case l.Coordinates < 1:
		return parameter("coordinates of exact noise", l.Coordinates, "at least 1: this bound depends on them")
	case !(l.sigma() >= 1<<10) || math.IsInf(l.Sigma, 1):
		return parameter("sigma of exact noise", l.Sigma, "at least 1024 steps of the lattice")
	}
	return nil
}

// distance bounds the total variation between so many releases with exact noise and
// the same with continuous noise that is rounded to the lattice.
func (l Lattice) distance(releases float64) float64 {
	return 1.01 * math.Sqrt(releases) * math.Sqrt(float64(l.Coordinates)) / (24 * l.sigma() * l.sigma())
}

// bounds are those of exact noise, from those of continuous noise: two distributions t
// apart from two others have a delta that is larger by at most (1 + e^epsilon)*t.
func (l Lattice) bounds(releases, delta float64, continuous func(delta float64) (low, high float64, err error)) (low, high float64, err error) {
	if err := l.check(); err != nil {
		return 0, 0, err
	}
	t := l.distance(releases)
	if delta == 0 || t == 0 {
		return continuous(delta)
	}
	if _, high, err = continuous(delta); err != nil {
		return 0, 0, err
	}
	for range 20 {
		term := (1 + math.Exp(high)) * t
		if !(term < delta) {
			return 0, 0, fmt.Errorf("%w: exact noise on %d coordinates, %g releases, adds %.3g to delta, which leaves nothing of %.3g; use the RDP accountant, or noise of %.0f steps of its lattice",
				ErrUnsupported, l.Coordinates, releases, term, delta, math.Ceil(l.sigma()*math.Sqrt(10*term/delta)))
		}
		_, next, err := continuous(delta - term)
		if err != nil {
			return 0, 0, err
		}
		if next <= high {
			low, _, err = continuous(math.Min(delta+term, (1+delta)/2))
			return math.Min(low, high), high, err
		}
		high = next * (1 + 1e-4) // a little further, so that the next round ends it
	}
	return 0, 0, fmt.Errorf("%w: no epsilon covers the term of exact noise at delta %v; use the RDP accountant", ErrUnsupported, delta)
}

// drawn counts the releases of Gaussian noise among costs.
func drawn(costs []counted) float64 {
	total := 0.0
	for _, c := range costs {
		switch c.of.(type) {
		case gaussian, poissonGaussian:
			total += c.times
		}
	}
	return total
}

// onLattice is costs as exact noise has them.
func onLattice(costs []counted) []counted {
	exact := make([]counted, len(costs))
	for i, c := range costs {
		switch m := c.of.(type) {
		case poissonGaussian:
			c.of = poissonLattice{m}
		case *tuned:
			t := *m
			t.base = onLattice(m.base)
			c.of = &t
		}
		exact[i] = c
	}
	return exact
}

// poissonLattice is the discrete Gaussian mechanism on a Poisson sample, add-remove.
type poissonLattice struct{ poissonGaussian }

func (m poissonLattice) curve([]float64) Curve {
	return &poissonCurve{poissonGaussian: m.poissonGaussian, whole: true}
}
