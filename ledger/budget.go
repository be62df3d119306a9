package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// filter says whether a release still fits; package account has some.
type filter interface {
	Check(event.Release) error
	Spend(event.Release) error
	Used() float64
}

// newFilter is the filter that keeps a ceiling.
func newFilter(c Ceiling) (filter, error) {
	c, err := c.resolve()
	if err != nil {
		return nil, err
	}
	switch {
	case c.Claim == event.ClaimNone:
		return unbounded{}, nil
	case c.Relation == event.Metric:
		return &metricFilter{ceiling: c}, nil
	case c.Filter == FilterRenyi:
		return account.NewRenyiFilter(c.Terms().Terms, float64(c.Epsilon), float64(c.Delta), c.Orders...)
	case c.Filter == FilterZCDP && len(c.Orders) == 0:
		return account.NewZCDPFilter(c.Terms().Terms, float64(c.Epsilon), float64(c.Delta))
	}
	return nil, fmt.Errorf("the filter is %q with orders %v; allowed: %s, or %s without orders", c.Filter, c.Orders, FilterRenyi, FilterZCDP)
}

// budget is a ceiling and what is spent of it.
type budget struct {
	ceiling Ceiling
	filter  filter
	amended bool // changed after something was released under it
	implied bool // follows from a ceiling that did not say who adds the noise
	over    bool // what was released does not fit: nothing more is
}

func newBudget(c Ceiling) (*budget, error) {
	f, err := newFilter(c)
	if err != nil {
		return nil, fmt.Errorf("ceiling for %s: %w", describe(c.Terms()), err)
	}
	return &budget{ceiling: c, filter: f}, nil
}

// check says whether a release fits; it changes nothing.
func (b *budget) check(r event.Release) error {
	if b.over {
		return fmt.Errorf("%w: what was released already does not fit the ceiling of %v for %s; coterie ledger show tells what it comes to, coterie ledger amend changes the ceiling", ErrRefused, b.ceiling, describe(b.ceiling.Terms()))
	}
	err := b.filter.Check(r)
	var short *account.BudgetError
	if errors.As(err, &short) {
		short.Needed = cmp.Or(b.ceilingFor(r), short.Needed)
	}
	if errors.Is(err, account.ErrBudget) {
		return fmt.Errorf("%w: %s: %w", ErrRefused, describe(b.ceiling.Terms()), err)
	}
	return err
}

// ceilingFor is a ceiling under which all that was released and r would fit, close to
// the least: a changed one fixes orders of its own. 0: the filter's own word stands.
func (b *budget) ceilingFor(r event.Release) float64 {
	f, ok := b.filter.(*account.RenyiFilter)
	now, err := defaultOrders(float64(b.ceiling.Epsilon), float64(b.ceiling.Delta))
	if !ok || err != nil || len(b.ceiling.Orders) > 0 && !slices.Equal(b.ceiling.Orders, now) {
		return 0
	}
	fits := func(epsilon float64) bool {
		orders, err := defaultOrders(epsilon, float64(b.ceiling.Delta))
		return err == nil && f.FitsUnder(epsilon, orders, r)
	}
	low, high := float64(b.ceiling.Epsilon), float64(b.ceiling.Epsilon)
	for !fits(high) {
		if low, high = high, high*1.2; high > mostCeiling {
			return 0 // nothing bounds it
		}
	}
	for high > low*(1+1e-5) {
		if middle := (low + high) / 2; fits(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// mostCeiling is beyond what is worth naming: it promises nothing.
const mostCeiling = 1e5

// spend records a release that was made or will be. It cannot be refused any more.
func (b *budget) spend(r event.Release) error {
	err := b.filter.Spend(r)
	if errors.Is(err, account.ErrBudget) {
		b.over = true
		return nil
	}
	return err
}

// used is the share of the ceiling that is spent.
func (b *budget) used() float64 {
	if b.over {
		return 1
	}
	return b.filter.Used()
}

// unbounded lets everything pass: the policy named releases without protection.
type unbounded struct{}

func (unbounded) Check(event.Release) error { return nil }
func (unbounded) Spend(event.Release) error { return nil }
func (unbounded) Used() float64             { return 0 }
