package mech

import (
	"fmt"
	"math"
	"math/bits"
)

// Lattice is the set of multiples of a public power of two, fixed before any data
// is seen. Releases live on it as integers, so no low bit of a float can leak:
// docs/proofs/lattice-rounding.md.
type Lattice struct{ Step float64 }

// MaxCoordinate is the largest magnitude that a truncated coordinate may have:
// up to it int64, float64 and sums of some examples are all exact.
const MaxCoordinate = 1 << 53

// latticeFineness is how many steps LatticeFor puts into one unit of scale, as a
// power of two.
const latticeFineness = 20

// NewLattice checks that step is a power of two that float64 can divide by.
func NewLattice(step float64) (Lattice, error) {
	l := Lattice{Step: step}
	return l, l.check()
}

// LatticeFor returns the lattice whose step is the largest power of two at most
// scale/2^20. Scale must be public: a noise scale, never a statistic of the data.
func LatticeFor(scale float64) (Lattice, error) {
	if !(scale > 0) || math.IsInf(scale, 0) {
		return Lattice{}, fmt.Errorf("lattice: scale %v must be positive and finite", scale)
	}
	_, exp := math.Frexp(scale) // scale is in [2^(exp-1), 2^exp)
	return NewLattice(math.Ldexp(1, exp-1-latticeFineness))
}

func (l Lattice) check() error {
	frac, exp := math.Frexp(l.Step)
	// Within these exponents v/step and step*q neither overflow nor lose bits
	// for any coordinate that is not refused anyway.
	if frac != 0.5 || exp < -900 || exp > 900 {
		return fmt.Errorf("lattice: step %v must be a power of two between 2^-900 and 2^900", l.Step)
	}
	return nil
}

// Truncate sets dst to v in lattice steps, rounded toward zero, so that no norm
// grows. What does not fit is refused and leaves dst unspecified.
func (l Lattice) Truncate(dst []int64, v []float64) error {
	if err := l.check(); err != nil {
		return err
	}
	if len(dst) != len(v) {
		return fmt.Errorf("lattice: %d coordinates do not fit a destination of %d", len(v), len(dst))
	}
	perStep := 1 / l.Step
	for i, x := range v {
		steps := x * perStep
		if !(math.Abs(steps) <= MaxCoordinate) {
			return fmt.Errorf("lattice: coordinate %d is %v, beyond 2^53 steps of %v; clip it or take a coarser lattice", i, x, l.Step)
		}
		dst[i] = int64(steps)
	}
	return nil
}

// Float sets dst to the lattice points q: exactly up to 2^53 steps, rounded to
// the nearest float64 beyond. It is post-processing and costs no privacy.
func (l Lattice) Float(dst []float64, q []int64) {
	for i := range min(len(dst), len(q)) {
		dst[i] = float64(q[i]) * l.Step
	}
}

// Within says whether the lattice vector q has norm at most bound. It compares
// integers: no rounding can hide an excess.
func (l Lattice) Within(q []int64, bound float64) bool {
	if !(bound > 0) {
		return false
	}
	var hi, lo, carry uint64
	for _, x := range q {
		m := magnitude(x)
		h, s := bits.Mul64(m, m)
		lo, carry = bits.Add64(lo, s, 0)
		if hi, carry = bits.Add64(hi, h, carry); carry != 0 {
			return false
		}
	}
	boundHi, boundLo := squareFloor(bound / l.Step)
	return hi < boundHi || hi == boundHi && lo <= boundLo
}

// shrink brings q to norm at most bound. Clip rounds in floats; if that left an
// excess, integers show it, and one step toward zero everywhere removes it.
func (l Lattice) shrink(q []int64, bound float64) {
	for !l.Within(q, bound) {
		for i, x := range q {
			switch {
			case x > 0:
				q[i] = x - 1
			case x < 0:
				q[i] = x + 1
			}
		}
	}
}

// squareFloor returns floor(x*x) for x > 0 in 128 bits, saturated.
func squareFloor(x float64) (hi, lo uint64) {
	frac, exp := math.Frexp(x)
	if exp > 64 || math.IsInf(x, 0) {
		return math.MaxUint64, math.MaxUint64
	}
	mantissa := uint64(math.Ldexp(frac, 53))
	hi, lo = bits.Mul64(mantissa, mantissa)
	shift := 2 * (exp - 53)
	switch {
	case shift >= 0: // mantissa^2 < 2^106 and shift <= 22
		return hi<<shift | lo>>(64-shift), lo << shift
	case shift > -64:
		return hi >> -shift, hi<<(64+shift) | lo>>-shift
	case shift > -128:
		return 0, hi >> (-shift - 64)
	default:
		return 0, 0
	}
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}
