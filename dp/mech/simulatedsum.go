package mech

import (
	"fmt"
	"math"
)

// SimulatedSum adds clipped vectors as floats: fast, and for simulation only,
// because rounding lets a float sum move further than its bound.
type SimulatedSum struct {
	bound  float64 // as in ClippedSum
	sector *Sector
	sum    []float64
	used   bool
}

// NewSimulatedSum sums vectors of n coordinates that are clipped to bound.
func NewSimulatedSum(n int, bound float64) (*SimulatedSum, error) {
	if !(bound > 0) || math.IsInf(bound, 0) {
		return nil, fmt.Errorf("simulated sum: bound %v must be positive and finite", bound)
	}
	if n < 0 {
		return nil, fmt.Errorf("simulated sum: %d coordinates", n)
	}
	return &SimulatedSum{bound: bound, sum: make([]float64, n)}, nil
}

// NewSimulatedSectorSum sums vectors that are clipped to a sector. Its
// sensitivity holds under replace-one only.
func NewSimulatedSectorSum(s *Sector) *SimulatedSum {
	return &SimulatedSum{bound: s.Diameter() / 2, sector: s, sum: make([]float64, len(s.axis))}
}

// Add adds one clipped vector.
func (s *SimulatedSum) Add(c Clipped) error {
	switch {
	case s.used:
		return fmt.Errorf("simulated sum: it was released; Reset it first")
	case s.sector != nil:
		return fmt.Errorf("simulated sum: it sums vectors of a sector; use AddSector")
	case c.v == nil || !c.public || c.bound != s.bound:
		return fmt.Errorf("simulated sum: the vector is not clipped to the public bound %v (its bound: %v, public: %t)", s.bound, c.bound, c.public)
	case len(c.v) != len(s.sum):
		return fmt.Errorf("simulated sum: %d coordinates do not fit a sum of %d", len(c.v), len(s.sum))
	}
	for i, x := range c.v {
		s.sum[i] += x
	}
	return nil
}

// AddSector adds one vector that the sum's own sector clipped.
func (s *SimulatedSum) AddSector(c SectorClipped) error {
	switch {
	case s.used:
		return fmt.Errorf("simulated sum: it was released; Reset it first")
	case s.sector == nil || c.sector != s.sector:
		return fmt.Errorf("simulated sum: the vector was not clipped to this sum's sector")
	}
	for i, x := range c.v {
		s.sum[i] += x
	}
	return nil
}

// Reset empties the sum for another release.
func (s *SimulatedSum) Reset() {
	clear(s.sum)
	s.used = false
}
