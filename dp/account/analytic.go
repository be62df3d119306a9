package account

import (
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// The exact privacy of the Gaussian mechanism (Balle and Wang 2018, theorem 8).
// mu is the distance between neighbours in standard deviations; k releases at
// mu are one at sqrt(k)*mu. docs/proofs/analytic-gaussian.md has the stable forms.

// gaussianDelta is delta(epsilon), rounded up. With x = epsilon/mu -+ mu/2 and
// Mills' ratio m it is phi(x1)*(m(x1) - m(x2)), which does not cancel in the tail
// as Phi(-x1) - e^epsilon*Phi(-x2) does.
func gaussianDelta(mu, epsilon float64) float64 {
	if mu == 0 {
		return 0
	}
	middle := epsilon / mu
	x1, x2 := middle-mu/2, middle+mu/2
	var delta float64
	switch {
	case mu < 0.01:
		// m(x1) - m(x2) is the integral of 1 - x*m(x): Simpson's rule.
		slope := func(x float64) float64 { return 1 - x*mills(x) }
		delta = normalDensity(x1) * mu / 6 * (slope(x1) + 4*slope(middle) + slope(x2))
	case x1 > 0:
		delta = normalDensity(x1) * (mills(x1) - mills(x2))
	default:
		delta = 0.5*math.Erfc(x1/math.Sqrt2) - normalDensity(x1)*mills(x2)
	}
	return math.Min(1, math.Max(0, delta)*(1+1e-11)+math.SmallestNonzeroFloat64)
}

func normalDensity(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

// mills is Phi(-x)/phi(x).
func mills(x float64) float64 {
	if x < 12 {
		return 0.5 * math.Erfc(x/math.Sqrt2) / normalDensity(x)
	}
	// Laplace's continued fraction 1/(x+1/(x+2/(x+...))); 25 levels reach
	// rounding at x = 12.
	f := x
	for k := 25.0; k >= 1; k-- {
		f = x + k/f
	}
	return 1 / f
}

// gaussianEpsilon is the least epsilon whose delta is at most the one given,
// rounded up; +Inf at delta 0.
func gaussianEpsilon(mu, delta float64) float64 {
	return solveEpsilon(delta, func(epsilon float64) float64 { return gaussianDelta(mu, epsilon) })
}

// GaussianEpsilon is the exact epsilon at delta of steps releases with continuous
// Gaussian noise S = sigma/C, and no sampling; rounded up. Noise on a lattice has a term
// of its own: NewPLD with WithLattice adds it.
func GaussianEpsilon(noise float64, steps int64, delta float64, relation event.Relation) (float64, error) {
	mu, err := gaussianDistance(noise, steps, relation)
	if err != nil {
		return 0, err
	}
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	if mu > 0 && delta == 0 {
		return math.Inf(1), nil
	}
	return gaussianEpsilon(mu, delta), nil
}

func gaussianDistance(noise float64, steps int64, relation event.Relation) (float64, error) {
	t := Terms{event.UnitExample, relation, event.ClaimProved}
	if err := t.validate(); err != nil {
		return 0, err
	}
	if !(noise > 0) || math.IsInf(noise, 1) {
		return 0, parameter("noise", noise, "a finite number > 0")
	}
	if steps < 0 {
		return 0, parameter("steps", steps, "a count >= 0")
	}
	return t.factor() / noise * math.Sqrt(float64(steps)), nil
}

// AnalyticNoise is the least continuous Gaussian noise S = sigma/C with which steps releases
// keep (epsilon, delta) exactly: the analytic Gaussian calibration.
func AnalyticNoise(epsilon, delta float64, steps int64, relation event.Relation) (float64, error) {
	unit, err := gaussianDistance(1, steps, relation)
	if err != nil {
		return 0, err
	}
	if !(epsilon >= 0) || math.IsInf(epsilon, 1) {
		return 0, parameter("epsilon", epsilon, "a finite number >= 0")
	}
	if err := checkPositiveDelta(delta); err != nil {
		return 0, err
	}
	if unit == 0 {
		return 0, parameter("steps", steps, "at least 1")
	}
	low, high := -300*math.Ln10, 150*math.Ln10 // log mu, kept at low, broken at high
	for range 200 {
		middle := low + (high-low)/2
		if gaussianDelta(math.Exp(middle), epsilon) <= delta {
			low = middle
		} else {
			high = middle
		}
	}
	return unit / math.Exp(low) * (1 + 1e-12), nil
}
