package account

import (
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
)

// RDP adds up releases by their Rényi curves. It is not for concurrent use.
type RDP struct {
	account
	orders []float64
	curves map[mechanism]Curve
}

// Option changes how an accountant computes, never what it accounts for.
type Option func(*RDP)

// WithOrders fixes the Rényi orders; without it the best order is searched for.
func WithOrders(orders ...float64) Option {
	return func(r *RDP) { r.orders = slices.Clone(orders) }
}

// WithExactNoise accounts for noise that is drawn exactly on a lattice, as dp/mech
// draws it for real releases: sampled Gaussians are then bounded at whole orders, and
// by chords in between (docs/proofs/gaussian.md).
func WithExactNoise() Option { return func(r *RDP) { r.exact = true } }

// NewRDP starts an empty account on these terms.
func NewRDP(t Terms, options ...Option) (*RDP, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	r := &RDP{account: account{terms: t}, curves: map[mechanism]Curve{}}
	for _, o := range options {
		o(r)
	}
	return r, checkOrders(r.orders)
}

// Compose adds a release, or refuses it and changes nothing.
func (r *RDP) Compose(release event.Release) error {
	costs, err := r.weigh(release)
	if err != nil {
		return err
	}
	r.record(release, costs)
	return nil
}

// Curve is the account's Rényi curve so far.
func (r *RDP) Curve() Curve {
	parts := make(sum, 0, len(r.costs))
	for _, c := range r.costs {
		curve, ok := r.curves[c.of]
		if !ok {
			curve = c.of.curve(r.orders)
			r.curves[c.of] = curve
		}
		parts = append(parts, scaled{curve, c.times})
	}
	return parts
}

// Guarantee is the least epsilon over the orders at this delta; at delta 0 it is
// the pure epsilon, infinite unless every mechanism has one.
func (r *RDP) Guarantee(delta float64) (Guarantee, error) {
	epsilon, order, err := r.Epsilon(delta)
	if err != nil {
		return Guarantee{}, err
	}
	return r.guarantee(epsilon, delta, order, "rdp"), nil
}

// Epsilon is Guarantee's number alone, and the order it comes from.
func (r *RDP) Epsilon(delta float64) (epsilon, order float64, err error) {
	return CurveEpsilon(r.Curve(), delta, Improved, r.orders...)
}

// CurveEpsilon is the least epsilon at delta that a curve gives, over the orders
// given or, without any, over all; and the order it comes from.
func CurveEpsilon(curve Curve, delta float64, c Conversion, orders ...float64) (epsilon, order float64, err error) {
	if err := checkDelta(delta); err != nil {
		return 0, 0, err
	}
	if err := checkOrders(orders); err != nil {
		return 0, 0, err
	}
	if delta == 0 {
		return curve.RDP(math.Inf(1)), math.Inf(1), nil
	}
	order, epsilon = bestOrder(orders, func(a float64) float64 { return c.epsilon(a, curve.RDP(a), delta) })
	if pure := curve.RDP(math.Inf(1)); len(orders) == 0 && pure <= epsilon {
		epsilon, order = pure, math.Inf(1)
	}
	return epsilon, order, nil
}
