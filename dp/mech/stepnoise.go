package mech

import (
	"crypto/rand"
	"errors"
)

// leastDrawn is how many values are worth a goroutine.
const leastDrawn = 1 << 13

// Runner does independent jobs on workers.
type Runner interface {
	Workers() int
	Each(n int, job func(worker, i int))
}

// Spread has a runner's workers draw the sum's noise.
func (s *StepSum) Spread(r Runner) { s.runner = r }

// draw fills dst with exact Gaussian noise. The system's entropy is everybody's: a runner's
// workers draw from it, each a part. What follows from a seed is drawn one after another, so that
// it is the same by any number of them.
func (s *StepSum) draw(e *Entropy, dst []int64, sigma uint64) error {
	parts := len(dst) / leastDrawn
	if s.runner != nil {
		parts = min(parts, s.runner.Workers())
	}
	if s.runner == nil || parts < 2 || e.source != rand.Reader {
		return e.DiscreteGaussian(dst, sigma)
	}
	for len(s.sources) < parts-1 {
		s.sources = append(s.sources, SystemEntropy())
	}
	faults := make([]error, parts)
	s.runner.Each(parts, func(_, i int) {
		from := e
		if i > 0 {
			from = s.sources[i-1]
		}
		faults[i] = from.DiscreteGaussian(dst[len(dst)*i/parts:len(dst)*(i+1)/parts], sigma)
	})
	return errors.Join(faults...)
}
