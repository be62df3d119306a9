package account

import "math"

// poissonGaussian is the Gaussian mechanism on a Poisson sample, add-remove.
type poissonGaussian struct{ rate, noise float64 }

func (poissonGaussian) comparableMechanism() {}

func (m poissonGaussian) curve([]float64) Curve { return &poissonCurve{poissonGaussian: m} }

// poissonCurve is log(A)/(order-1), where A = E[(1-q+q*e^w)^order] and e^w is the
// likelihood ratio of N(1,s^2) to N(0,s^2) under N(0,s^2): the larger of the two
// directions (Mironov, Talwar and Zhang 2019, section 3). A - 1 is computed, not
// A: at small rates A rounds to 1. docs/proofs/subsampling.md has the error
// bounds.
type poissonCurve struct {
	poissonGaussian
	// whole asks for nothing but moments of whole orders, which exact noise has in
	// common with the continuous normal, and for chords between them.
	whole bool
	grid  ratioGrid
}

// maxSeries bounds the work for one order; past it the bound without sampling
// is used, which is valid because mixing cannot raise the divergence.
const maxSeries = 1 << 17

func (c *poissonCurve) RDP(order float64) float64 {
	switch {
	case c.rate == 0:
		return 0
	case math.IsInf(order, 1):
		return math.Inf(1)
	}
	whole := gaussian{c.noise}.rho() * order
	if c.rate == 1 || order > maxSeries || math.IsInf(whole, 1) {
		return whole
	}
	return atLeastSmallest(math.Min(whole, c.logMoment(order)/(order-1)))
}

// logMoment is log A, rounded up.
func (c *poissonCurve) logMoment(order float64) float64 {
	if order == math.Floor(order) {
		return c.logMomentInteger(order)
	}
	if !c.whole {
		if log, ok := c.logMomentFractional(order); ok {
			return log
		}
	}
	// log A is convex in the order, so the chord between integers is above it.
	low := math.Floor(order)
	return (low+1-order)*c.logMomentInteger(low) + (order-low)*c.logMomentInteger(low+1)
}

// logMomentInteger sums the binomial series: A - 1 = sum over k of
// Binomial(order, q)(k) * (e^((k^2-k)/(2 s^2)) - 1), all terms positive.
func (c *poissonCurve) logMomentInteger(order float64) float64 {
	if order == 1 {
		return 0
	}
	half := gaussian{c.noise}.rho() // 1/(2 s^2)
	logQ, logP := math.Log(c.rate), math.Log1p(-c.rate)
	n := int(order)
	var total logSum
	for k := 2; k <= n; k++ {
		x := float64(k) * float64(k-1) * half
		logExp := x
		if x < 40 {
			logExp = math.Log(atLeastSmallest(math.Expm1(x)))
		}
		total.add(logBinomial(n, k) + float64(k)*logQ + float64(n-k)*logP + logExp)
	}
	return roundUp(log1pExp(total.log()))
}

// logSum adds numbers given by their logarithms.
type logSum struct{ top, rest float64 }

func (s *logSum) add(log float64) {
	switch {
	case s.rest == 0:
		s.top, s.rest = log, 1
	case log > s.top:
		s.rest = s.rest*math.Exp(s.top-log) + 1
		s.top = log
	default:
		s.rest += math.Exp(log - s.top)
	}
}

func (s *logSum) log() float64 {
	if s.rest == 0 {
		return math.Inf(-1)
	}
	return s.top + math.Log(s.rest)
}

// log1pExp is log(1 + e^x), accurate for e^x far below and far above 1.
func log1pExp(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

// logFactorials holds log(n!) for the orders that come up.
var logFactorials = func() []float64 {
	table := make([]float64, 4097)
	for n := range table {
		table[n], _ = math.Lgamma(float64(n) + 1)
	}
	return table
}()

func logFactorial(n int) float64 {
	if n < len(logFactorials) {
		return logFactorials[n]
	}
	log, _ := math.Lgamma(float64(n) + 1)
	return log
}

func logBinomial(n, k int) float64 {
	return logFactorial(n) - logFactorial(k) - logFactorial(n-k)
}
