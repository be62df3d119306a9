package account

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// ZCDP adds up releases by their zero-concentrated rho (Bun and Steinke 2016). It
// takes no sampled releases: sampling has no useful zCDP bound.
type ZCDP struct {
	account
	conversion Conversion
}

// NewZCDP starts an empty account on these terms.
func NewZCDP(t Terms, c Conversion) (*ZCDP, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	return &ZCDP{account{terms: t}, c}, nil
}

// Compose adds a release, or refuses it and changes nothing.
func (z *ZCDP) Compose(r event.Release) error {
	costs, err := z.weigh(r)
	if err != nil {
		return err
	}
	if _, err := totalRho(costs); err != nil {
		return err
	}
	z.record(r, costs)
	return nil
}

// Rho is what was spent so far.
func (z *ZCDP) Rho() float64 {
	rho, _ := totalRho(z.costs) // Compose let nothing else in
	return rho
}

// Guarantee is epsilon at delta; infinite at delta 0 unless nothing was released.
func (z *ZCDP) Guarantee(delta float64) (Guarantee, error) {
	if err := checkDelta(delta); err != nil {
		return Guarantee{}, err
	}
	epsilon, order := rhoEpsilon(z.Rho(), delta, z.conversion)
	return z.guarantee(epsilon, delta, order, "zcdp"), nil
}

// rhoEpsilon converts rho; the classical form is Bun and Steinke's proposition
// 1.3, the improved one equation 1.4 of paper 002 at its best order.
func rhoEpsilon(rho, delta float64, c Conversion) (epsilon, order float64) {
	switch {
	case rho == 0:
		return 0, 0
	case delta == 0 || math.IsInf(rho, 1):
		return math.Inf(1), 0
	case c == Classical:
		return rho + 2*math.Sqrt(-rho*math.Log(delta)), 1 + math.Sqrt(-math.Log(delta)/rho)
	}
	order, epsilon = bestOrder(nil, func(a float64) float64 { return c.epsilon(a, rho*a, delta) })
	return epsilon, order
}

// totalRho adds up rho, or names the mechanism that has none.
func totalRho(costs []counted) (float64, error) {
	total := 0.0
	for _, c := range costs {
		var rho float64
		switch m := c.of.(type) {
		case gaussian:
			rho = m.rho()
		case discreteGaussian:
			rho = m.rho()
		case selection:
			rho = m.rho
		case laplace:
			rho = atLeastSmallest(m.epsilon * m.epsilon / 2)
		case unprotected:
			rho = math.Inf(1)
		default:
			return 0, fmt.Errorf("%w: sampled, node-level and tuned releases have no zCDP; use the RDP accountant", ErrUnsupported)
		}
		total += c.times * rho
	}
	return total, nil
}
