package mech

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// ClippedSum adds clipped vectors as integers on a lattice, so that one vector
// more or less changes it by at most the bound, exactly: float sums do not keep
// that promise. It is released once. It is not safe for concurrent use.
type ClippedSum struct {
	lattice     Lattice
	bound       float64 // that noise goes by: largest norm of a term; for a sector, and under replace-one for a positive sum, half the largest distance
	clip        float64 // largest norm of a term
	sector      *Sector
	positive    bool // terms have no negative coordinates
	replaceOnly bool // the bound holds under replace-one only
	sum, term   []int64
	terms       int64
	mostTerms   int64
	wasReleased bool
}

// maxSum keeps sums and their noise far from int64's end.
const maxSum = 1 << 61

// NewClippedSum sums vectors of n coordinates that are clipped to bound.
func NewClippedSum(n int, bound float64, l Lattice) (*ClippedSum, error) {
	if !(bound > 0) || math.IsInf(bound, 0) {
		return nil, fmt.Errorf("clipped sum: bound %v must be positive and finite", bound)
	}
	return newSum(n, bound, bound, l)
}

// NewSectorSum sums vectors that are clipped to a sector. Its sensitivity holds
// under replace-one only.
func NewSectorSum(s *Sector, l Lattice) (*ClippedSum, error) {
	// Truncation can move two terms one step further apart in every coordinate.
	slack := l.Step * math.Sqrt(float64(len(s.axis)))
	sum, err := newSum(len(s.axis), (s.Diameter()+slack)/2, s.upper, l)
	if err != nil {
		return nil, err
	}
	sum.sector, sum.replaceOnly = s, true
	return sum, nil
}

// NewPositiveSum sums vectors of n coordinates, none of them negative, that are clipped
// to bound. One more or less moves it by at most bound; one replaced by at most
// sqrt(2)*bound, for |a-b|^2 = |a|^2 + |b|^2 - 2ab and ab >= 0. A sum that was made for
// replace-one cannot be released under add-remove: docs/proofs/evaluation.md.
func NewPositiveSum(n int, bound float64, relation event.Relation, l Lattice) (*ClippedSum, error) {
	noised, err := PositiveBound(bound, relation)
	if err != nil {
		return nil, err
	}
	sum, err := newSum(n, noised, bound, l)
	if err != nil {
		return nil, err
	}
	sum.clip, sum.positive, sum.replaceOnly = bound, true, relation == event.ReplaceOne
	return sum, nil
}

// PositiveBound is what the noise on a positive sum goes by: its deviation is the noise
// multiplier times this. Accountants double it under replace-one, so that there it is
// half the largest distance.
func PositiveBound(bound float64, relation event.Relation) (float64, error) {
	switch {
	case !(bound > 0) || math.IsInf(bound, 0):
		return 0, fmt.Errorf("positive sum: bound %v must be positive and finite", bound)
	case relation == event.AddRemove:
		return bound, nil
	case relation == event.ReplaceOne:
		return math.Nextafter(bound*(math.Sqrt2/2), math.Inf(1)), nil
	}
	return 0, fmt.Errorf("positive sum: relation %q; allowed: %s, %s", relation, event.AddRemove, event.ReplaceOne)
}

func newSum(n int, bound, largest float64, l Lattice) (*ClippedSum, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	steps := largest/l.Step + 1
	if !(steps <= MaxCoordinate) {
		return nil, fmt.Errorf("clipped sum: %v is beyond 2^53 steps of %v; take a coarser lattice", largest, l.Step)
	}
	if n < 0 {
		return nil, fmt.Errorf("clipped sum: %d coordinates", n)
	}
	return &ClippedSum{
		lattice: l, bound: bound, clip: bound, sum: make([]int64, n), term: make([]int64, n),
		mostTerms: int64(maxSum / steps),
	}, nil
}

// Lattice is where the sum lives.
func (s *ClippedSum) Lattice() Lattice { return s.lattice }

// Add adds one clipped vector.
func (s *ClippedSum) Add(c Clipped) error {
	switch {
	case s.sector != nil:
		return fmt.Errorf("clipped sum: it sums vectors of a sector; use AddSector")
	case c.v == nil || !c.public || c.bound != s.clip:
		return fmt.Errorf("clipped sum: the vector is not clipped to the public bound %v (its bound: %v, public: %t)", s.clip, c.bound, c.public)
	}
	if err := s.truncate(c.v); err != nil {
		return err
	}
	if s.positive {
		for i, x := range s.term {
			s.term[i] = max(0, x) // by a rule of this vector alone
		}
	}
	s.lattice.shrink(s.term, s.clip)
	s.addTerm()
	return nil
}

// AddSector adds one vector that the sum's own sector clipped.
func (s *ClippedSum) AddSector(c SectorClipped) error {
	if s.sector == nil || c.sector != s.sector {
		return fmt.Errorf("clipped sum: the vector was not clipped to this sum's sector")
	}
	if err := s.truncate(c.v); err != nil {
		return err
	}
	s.addTerm()
	return nil
}

func (s *ClippedSum) truncate(v []float64) error {
	if s.wasReleased {
		return fmt.Errorf("clipped sum: it was released; Reset it first")
	}
	if s.terms == s.mostTerms {
		return fmt.Errorf("clipped sum: %d terms are all that an int64 holds safely; take a coarser lattice", s.terms)
	}
	if err := s.lattice.Truncate(s.term, v); err != nil {
		return fmt.Errorf("clipped sum: %w", err)
	}
	return nil
}

func (s *ClippedSum) addTerm() {
	for i, x := range s.term {
		s.sum[i] += x
	}
	s.terms++
}

// Reset empties the sum for another release.
func (s *ClippedSum) Reset() {
	clear(s.sum)
	clear(s.term)
	s.terms, s.wasReleased = 0, false
}
