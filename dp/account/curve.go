package account

import "math"

// Curve bounds a mechanism's Rényi divergence, in both directions between
// neighbours, at every order above 1. At order +Inf it is the epsilon of pure
// differential privacy. Values are never NaN and may be +Inf. A Curve is not
// for concurrent use: some remember what they computed.
type Curve interface {
	RDP(order float64) float64
}

// counted is a mechanism applied a number of times to the same data. Times is a
// float because products of counts may pass any integer.
type counted struct {
	of    mechanism
	times float64
}

// mechanism is a comparable description of one release, after the relation's
// factor was applied; equal ones are counted together.
type mechanism interface {
	comparableMechanism()
	// curve starts the mechanism's curve; orders are those an account is fixed
	// to, or nil.
	curve(orders []float64) Curve
}

// sum is the curve of independent mechanisms on the same data: divergences add
// (Mironov 2017, proposition 1).
type sum []scaled

type scaled struct {
	of    Curve
	times float64
}

func (s sum) RDP(order float64) float64 {
	total := 0.0
	for _, part := range s {
		if one := part.of.RDP(order); one > 0 {
			total += part.times * one
		}
	}
	return total
}

// zcdp is the curve rho*order, cut at the mechanism's pure epsilon (Bun and
// Steinke 2016).
type zcdp struct{ rho, pure float64 }

func (c zcdp) RDP(order float64) float64 { return math.Min(mulOrder(c.rho, order), c.pure) }

// mulOrder is rho*order without the 0*Inf that would be NaN.
func mulOrder(rho, order float64) float64 {
	if rho == 0 {
		return 0
	}
	return rho * order
}

// gaussian is noise of standard deviation noise times the sensitivity: zCDP with
// rho = 1/(2*noise^2).
type gaussian struct{ noise float64 }

func (gaussian) comparableMechanism() {}

// rho is rounded up: 1/noise^2 may underflow, and nothing is free.
func (g gaussian) rho() float64 { return atLeastSmallest(0.5 / g.noise / g.noise) }

func (g gaussian) curve([]float64) Curve { return zcdp{g.rho(), math.Inf(1)} }

// discreteGaussian has the Gaussian's zCDP (Canonne, Kamath and Steinke 2020,
// proposition 5); shift is the sensitivity in lattice steps.
type discreteGaussian struct {
	sigma float64
	shift int64
}

func (discreteGaussian) comparableMechanism() {}

func (g discreteGaussian) rho() float64 {
	ratio := float64(g.shift) / g.sigma
	return atLeastSmallest(ratio * ratio / 2)
}

func (g discreteGaussian) curve([]float64) Curve { return zcdp{g.rho(), math.Inf(1)} }

// selection is a private choice: its zCDP and its pure epsilon.
type selection struct{ rho, epsilon float64 }

func (selection) comparableMechanism() {}

func (s selection) curve([]float64) Curve { return zcdp{s.rho, s.epsilon} }

// unprotected is a release without noise.
type unprotected struct{}

func (unprotected) comparableMechanism() {}

func (unprotected) curve([]float64) Curve { return zcdp{math.Inf(1), math.Inf(1)} }

// laplace is scalar Laplace noise with pure epsilon = sensitivity/scale.
type laplace struct{ epsilon float64 }

func (laplace) comparableMechanism() {}

func (l laplace) curve([]float64) Curve { return l }

// RDP is Mironov 2017, table II. The textbook form subtracts nearly equal
// numbers when epsilon is small; moment - 1 written with excess(x) = e^x-1-x has
// only positive terms, since the linear ones cancel exactly.
func (l laplace) RDP(order float64) float64 {
	if math.IsInf(order, 1) {
		return l.epsilon
	}
	a, eps := order, l.epsilon
	if (a-1)*eps > 700 {
		// The second term is below e^-700 of the first.
		return math.Min(eps, eps+math.Log(a/(2*a-1))/(a-1)+1e-15*eps)
	}
	moment := (a*excess((a-1)*eps) + (a-1)*excess(-a*eps)) / (2*a - 1)
	// Pure epsilon is epsilon^2/2-zCDP as well, which the rounding must not exceed.
	return math.Min(math.Min(eps, atLeastSmallest(a*eps*eps/2)), roundUp(math.Log1p(moment)/(a-1)))
}

// excess is e^x - 1 - x, accurate for small x.
func excess(x float64) float64 {
	if math.Abs(x) > 0.1 {
		return math.Expm1(x) - x
	}
	// Taylor: x^2/2 (1 + x/3 (1 + x/4 (...))); ten terms reach 1e-16 at |x| = 0.1.
	s := 1.0
	for k := 12.0; k >= 3; k-- {
		s = 1 + x/k*s
	}
	return x * x / 2 * s
}

// roundUp covers the rounding errors of a chain of some thousand operations, so
// that a bound does not end below the truth.
func roundUp(x float64) float64 { return atLeastSmallest(x * (1 + 1e-11)) }

// atLeastSmallest keeps a positive quantity positive when it underflows.
func atLeastSmallest(x float64) float64 { return math.Max(x, math.SmallestNonzeroFloat64) }
