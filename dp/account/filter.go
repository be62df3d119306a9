package account

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// A filter answers the question "may I still?" for a budget that holds even if every
// release is chosen after the earlier ones were seen.

// RenyiFilter keeps (epsilon, delta) by keeping the sum of Rényi divergences at a
// fixed order within a fixed budget (Feldman and Zrnic 2021). With several orders
// it goes on while one of them has budget left; the order that ends it is then a
// choice made after the fact, and delta is split over the orders to pay for it
// (docs/proofs/filters.md).
type RenyiFilter struct {
	account
	epsilon, delta float64
	orders         []orderBudget
	curves         map[mechanism]Curve
}

type orderBudget struct{ order, budget, spent float64 }

// NewRenyiFilter starts a filter; orders are fixed from the start.
func NewRenyiFilter(t Terms, epsilon, delta float64, orders ...float64) (*RenyiFilter, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	if err := checkBudget(epsilon, delta); err != nil {
		return nil, err
	}
	if len(orders) == 0 {
		return nil, parameter("orders", orders, "at least one; FilterOrder finds a good one")
	}
	if err := checkOrders(orders); err != nil {
		return nil, err
	}
	// What a filter lets pass is released, and releases have exact noise.
	f := &RenyiFilter{account: account{terms: t, exact: true}, epsilon: epsilon, delta: delta, curves: map[mechanism]Curve{}}
	for _, a := range orders {
		if budget := renyiBudget(a, epsilon, delta/float64(len(orders))); budget > 0 {
			f.orders = append(f.orders, orderBudget{order: a, budget: budget})
		}
	}
	if len(f.orders) == 0 {
		return nil, fmt.Errorf("%w: no order of %v leaves a budget at epsilon %v, delta %v; take higher orders", ErrUnreachable, orders, epsilon, delta)
	}
	return f, nil
}

// renyiBudget is the largest divergence at an order that still converts to
// epsilon at delta.
func renyiBudget(order, epsilon, delta float64) float64 {
	if math.IsInf(order, 1) {
		return epsilon
	}
	return epsilon - math.Log1p(-1/order) + (math.Log(delta)+math.Log(order))/(order-1)
}

// FilterOrder is the order at which a planned curve uses up the smallest share of
// the budget: a good one to fix for a filter. Above 2 it is a whole one, where sampled
// releases with exact noise are bounded best.
func FilterOrder(planned Curve, epsilon, delta float64) (float64, error) {
	if err := checkBudget(epsilon, delta); err != nil {
		return 0, err
	}
	share := func(a float64) float64 {
		budget := renyiBudget(a, epsilon, delta)
		if budget <= 0 {
			return math.Inf(1)
		}
		return planned.RDP(a) / budget
	}
	order, least := bestOrder(nil, share)
	if math.IsInf(least, 1) {
		return 0, fmt.Errorf("%w: no order leaves a budget at epsilon %v, delta %v", ErrUnreachable, epsilon, delta)
	}
	if order > 2 {
		order, _ = bestOrder([]float64{math.Floor(order), math.Ceil(order)}, share)
	}
	return order, nil
}

func checkBudget(epsilon, delta float64) error {
	if !(epsilon > 0) || math.IsInf(epsilon, 1) {
		return parameter("epsilon", epsilon, "a finite number > 0")
	}
	if !(delta > 0 && delta < 1) {
		return parameter("delta", delta, "0 < delta < 1")
	}
	return nil
}

// price is what a release costs at every order.
func (f *RenyiFilter) price(r event.Release) ([]float64, []counted, error) {
	costs, err := f.weigh(r)
	if err != nil {
		return nil, nil, err
	}
	prices := make([]float64, len(f.orders))
	for _, c := range costs {
		curve, ok := f.curves[c.of]
		if !ok {
			curve = c.of.curve(nil)
			f.curves[c.of] = curve
		}
		for i, o := range f.orders {
			prices[i] += c.times * curve.RDP(o.order)
		}
	}
	return prices, costs, nil
}

func (f *RenyiFilter) fits(prices []float64) error {
	for i, o := range f.orders {
		if o.spent+prices[i] <= o.budget {
			return nil
		}
	}
	return fmt.Errorf("%w: epsilon %v at delta %v, of which %.1f %% are used", ErrBudget, f.epsilon, f.delta, 100*f.Used())
}

// Check says whether a release fits, without spending.
func (f *RenyiFilter) Check(r event.Release) error {
	prices, _, err := f.price(r)
	if err != nil {
		return err
	}
	return f.fits(prices)
}

// Spend records a release, or refuses it and changes nothing.
func (f *RenyiFilter) Spend(r event.Release) error {
	prices, costs, err := f.price(r)
	if err != nil {
		return err
	}
	if err := f.fits(prices); err != nil {
		return err
	}
	for i := range f.orders {
		// Sums are rounded up, so that many small spends cannot slip under the budget.
		f.orders[i].spent = math.Nextafter(f.orders[i].spent+prices[i], math.Inf(1))
	}
	f.record(r, costs)
	return nil
}

// Guarantee is the promise: it holds at every moment.
func (f *RenyiFilter) Guarantee() Guarantee {
	return f.guarantee(f.epsilon, f.delta, f.orders[0].order, "renyi filter")
}

// Used is the spent share of the budget at the order that has most left.
func (f *RenyiFilter) Used() float64 {
	least := math.Inf(1)
	for _, o := range f.orders {
		least = math.Min(least, o.spent/o.budget)
	}
	return least
}

// ZCDPFilter keeps (epsilon, delta) by keeping the sum of rho within a budget
// (Whitehouse, Ramdas, Rogers and Wu 2023; Feldman and Zrnic 2021 at all orders at
// once).
type ZCDPFilter struct {
	spent          ZCDP
	epsilon, delta float64
	budget         float64
}

// NewZCDPFilter starts a filter on these terms.
func NewZCDPFilter(t Terms, epsilon, delta float64) (*ZCDPFilter, error) {
	spent, err := NewZCDP(t, Improved)
	if err != nil {
		return nil, err
	}
	if err := checkBudget(epsilon, delta); err != nil {
		return nil, err
	}
	low, high := -300*math.Ln10, math.Log(epsilon)+1 // rho is never above epsilon
	for range 100 {
		middle := low + (high-low)/2
		if e, _ := rhoEpsilon(math.Exp(middle), delta, Improved); e <= epsilon {
			low = middle
		} else {
			high = middle
		}
	}
	return &ZCDPFilter{*spent, epsilon, delta, math.Exp(low) * (1 - 1e-12)}, nil
}

// price lists a release's costs, if they fit.
func (f *ZCDPFilter) price(r event.Release) ([]counted, error) {
	costs, err := f.spent.weigh(r)
	if err != nil {
		return nil, err
	}
	rho, err := totalRho(costs)
	if err == nil && f.spent.Rho()+rho > f.budget {
		err = fmt.Errorf("%w: rho %v of %v are spent, the release costs %v", ErrBudget, f.spent.Rho(), f.budget, rho)
	}
	return costs, err
}

// Check says whether a release fits, without spending.
func (f *ZCDPFilter) Check(r event.Release) error {
	_, err := f.price(r)
	return err
}

// Spend records a release, or refuses it and changes nothing.
func (f *ZCDPFilter) Spend(r event.Release) error {
	costs, err := f.price(r)
	if err != nil {
		return err
	}
	f.spent.record(r, costs)
	return nil
}

// Guarantee is the promise: it holds at every moment.
func (f *ZCDPFilter) Guarantee() Guarantee {
	return f.spent.guarantee(f.epsilon, f.delta, 0, "zcdp filter")
}

// Used is the spent share of the budget.
func (f *ZCDPFilter) Used() float64 { return f.spent.Rho() / f.budget }
