package ledger

import (
	"fmt"
	"math"
	"strings"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// metricSpend is what d-private releases have lost: at their radii and at a distance,
// and between any two data sets.
type metricSpend struct {
	account.Metric
	change float64 // sum of event.MetricLaplace.Switch, as far as the spreads are known
	open   float64 // sum of epsilon over releases whose spread is not known
}

// switchLoss is the loss between any two data sets. Releases whose spread was not
// recorded have none that is known, unless the owner states a spread for them.
func (m metricSpend) switchLoss(assumed *event.Number) float64 {
	switch {
	case m.Bare > 0 || m.open > 0 && assumed == nil:
		return math.Inf(1)
	case m.open > 0:
		return m.change + m.open*float64(*assumed)
	}
	return m.change
}

// unrecorded stands for the spread of a release that says nothing of it. No release
// can say so itself: events hold finite numbers.
var unrecorded = math.Inf(1)

// spreadUnrecorded marks a release of before: that it names no spread does not mean
// that there was none.
func spreadUnrecorded(r event.Release) event.Release {
	r.What = eachLaplace(r.What, func(e event.MetricLaplace) event.MetricLaplace {
		e.Spread = unrecorded
		return e
	})
	return r
}

// eachLaplace is an event with change applied to the d-private ones in it.
func eachLaplace(e event.Event, change func(event.MetricLaplace) event.MetricLaplace) event.Event {
	switch e := e.(type) {
	case event.MetricLaplace:
		return change(e)
	case event.Repeated:
		e.Of = eachLaplace(e.Of, change)
		return e
	case event.Composed:
		parts := make([]event.Event, len(e.Parts))
		for i, part := range e.Parts {
			parts[i] = eachLaplace(part, change)
		}
		return event.Composed{Parts: parts}
	}
	return e
}

// metricFilter keeps the losses of d-private releases below a ceiling: at their
// radii, at a fixed distance if one is given (DESIGN, erratum 7), and between any two
// data sets.
type metricFilter struct {
	ceiling Ceiling
	spent   metricSpend
}

func (f *metricFilter) after(r event.Release) (metricSpend, error) {
	next := f.spent
	err := next.add(r.What, 1)
	return next, err
}

// Check says whether a release fits, but for a rounding error of 1e-12 relative. It
// names every number that would do.
func (f *metricFilter) Check(r event.Release) error {
	next, err := f.after(r)
	if err != nil {
		return err
	}
	wrong := f.above(next)
	if len(wrong) == 0 {
		return nil
	}
	return &account.BudgetError{Over: strings.Join(wrong, "; "), Remedy: account.FindRemedy(r, firstReleases(r), func(other event.Release) bool {
		next, err := f.after(other)
		return err == nil && len(f.above(next)) == 0
	})}
}

// above lists the numbers that would be above their ceilings.
func (f *metricFilter) above(next metricSpend) (wrong []string) {
	hold := func(loss, spent float64, most event.Number, format string, args ...any) {
		if !(loss <= float64(most)*(1+1e-12)) {
			wrong = append(wrong, fmt.Sprintf(format, args...)+fmt.Sprintf(" would be %s, above the ceiling of %v; %s are spent", account.Upward(loss), most, account.Upward(spent)))
		}
	}
	hold(next.Epsilon(), f.spent.Epsilon(), f.ceiling.Epsilon, "epsilon, the loss at the radii,")
	if d := float64(f.ceiling.Distance); d > 0 {
		hold(next.At(d), f.spent.At(d), f.ceiling.Epsilon, "epsilon at distance %v", d)
	}
	if f.ceiling.EpsilonSwitch > 0 {
		assumed := f.ceiling.AssumedSpread
		hold(next.switchLoss(assumed), f.spent.switchLoss(assumed), f.ceiling.EpsilonSwitch, "epsilon_switch, the loss between any two data sets,")
	}
	return wrong
}

// firstReleases is how to cut what a plan asks for: to its first rounds, whose prices
// may differ.
func firstReleases(r event.Release) account.Cut {
	blocks := []event.Event{r.What}
	if all, ok := r.What.(event.Composed); ok {
		blocks = all.Parts
	}
	cut := account.Cut{Each: "releases"}
	for _, block := range blocks {
		one, ok := block.(event.Repeated)
		if !ok || cut.Of > maxTimes-one.Times {
			return account.Cut{} // layers of one release
		}
		cut.Of += one.Times
	}
	cut.To = func(times int64) event.Release {
		less, parts := r, []event.Event(nil)
		for _, block := range blocks {
			one := block.(event.Repeated)
			one.Times = min(one.Times, times)
			times -= one.Times
			parts = append(parts, one)
		}
		less.What = event.Composed{Parts: parts}
		return less
	}
	return cut
}

// Spend records a release, or refuses it and changes nothing.
func (f *metricFilter) Spend(r event.Release) error {
	next, err := f.after(r)
	if err != nil {
		return err
	}
	if wrong := f.above(next); len(wrong) > 0 {
		return &account.BudgetError{Over: strings.Join(wrong, "; ")}
	}
	f.spent = next
	return nil
}

// Used is the spent share of the ceiling: of its most used number.
func (f *metricFilter) Used() float64 {
	used := f.spent.Epsilon() / float64(f.ceiling.Epsilon)
	if d := float64(f.ceiling.Distance); d > 0 {
		used = math.Max(used, f.spent.At(d)/float64(f.ceiling.Epsilon))
	}
	if most := float64(f.ceiling.EpsilonSwitch); most > 0 {
		used = math.Max(used, f.spent.switchLoss(f.ceiling.AssumedSpread)/most)
	}
	return used
}

// maxTimes keeps counts exact as floats.
const maxTimes = 1 << 53

// add adds a d-private event, times over.
func (m *metricSpend) add(e event.Event, times int64) error {
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
		if e.Spread == unrecorded {
			m.open += float64(times) * e.Epsilon()
			e.Spread = 0
		}
		m.change += float64(times) * e.Switch()
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
		return m.add(e.Of, times*e.Times)
	case event.Composed:
		for _, part := range e.Parts {
			if err := m.add(part, times); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: %s, which has no radius", account.ErrUnsupported, event.Describe(e))
}
