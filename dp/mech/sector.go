package mech

import (
	"fmt"
	"math"
)

// Sector is the part of a hollow ball around a public axis: lower <= |v| <= upper
// and an angle to the axis of at most angle (paper 001, section 5.3, lower and
// angular clipping). Under replace-one the sensitivity of a sum is the sector's
// diameter, which can be far below 2*upper:
// docs/proofs/lower-and-angular-clipping.md.
type Sector struct {
	axis                []float64 // of norm 1
	lower, upper, angle float64
}

// minAngle keeps the rounding of a cosine from widening the sector noticeably.
const minAngle = 0x1p-10

// tinyNorm is where float64 begins to lose the direction of a vector.
const tinyNorm = 0x1p-900

// NewSector takes a public axis of any length but zero, 0 <= lower <= upper and
// an angle between 2^-10 and pi. At angle pi only the norms are clipped.
func NewSector(axis []float64, lower, upper, angle float64) (*Sector, error) {
	if !(upper > 0) || math.IsInf(upper, 0) || !(lower >= 0 && lower <= upper) {
		return nil, fmt.Errorf("sector: norms from %v to %v; need 0 <= lower <= upper, positive and finite", lower, upper)
	}
	if !(angle >= minAngle && angle <= math.Pi) {
		return nil, fmt.Errorf("sector: angle %v must be between 2^-10 and pi", angle)
	}
	norm, err := Norm(axis)
	if err != nil {
		return nil, fmt.Errorf("sector: axis: %w", err)
	}
	if norm < tinyNorm {
		return nil, fmt.Errorf("sector: the axis has norm %v and so no usable direction", norm)
	}
	s := &Sector{axis: make([]float64, len(axis)), lower: lower, upper: upper, angle: angle}
	for i, x := range axis {
		s.axis[i] = x / norm
	}
	return s, nil
}

// Diameter is the largest distance between two vectors of the sector, with room
// for the rounding of Clip.
func (s *Sector) Diameter() float64 {
	opening := min(2*s.angle, math.Pi)
	across := 2 * s.upper * math.Sin(opening/2)
	diagonal := math.Sqrt(s.upper*s.upper + s.lower*s.lower - 2*s.upper*s.lower*math.Cos(opening))
	rounding := float64(len(s.axis)+16) * 0x1p-42 * s.upper
	return max(across, diagonal) + rounding
}

// SectorClipped is a vector of a sector. Only Sector.Clip makes one.
type SectorClipped struct {
	v      []float64
	sector *Sector
}

// Clip moves v, in place, into the sector: first its direction toward the axis,
// then its norm. Vectors without a nearest direction, zero (below 2^-900) and
// opposite to the axis, take the axis's own, and so do those that are not finite.
func (s *Sector) Clip(v []float64) (SectorClipped, error) {
	if len(v) != len(s.axis) {
		return SectorClipped{}, fmt.Errorf("sector: %d coordinates, but the axis has %d", len(v), len(s.axis))
	}
	norm, _ := normOrZero(v)
	target := min(max(norm, s.lower), s.upper)
	if norm < tinyNorm {
		for i, a := range s.axis {
			v[i] = target * a
		}
		return SectorClipped{v, s}, nil
	}
	var along float64 // the cosine
	for i, x := range v {
		v[i] = x / norm
		along += v[i] * s.axis[i]
	}
	if s.angle < math.Pi && along < math.Cos(s.angle) {
		s.turn(v, along)
	}
	for i := range v {
		v[i] *= target
	}
	return SectorClipped{v, s}, nil
}

// turn moves the unit vector v to the sector's rim along the great circle through
// the axis.
func (s *Sector) turn(v []float64, along float64) {
	var across float64
	for range 2 { // twice: the first difference may be mostly rounding
		across = 0
		var left float64
		for i := range v {
			v[i] -= along * s.axis[i]
			across += v[i] * v[i]
			left += v[i] * s.axis[i]
		}
		along = left
	}
	across = math.Sqrt(across)
	if across < 0x1p-40 {
		copy(v, s.axis)
		return
	}
	sin, cos := math.Sincos(s.angle)
	for i, x := range v {
		v[i] = cos*s.axis[i] + sin/across*x
	}
}
