package account

import (
	"fmt"
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
	m := &tuned{base: base, poisson: e.Distribution == event.PoissonTrials, eta: e.Eta, gamma: e.Gamma, mean: e.Mean}
	if !m.poisson && e.Gamma == 0 {
		m.gamma = negativeBinomialGamma(e.Eta, e.Mean)
	}
	if !m.poisson {
		m.mean = math.Max(e.Mean, negativeBinomialMean(e.Eta, m.gamma))
	}
	if !(m.mean < math.Inf(1)) || !m.poisson && !(m.gamma > 0) {
		return nil, fmt.Errorf("%w: eta = %v, gamma = %v, mean = %v leave the range of float64", ErrParameter, e.Eta, e.Gamma, e.Mean)
	}
	return one(m, times), nil
}

// tuned is compared by identity: two tunings are two costs.
type tuned struct {
	base             []counted
	poisson          bool
	eta, gamma, mean float64
}

func (*tuned) comparableMechanism() {}

func (m *tuned) curve(orders []float64) Curve {
	base := make(sum, len(m.base))
	for i, c := range m.base {
		base[i] = scaled{c.of.curve(orders), c.times}
	}
	c := &tunedCurve{tuned: m, base: base, orders: orders}
	if !m.poisson {
		// Theorem 2's second order is free, infinity included: take the best one once.
		_, least := bestOrder(orders, func(b float64) float64 {
			return (1-1/b)*base.RDP(b) - math.Log(m.gamma)/b
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
	constant         float64
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
		repeats = math.Log(c.mean) / (order - 1)
	}
	if !c.poisson {
		return base + c.constant + repeats
	}
	if math.IsInf(order, 1) {
		return math.Inf(1) // theorem 6 would need delta at epsilon 0
	}
	_, delta := bestOrder(c.orders, func(a float64) float64 {
		return Improved.delta(a, c.base.RDP(a), math.Log1p(1/(order-1)))
	})
	return base + c.mean*delta + repeats
}

// negativeBinomialMean is the mean number of trials of the distribution truncated
// to at least one: eta (1-gamma)/(gamma (1-gamma^eta)), and its limit at eta = 0.
func negativeBinomialMean(eta, gamma float64) float64 {
	log := math.Log(gamma)
	if x := eta * log; math.Abs(x) > 1e-5 {
		return -eta * (1 - gamma) / (gamma * math.Expm1(x))
	}
	// (1 - gamma^eta)/eta = -log(gamma) (1 + x/2 + ...) with x = eta*log(gamma).
	x := eta * log
	return (1 - gamma) / (gamma * -log * (1 + x/2 + x*x/6))
}

// negativeBinomialGamma is the gamma whose mean is the one given, from below: a
// smaller gamma costs more.
func negativeBinomialGamma(eta, mean float64) float64 {
	if mean == 1 {
		return math.Nextafter(1, 0) // one trial
	}
	low, high := math.Log(math.SmallestNonzeroFloat64), 0.0
	for range 200 {
		middle := (low + high) / 2
		if negativeBinomialMean(eta, math.Exp(middle)) > mean {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(low)
}
