package mech

import (
	"fmt"
	"math"
)

// Split is what one Gaussian release makes of two sums over the same terms, each with
// noise relative to its own bound: First for the sum that training needs, Second for the
// one that its clip is learned from. Together they cost what Whole costs, for
// 1/whole^2 >= 1/first^2 + 1/second^2: docs/proofs/joint-clipping.md.
type Split struct{ Whole, First, Second Gaussian }

// Split is what the rule makes of one release with this noise. It needs a signal.
func (r ClipRule) Split(whole Gaussian) (Split, error) {
	if r.Signal == SignalNone || !(r.GradientNoise > 1) {
		return Split{}, fmt.Errorf("split: signal %d, %v times the noise on the first sum; need a signal, and more than 1: otherwise nothing is left for the second", r.Signal, r.GradientNoise)
	}
	first, second := r.noises(whole.Multiplier)
	s := Split{whole, Gaussian{first}, Gaussian{second}}
	return s, s.check()
}

// check holds the parts against the whole.
func (s Split) check() error {
	for _, g := range []Gaussian{s.Whole, s.First, s.Second} {
		if err := g.check(); err != nil {
			return fmt.Errorf("split: %w", err)
		}
	}
	a, b := s.Whole.Multiplier/s.First.Multiplier, s.Whole.Multiplier/s.Second.Multiplier
	if !(a*a+b*b <= 1) {
		return fmt.Errorf("split: noises %v and %v on one set of terms amount to %v, below the whole of %v",
			s.First.Multiplier, s.Second.Multiplier, s.Whole.Multiplier/math.Sqrt(a*a+b*b), s.Whole.Multiplier)
	}
	return nil
}

// Split takes one draw of the whole and opens it as one of each part.
func (p *Paid) Split(s Split) (*Paid, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := p.draw(s.Whole.Event()); err != nil {
		return nil, err
	}
	return &Paid{terms: p.terms, claim: p.claim, left: []charged{{s.First.Event(), 1}, {s.Second.Event(), 1}}}, nil
}

// Learn moves the state by one release over so many terms: by its noised count, or by two
// signs, -1, 0 or 1. It is for releases that are no steps of Steps.
func (r ClipRule) Learn(s *ClipState, terms int, count, clip, step float64) {
	switch r.Signal {
	case SignalCount:
		r.follow(s, count, terms)
	case SignalDirections:
		r.turn(s, clip, step)
	}
	r.fall(s)
}
