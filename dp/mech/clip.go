package mech

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// Clipped is a vector that carries the bound on its norm. Only Clip and
// OwnRadius make one, so no mechanism can be given a sensitivity by hand.
type Clipped struct {
	v        []float64
	bound    float64
	public   bool
	replaced bool
}

// Replaced says that the vector was not finite and zero stands in its place: for the
// eyes of whoever holds the data, since it tells of them.
func (c Clipped) Replaced() bool { return c.replaced }

// Clip scales v, in place, to norm at most bound. The caller gives v away. Zero
// stays zero, and a vector that is not finite becomes zero, by a rule of this vector
// alone: a refusal would be an answer about the data that nobody pays for.
func Clip(v []float64, bound float64) (Clipped, error) {
	if !(bound > 0) || math.IsInf(bound, 0) {
		return Clipped{}, fmt.Errorf("clip: bound %v must be positive and finite", bound)
	}
	norm, replaced := normOrZero(v)
	// Rounding may leave the scaled norm an ulp above the bound: shrink until it is not.
	for factor := bound / norm; norm > bound; factor = math.Nextafter(bound/norm, 0) {
		for i := range v {
			v[i] *= factor
		}
		norm, _ = normOrZero(v)
	}
	return Clipped{v: v, bound: bound, public: true, replaced: replaced}, nil
}

// OwnRadius takes the vector's own norm as its bound, but at least floor and at most
// ceiling, to which a longer vector is clipped: Algorithm 2 of the papers. The bound
// then depends on private data, so what is built on it is heuristic. A vector that is
// not finite becomes zero, as in Clip.
func OwnRadius(v []float64, floor, ceiling float64) (Clipped, error) {
	if !(floor > 0) || math.IsInf(floor, 0) || !(ceiling >= floor) || math.IsInf(ceiling, 0) {
		return Clipped{}, fmt.Errorf("own radius: floor %v must be positive and ceiling %v finite and at least the floor", floor, ceiling)
	}
	norm, replaced := normOrZero(v)
	if norm > ceiling {
		c, err := Clip(v, ceiling)
		c.public = false
		return c, err
	}
	return Clipped{v: v, bound: max(norm, floor), replaced: replaced}, nil
}

// normOrZero is the norm of v, which it sets to zero if there is no finite one.
func normOrZero(v []float64) (norm float64, replaced bool) {
	norm, err := Norm(v)
	if err != nil {
		clear(v)
		return 0, true
	}
	return norm, false
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

// CheckFinite refuses what Norm refuses, several times quicker: vectors whose squares
// can be summed are seen through by the kernels, and only others are looked at one value
// after another.
func CheckFinite(v []float64) error {
	if sum := kernel.SquaredNorm(v); sum <= math.MaxFloat64 {
		return nil
	}
	_, err := Norm(v)
	return err
}

func notFinite(v []float64) error {
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("coordinate %d is %v; a smaller step or checked data would keep it finite", i, x)
		}
	}
	return fmt.Errorf("the vector's norm is not a number")
}
