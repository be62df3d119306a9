package ledger

import (
	"errors"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// filter says whether a release still fits; account.Filter is one.
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
		return account.NewRenyiFilter(c.Terms(), float64(c.Epsilon), float64(c.Delta), c.Orders...)
	case c.Filter == FilterZCDP && len(c.Orders) == 0:
		return account.NewZCDPFilter(c.Terms(), float64(c.Epsilon), float64(c.Delta))
	}
	return nil, fmt.Errorf("the filter is %q with orders %v; allowed: %s, or %s without orders", c.Filter, c.Orders, FilterRenyi, FilterZCDP)
}

// budget is a ceiling and what is spent of it.
type budget struct {
	ceiling Ceiling
	filter  filter
	amended bool // changed after something was released under it
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
		return fmt.Errorf("%w: what was released already does not fit the ceiling of epsilon %v, delta %v for %s",
			ErrRefused, b.ceiling.Epsilon, b.ceiling.Delta, describe(b.ceiling.Terms()))
	}
	err := b.filter.Check(r)
	if errors.Is(err, account.ErrBudget) {
		return fmt.Errorf("%w: %s: %w", ErrRefused, describe(b.ceiling.Terms()), err)
	}
	return err
}

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

// metricFilter keeps the losses of d-private releases below a ceiling: at their
// radii, and at a fixed distance if one is given (DESIGN, erratum 7).
type metricFilter struct {
	ceiling Ceiling
	spent   account.Metric
}

func (f *metricFilter) after(r event.Release) (account.Metric, error) {
	next := f.spent
	err := addMetric(&next, r.What, 1)
	return next, err
}

// Check says whether a release fits, but for a rounding error of 1e-12 relative.
func (f *metricFilter) Check(r event.Release) error {
	next, err := f.after(r)
	if err != nil {
		return err
	}
	most := float64(f.ceiling.Epsilon) * (1 + 1e-12)
	if loss := next.Epsilon(); !(loss <= most) {
		return fmt.Errorf("%w: the loss at the radii would be %v, above epsilon %v", account.ErrBudget, loss, f.ceiling.Epsilon)
	}
	if d := float64(f.ceiling.Distance); d > 0 {
		if loss := next.At(d); !(loss <= most) {
			return fmt.Errorf("%w: the loss at distance %v would be %v, above epsilon %v", account.ErrBudget, d, loss, f.ceiling.Epsilon)
		}
	}
	return nil
}

// Spend records a release, or refuses it and changes nothing.
func (f *metricFilter) Spend(r event.Release) error {
	if err := f.Check(r); err != nil {
		return err
	}
	next, err := f.after(r)
	f.spent = next
	return err
}

// Used is the spent share of the ceiling.
func (f *metricFilter) Used() float64 {
	used := f.spent.Epsilon() / float64(f.ceiling.Epsilon)
	if d := float64(f.ceiling.Distance); d > 0 {
		used = math.Max(used, f.spent.At(d)/float64(f.ceiling.Epsilon))
	}
	return used
}

// maxTimes keeps counts exact as floats.
const maxTimes = 1 << 53

// addMetric adds a d-private event, times over.
func addMetric(m *account.Metric, e event.Event, times int64) error {
	switch e := e.(type) {
	case event.MetricLaplace:
		if times == 0 {
			return nil
		}
		m.Add(e)
		more := times - 1
		if m.Same > maxTimes-more || m.Releases > maxTimes-more {
			return fmt.Errorf("%w: more than 2^53 releases", account.ErrParameter)
		}
		m.Same += more
		m.Releases += more
		m.Distance += float64(more) * e.Epsilon()
		m.Slack += float64(more) * e.Slack
		return nil
	case event.Unprotected:
		if times > 0 {
			m.AddUnprotected()
		}
		return nil
	case event.Repeated:
		if e.Times > 0 && times > maxTimes/e.Times {
			return fmt.Errorf("%w: more than 2^53 releases", account.ErrParameter)
		}
		return addMetric(m, e.Of, times*e.Times)
	case event.Composed:
		for _, part := range e.Parts {
			if err := addMetric(m, part, times); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: %T is not d-private", account.ErrUnsupported, e)
}
