package account

import (
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// flattenTuning charges the best of several runs. The number of runs is random
// and secret, and the score is part of what the runs released (DESIGN, erratum 16).
func flattenTuning(e event.Tuning, t Terms, times float64) ([]counted, error) {
	if e.Distribution == event.NaiveTrials {
		return flatten(e.Of, t, times*float64(e.Trials))
	}
	base, err := flatten(e.Of, t, 1)
	if err != nil {
		return nil, err
	}
	if len(base) == 0 {
		return nil, nil
	}
	m := &tuned{base: base, poisson: e.Distribution == event.PoissonTrials, eta: e.Eta}
	switch {
	case m.poisson:
		m.logMean = math.Log(e.Mean)
	case e.Gamma != 0:
		m.depth = depthOf(e.Gamma)
		m.logMean = logTrials(e.Eta, m.depth)
	default:
		m.depth = trialsDepth(e.Eta, e.Mean)
		m.logMean = math.Log(e.Mean)
		if m.depth > 0 {
			m.logMean = math.Max(m.logMean, logTrials(e.Eta, m.depth))
		}
	}
	return one(m, times), nil
}

// tuned is compared by identity: two tunings are two costs. Depth is ln(1/gamma): near
// eta = -1 gamma itself is far below what a float64 can be.
type tuned struct {
	base                []counted
	poisson             bool
	eta, depth, logMean float64
}

func (*tuned) comparableMechanism() {}

func (m *tuned) curve(orders []float64) Curve {
	base := make(sum, len(m.base))
	for i, c := range m.base {
		base[i] = scaled{c.of.curve(orders), c.times}
	}
	c := &tunedCurve{tuned: m, base: base, orders: orders}
	if m.poisson {
		_, c.variation = bestOrder(orders, func(a float64) float64 { return totalVariation(base.RDP(a)) })
	} else {
		// Theorem 2's second order is free, infinity included: take the best one once.
		_, least := bestOrder(orders, func(b float64) float64 {
			return (1-1/b)*base.RDP(b) + m.depth/b
		})
		c.constant = (1 + m.eta) * math.Min(least, base.RDP(math.Inf(1)))
	}
	// A Rényi divergence rises with its order, so below the order at which the
	// bound is least that least value holds as well.
	c.lowOrder, c.lowest = bestOrder(orders, c.bound)
	return c
}

// tunedCurve is Papernot and Steinke 2022: theorem 2 for the truncated negative
// binomial (eta > -1), theorem 6 for Poisson.
type tunedCurve struct {
	*tuned
	base             Curve
	orders           []float64
	constant         float64 // negative binomial
	variation        float64 // Poisson: bounds the total variation
	lowOrder, lowest float64
}

func (c *tunedCurve) RDP(order float64) float64 {
	value := c.bound(order)
	if order <= c.lowOrder {
		value = math.Min(value, c.lowest)
	}
	return value
}

func (c *tunedCurve) bound(order float64) float64 {
	base := c.base.RDP(order)
	if math.IsInf(base, 1) {
		return base
	}
	repeats := 0.0
	if !math.IsInf(order, 1) {
		repeats = c.logMean / (order - 1)
	}
	if !c.poisson {
		return base + c.constant + repeats
	}
	if math.IsInf(order, 1) {
		return math.Inf(1) // theorem 6 would need delta at epsilon 0
	}
	epsilon := math.Log1p(1 / (order - 1))
	_, log := bestOrder(c.orders, func(a float64) float64 { return logDelta(a, c.base.RDP(a), epsilon) })
	return base + math.Min(math.Exp(c.logMean+log), math.Exp(c.logMean)*c.variation) + repeats
}

// logTrials is the logarithm of the mean number of trials of the distribution truncated
// to at least one, eta (1-gamma)/(gamma (1-gamma^eta)), with depth = ln(1/gamma).
func logTrials(eta, depth float64) float64 {
	x := eta * depth
	switch {
	case math.Abs(x) < 1e-5: // (1 - e^-x)/eta = depth (1 - x/2 + ...)
		return depth + math.Log(-math.Expm1(-depth)/depth) - math.Log1p(-x/2+x*x/6)
	case x < 0: // e^-x is taken out of 1 - e^-x, so that nothing overflows
		return (1+eta)*depth + math.Log(-eta*math.Expm1(-depth)/math.Expm1(x))
	}
	return depth + math.Log(eta*math.Expm1(-depth)/math.Expm1(-x))
}

// trialsDepth is ln(1/gamma) of the gamma whose mean is the one given, from above: a
// smaller gamma costs more.
func trialsDepth(eta, mean float64) float64 {
	if mean == 1 {
		return 0 // one trial
	}
	want := math.Log(mean)
	low, high := 0.0, 1.0
	for logTrials(eta, high) < want { // it rises without end, at least as (1+eta) depth
		low, high = high, 2*high
	}
	for middle := low + (high-low)/2; low < middle && middle < high; middle = low + (high-low)/2 {
		if logTrials(eta, middle) < want {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// depthOf is ln(1/gamma); math.Log is wrong where gamma is subnormal.
func depthOf(gamma float64) float64 {
	fraction, exponent := math.Frexp(gamma)
	return -math.Log(fraction) - float64(exponent)*math.Ln2
}
