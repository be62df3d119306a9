// Package mech turns vectors into releases: clip, then noise; every mechanism names its own event.
package mech

import (
	"fmt"
	"math"
)

// Clipped is a vector that carries the bound on its norm. Only Clip and
// OwnRadius make one, so no mechanism can be given a sensitivity by hand.
type Clipped struct {
	v      []float64
	bound  float64
	public bool
}

// Bound is the largest norm that the vector can have.
func (c Clipped) Bound() float64 { return c.bound }

// Public says whether the bound was fixed without looking at private data.
func (c Clipped) Public() bool { return c.public }

// Len is the number of coordinates.
func (c Clipped) Len() int { return len(c.v) }

// Clip scales v, in place, to norm at most bound. The caller gives v away. Zero
// stays zero; NaN and infinities are refused.
func Clip(v []float64, bound float64) (Clipped, error) {
	if !(bound > 0) || math.IsInf(bound, 0) {
		return Clipped{}, fmt.Errorf("clip: bound %v must be positive and finite", bound)
	}
	norm, err := Norm(v)
	if err != nil {
		return Clipped{}, fmt.Errorf("clip: %w", err)
	}
	// Rounding may leave the scaled norm an ulp above the bound: shrink until it is not.
	for factor := bound / norm; norm > bound; factor = math.Nextafter(bound/norm, 0) {
		for i := range v {
			v[i] *= factor
		}
		if norm, err = Norm(v); err != nil {
			return Clipped{}, fmt.Errorf("clip: %w", err)
		}
	}
	return Clipped{v: v, bound: bound, public: true}, nil
}

// OwnRadius takes the vector's own norm as its bound, at least floor: Algorithm 2
// of the papers. The bound then depends on private data, so what is built on it
// is heuristic.
func OwnRadius(v []float64, floor float64) (Clipped, error) {
	if !(floor > 0) || math.IsInf(floor, 0) {
		return Clipped{}, fmt.Errorf("own radius: floor %v must be positive and finite", floor)
	}
	norm, err := Norm(v)
	if err != nil {
		return Clipped{}, fmt.Errorf("own radius: %w", err)
	}
	return Clipped{v: v, bound: max(norm, floor)}, nil
}

// Norm is the Euclidean norm; NaN, infinities and norms beyond float64 are refused.
func Norm(v []float64) (float64, error) {
	var sum, largest float64
	for _, x := range v {
		sum += x * x
		largest = max(largest, math.Abs(x))
	}
	switch {
	case math.IsNaN(sum) || math.IsInf(largest, 0):
		return 0, notFinite(v)
	case largest == 0 || (sum < math.MaxFloat64 && sum > 0x1p-900):
		return math.Sqrt(sum), nil
	}
	sum = 0 // the squares left float64's range: scale first
	for _, x := range v {
		sum += (x / largest) * (x / largest)
	}
	if norm := largest * math.Sqrt(sum); !math.IsInf(norm, 0) {
		return norm, nil
	}
	return 0, fmt.Errorf("the vector's norm is too large for a float64")
}

func notFinite(v []float64) error {
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("coordinate %d is %v; a smaller step or checked data would keep it finite", i, x)
		}
	}
	return fmt.Errorf("the vector's norm is not a number")
}
