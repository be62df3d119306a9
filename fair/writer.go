package fair

import (
	"fmt"
	"math"
	"strings"
)

// The sorts of rows that rates divide by.
const (
	anyRow = iota
	positiveRow
	negativeRow
	sortCount
)

var sorts = [sortCount]struct {
	name string
	in   func(confusion []float64) bool
}{
	anyRow:      {"rows", func([]float64) bool { return true }},
	positiveRow: {"positive rows", func(c []float64) bool { return c[truePositive]+c[falseNegative] > 0 }},
	negativeRow: {"negative rows", func(c []float64) bool { return c[falsePositive]+c[trueNegative] > 0 }},
}

// basis is what a figure rests on: units that have rows of a sort.
type basis struct {
	where string
	sort  int
	units int
}

// writer turns figures into estimates that say why something is missing.
type writer struct {
	layout
	names     []string
	value     []float64
	support   [sortCount]support
	resampled *resampled // nil: no intervals
}

func (w *writer) within(g, sort int) basis {
	return basis{fmt.Sprintf("in group %q", w.names[g]), sort, w.support[sort].within[g]}
}

func (w *writer) outside(g, sort int) basis {
	return basis{fmt.Sprintf("outside group %q", w.names[g]), sort, w.support[sort].outside[g]}
}

func (w *writer) everywhere(sort int) basis {
	return basis{"in any group", sort, w.support[sort].all}
}

func (w *writer) group(g int) Group {
	at := w.layout.group(g)
	line := w.rates(at, func(sort int) basis { return w.within(g, sort) })
	line.Units = w.support[anyRow].within[g]
	gap := func(figure, sort int) Estimate {
		return w.estimate(at+figure, w.within(g, sort), w.outside(g, sort))
	}
	line.VersusRest = &Gaps{
		SelectionRate:     gap(selectionGap, anyRow),
		TruePositiveRate:  gap(truePositiveGap, positiveRow),
		FalsePositiveRate: gap(falsePositiveGap, negativeRow),
	}
	return line
}

func (w *writer) overall() Group {
	line := w.rates(w.layout.overall(), w.everywhere)
	line.Name, line.Units = "all", w.support[anyRow].all
	return line
}

func (w *writer) rates(at int, of func(sort int) basis) Group {
	return Group{
		BaseRate:          w.estimate(at+baseRate, of(anyRow)),
		SelectionRate:     w.estimate(at+selectionRate, of(anyRow)),
		TruePositiveRate:  w.estimate(at+truePositiveRate, of(positiveRow)),
		FalsePositiveRate: w.estimate(at+falsePositiveRate, of(negativeRow)),
		Accuracy:          w.estimate(at+accuracy, of(anyRow)),
	}
}

func (w *writer) metrics() (m Metrics) {
	compared := [metricCount][]int{
		parityDifference: {anyRow}, parityRatio: {anyRow},
		opportunityDifference: {positiveRow}, opportunityRatio: {positiveRow},
		oddsDifference: {positiveRow, negativeRow}, oddsRatio: {positiveRow, negativeRow},
	}
	for i, field := range m.fields() {
		var on []basis
		for _, sort := range compared[i] {
			for g := range w.names {
				on = append(on, w.within(g, sort))
			}
		}
		*field = w.estimate(w.layout.metrics()+i, on...)
	}
	return m
}

// estimate writes a figure that rests on all that is named.
func (w *writer) estimate(figure int, on ...basis) (e Estimate) {
	value := w.value[figure]
	e.Value = number(value)
	if math.IsNaN(value) {
		e.Why = whyUndefined(len(w.names), on)
		return e
	}
	e.fillInterval(w.resampled, figure, on)
	return e
}

func whyUndefined(groups int, on []basis) string {
	var missing []string
	for _, b := range on {
		if b.units == 0 {
			missing = append(missing, fmt.Sprintf("no %s %s", sorts[b.sort].name, b.where))
		}
	}
	switch {
	case groups < 2 && len(missing) == 0:
		return "there is only one group"
	case len(missing) == 0:
		return "0 divided by 0: a rate is 0 in every group"
	}
	return strings.Join(missing, "; ")
}

// fillInterval adds the interval, or says why there is none. A figure that rests
// on a single unit has none: the resamples would all agree.
func (e *Estimate) fillInterval(r *resampled, figure int, on []basis) {
	if r == nil {
		return
	}
	for _, b := range on {
		if b.units < 2 {
			e.Why = fmt.Sprintf("no interval: only one unit has %s %s", sorts[b.sort].name, b.where)
			return
		}
	}
	low, high, undefined, ok := r.interval(figure)
	e.UndefinedResamples = undefined
	if !ok {
		e.Why = fmt.Sprintf("no interval: undefined in %d of %d resamples", undefined, r.Resamples)
		return
	}
	e.Low, e.High = &low, &high
}
