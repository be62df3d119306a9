package account

import (
	"fmt"
	"math"
	"slices"

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
	return checkPositiveDelta(delta)
}

// cached are the curves of releases, which come again and again.
func (f *RenyiFilter) cached(m mechanism) Curve {
	curve, ok := f.curves[m]
	if !ok {
		curve = m.curve(nil)
		f.curves[m] = curve
	}
	return curve
}

// uncached are those of releases that nobody will make.
func (f *RenyiFilter) uncached(m mechanism) Curve { return m.curve(nil) }

// price is what a release costs at every order.
func (f *RenyiFilter) price(r event.Release, of func(mechanism) Curve) ([]float64, []counted, error) {
	costs, err := f.weigh(r)
	if err != nil {
		return nil, nil, err
	}
	prices := make([]float64, len(f.orders))
	for _, c := range costs {
		curve := of(c.of)
		for i, o := range f.orders {
			prices[i] += c.times * curve.RDP(o.order)
		}
	}
	return prices, costs, nil
}

func (f *RenyiFilter) fits(prices []float64) bool {
	for i, o := range f.orders {
		if o.spent+prices[i] <= o.budget {
			return true
		}
	}
	return false
}

// needs is the least epsilon at which the filter would have let pass what it has, and
// prices beside.
func (f *RenyiFilter) needs(prices []float64) float64 {
	least := math.Inf(1)
	for i, o := range f.orders {
		total := o.spent + prices[i]
		if total == 0 {
			return 0
		}
		least = math.Min(least, f.epsilon+total-o.budget) // budgets are epsilon and a constant
	}
	return math.Max(0, least)
}

// Epsilon is what was let pass so far, by the filter: never below what an accountant
// finds that may choose its order afterwards.
func (f *RenyiFilter) Epsilon() float64 { return f.needs(make([]float64, len(f.orders))) }

// refusal says by how much prices are too much. With remedies it looks for what would
// do, which takes a while.
func (f *RenyiFilter) refusal(r event.Release, prices []float64, remedies bool) error {
	var fits func(event.Release) bool
	if remedies {
		fits = func(other event.Release) bool {
			prices, _, err := f.price(other, f.uncached)
			return err == nil && f.fits(prices)
		}
	}
	refused := &BudgetError{Epsilon: f.epsilon, Delta: f.delta, Needed: f.needs(prices), Spent: f.Epsilon(), Filter: "Rényi"}
	return refused.withRemedy(r, fits)
}

// FitsUnder says whether a filter with another epsilon and other orders would have let
// pass what this one has, and one release more.
func (f *RenyiFilter) FitsUnder(epsilon float64, orders []float64, r event.Release) bool {
	more, err := f.weigh(r)
	if err != nil {
		return false
	}
	for _, a := range orders {
		var total float64
		for _, c := range slices.Concat(f.costs, more) {
			total += c.times * f.uncached(c.of).RDP(a)
		}
		if total*(1+1e-9) <= renyiBudget(a, epsilon, f.delta/float64(len(orders))) {
			return true
		}
	}
	return false
}

// Check says whether a release fits, without spending, and if not, what would do.
func (f *RenyiFilter) Check(r event.Release) error {
	prices, _, err := f.price(r, f.cached)
	if err == nil && !f.fits(prices) {
		err = f.refusal(r, prices, true)
	}
	return err
}

// Spend records a release, or refuses it and changes nothing.
func (f *RenyiFilter) Spend(r event.Release) error {
	prices, costs, err := f.price(r, f.cached)
	if err != nil {
		return err
	}
	if !f.fits(prices) {
		return f.refusal(r, prices, false)
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
	m := f.Meter()
	return m.Spent / m.Budget
}

// Meter is what a filter adds up, and how far that has come. It grows by the same amount
// with every equal release, which epsilon does not.
type Meter struct {
	Spent, Budget float64
	Order         float64 // of the Rényi divergence that is added up; 0: it is rho
}

// Meter reads the order that has most left.
func (f *RenyiFilter) Meter() Meter {
	best := f.orders[0]
	for _, o := range f.orders[1:] {
		if o.spent/o.budget < best.spent/best.budget {
			best = o
		}
	}
	return Meter{best.spent, best.budget, best.order}
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

// price lists a release's costs, if they fit; with remedies a refusal says what would do.
func (f *ZCDPFilter) price(r event.Release, remedies bool) ([]counted, error) {
	costs, rho, err := f.total(r)
	if err != nil || rho <= f.budget {
		return costs, err
	}
	var fits func(event.Release) bool
	if remedies {
		fits = func(other event.Release) bool {
			_, rho, err := f.total(other)
			return err == nil && rho <= f.budget
		}
	}
	needed, _ := rhoEpsilon(rho, f.delta, Improved)
	refused := &BudgetError{Epsilon: f.epsilon, Delta: f.delta, Needed: needed, Spent: f.Epsilon(), Filter: "zCDP"}
	return nil, refused.withRemedy(r, fits)
}

// total is rho with one release more, and what that costs.
func (f *ZCDPFilter) total(r event.Release) (costs []counted, rho float64, err error) {
	if costs, err = f.spent.weigh(r); err == nil {
		rho, err = totalRho(costs)
	}
	return costs, f.spent.Rho() + rho, err
}

// Epsilon is what was let pass so far.
func (f *ZCDPFilter) Epsilon() float64 {
	epsilon, _ := rhoEpsilon(f.spent.Rho(), f.delta, Improved)
	return epsilon
}

// Check says whether a release fits, without spending, and if not, what would do.
func (f *ZCDPFilter) Check(r event.Release) error {
	_, err := f.price(r, true)
	return err
}

// Spend records a release, or refuses it and changes nothing.
func (f *ZCDPFilter) Spend(r event.Release) error {
	costs, err := f.price(r, false)
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

// Meter reads rho.
func (f *ZCDPFilter) Meter() Meter { return Meter{Spent: f.spent.Rho(), Budget: f.budget} }
