package mech

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
)

// Gaussian is the Gaussian mechanism on a sum of clipped vectors, with standard
// deviation Multiplier times the sum's bound: docs/proofs/gaussian.md.
type Gaussian struct{ Multiplier float64 }

// maxReleaseSigma keeps sum plus noise within an int64: no draw passes 256 sigma.
const maxReleaseSigma = 1 << 50

func (g Gaussian) check() error {
	if !(g.Multiplier > 0) || math.IsInf(g.Multiplier, 0) {
		return fmt.Errorf("gaussian: noise multiplier %v must be positive and finite", g.Multiplier)
	}
	return nil
}

// Event is what one release costs before any sampling.
func (g Gaussian) Event() event.Gaussian { return event.Gaussian{Noise: g.Multiplier} }

// Lattice is a good lattice for sums clipped to bound: the noise is at least 2^20
// steps wide.
func (g Gaussian) Lattice(bound float64) (Lattice, error) {
	if err := g.check(); err != nil {
		return Lattice{}, err
	}
	return LatticeFor(g.Multiplier * bound)
}

// Sigma is the noise in steps of l, rounded up.
func (g Gaussian) Sigma(bound float64, l Lattice) (uint64, error) {
	if err := g.check(); err != nil {
		return 0, err
	}
	if err := l.check(); err != nil {
		return 0, err
	}
	noise := g.Multiplier * bound
	if math.FMA(g.Multiplier, bound, -noise) > 0 { // the product was rounded down
		noise = math.Nextafter(noise, math.Inf(1))
	}
	sigma := math.Ceil(noise / l.Step)
	if !(sigma >= 1 && sigma <= maxReleaseSigma) {
		return 0, fmt.Errorf("gaussian: noise of %v is %v steps of %v; choose a lattice where it is at most 2^50", noise, sigma, l.Step)
	}
	return uint64(sigma), nil
}

// Release sets dst to the sum plus exact noise, in lattice steps. The sum cannot
// be released again: two noises on one sum would cost twice. On an error nothing
// in dst may leave.
func (g Gaussian) Release(dst []int64, s *ClippedSum, terms Terms, e *Entropy) (event.Release, error) {
	return g.release(dst, s, terms, e.DiscreteGaussian)
}

// release is Release with noise that draw fills dst with.
func (g Gaussian) release(dst []int64, s *ClippedSum, terms Terms, draw func(dst []int64, sigma uint64) error) (event.Release, error) {
	sigma, err := g.Sigma(s.bound, s.lattice)
	if err != nil {
		return event.Release{}, err
	}
	release, err := terms.release(g.Event(), s.replaceOnly)
	if err != nil {
		return event.Release{}, fmt.Errorf("gaussian: %w", err)
	}
	switch {
	case s.wasReleased:
		return event.Release{}, fmt.Errorf("gaussian: the sum was released already")
	case len(dst) != len(s.sum):
		return event.Release{}, fmt.Errorf("gaussian: a sum of %d coordinates does not fit a destination of %d", len(s.sum), len(dst))
	}
	s.wasReleased = true
	if err := draw(dst, sigma); err != nil {
		clear(dst)
		return event.Release{}, fmt.Errorf("gaussian: %w", err)
	}
	for i, x := range s.sum {
		dst[i] += x
	}
	return release, nil
}

// Simulate sets dst to the sum plus float noise from a keyed source. The event is
// what a release would cost; floats themselves are not safe to release.
func (g Gaussian) Simulate(dst []float64, s *SimulatedSum, terms Terms, src rand.Source) (event.Release, error) {
	if err := g.check(); err != nil {
		return event.Release{}, err
	}
	release, err := terms.release(g.Event(), s.sector != nil)
	if err != nil {
		return event.Release{}, fmt.Errorf("gaussian: %w", err)
	}
	switch {
	case s.used:
		return event.Release{}, fmt.Errorf("gaussian: the sum was released already")
	case len(dst) != len(s.sum):
		return event.Release{}, fmt.Errorf("gaussian: a sum of %d coordinates does not fit a destination of %d", len(s.sum), len(dst))
	}
	s.used = true
	copy(dst, s.sum)
	addNormals(dst, g.Multiplier*s.bound, src)
	return release, nil
}
