package study

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
)

// Room for zero beside a log axis.
const (
	zeroPlace = 13 // from the corner to zero
	zeroRoom  = 34 // from the corner to the log axis
)

// mostOwnTicks is how many different x a chart may have to label each of them.
const mostOwnTicks = 9

// axesOf finds axes that hold all points and the finite ends of intervals.
func axesOf(c Chart, traces []trace) (ax, ay chart.Axis) {
	var xs, ys []float64
	for _, t := range traces {
		for _, p := range t.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
			if p.Low != p.High {
				for _, v := range []float64{p.Low, p.High} {
					if hasPlace(v, c.LogY) {
						ys = append(ys, v)
					}
				}
			}
		}
	}
	own := distinct(slices.Clone(xs))
	for _, p := range c.Reach {
		xs, ys = append(xs, p.X), append(ys, p.Y)
	}
	xs = distinct(xs)
	ax = newAxis(xPadded(xs, c), c.LogX, slices.Contains(xs, 0), chart.PlotLeft, chart.PlotRight, 6, kindOf(xs))
	ownTicks(&ax, own)
	uncrowd(&ax)
	ys = distinct(ys)
	ay = newAxis(yPadded(ys, c), c.LogY, slices.Contains(ys, 0), chart.PlotBottom, chart.PlotTop, 5, kindOf(ys))
	return ax, ay
}

func distinct(values []float64) []float64 {
	slices.Sort(values)
	values = slices.Compact(values)
	for i := range values {
		values[i] += 0 // no negative zero
	}
	return slices.Compact(values)
}

// kindOf asks for whole ticks if all values are counts.
func kindOf(values []float64) chart.Kind {
	for _, v := range values {
		if v != math.Trunc(v) || math.Abs(v) > 1e15 {
			return chart.Real
		}
	}
	return chart.Whole
}

// positive is the domain of what a log axis shows.
func positive(values []float64) chart.Domain {
	d := chart.NoDomain()
	for _, v := range values {
		if v > 0 {
			d = d.Include(v)
		}
	}
	if d.Empty() {
		return chart.Domain{Lo: 1, Hi: 10}
	}
	return d
}

// xPadded leaves half a bar, or a little, at both sides.
func xPadded(xs []float64, c Chart) chart.Domain {
	if c.LogX {
		d := positive(xs)
		pad := 0.05 * logSpan(d)
		if c.Bars {
			pad = smallestGap(xs, math.Log) / 2
		}
		return widened(d, pad)
	}
	d := chart.Domain{Lo: xs[0], Hi: xs[len(xs)-1]}
	if c.Bars {
		half := smallestGap(xs, func(v float64) float64 { return v }) / 2
		if d.Lo == d.Hi {
			half = max(0.5, 0.05*math.Abs(d.Lo))
		}
		return chart.Domain{Lo: d.Lo - half, Hi: d.Hi + half}
	}
	d = d.Wide()
	if len(xs) > mostMarked && !slices.ContainsFunc(c.Series, func(s Series) bool { return s.Loose }) {
		return d
	}
	return d.Padded(0.05)
}

// yPadded starts at zero where that costs little room; bars always stand on it.
func yPadded(ys []float64, c Chart) chart.Domain {
	if c.LogY {
		d := positive(ys)
		return widened(d, 0.07*logSpan(d))
	}
	d := chart.Domain{Lo: ys[0], Hi: ys[len(ys)-1]}
	switch {
	case c.Bars:
		d = d.Include(0)
		if d.Lo == d.Hi {
			return chart.Domain{Lo: 0, Hi: 1}
		}
		return chart.Domain{Lo: d.Lo * 1.06, Hi: d.Hi * 1.06}
	case d.Lo >= 0 && d.Lo < 0.6*d.Hi:
		return chart.Domain{Lo: 0, Hi: d.Hi * 1.05}
	}
	return d.Wide().Padded(0.08)
}

// widened multiplies a log domain's ends by e to the power of pad; one value
// alone gets a factor of two.
func widened(d chart.Domain, pad float64) chart.Domain {
	if !(pad > 0) {
		pad = math.Ln2
	}
	return chart.Domain{Lo: max(1e-299, d.Lo*math.Exp(-pad)), Hi: min(1e301, d.Hi*math.Exp(pad))}
}

func logSpan(d chart.Domain) float64 { return math.Log(d.Hi) - math.Log(d.Lo) }

// smallestGap is the least distance of neighbours; zero has its own place on a
// log axis and no neighbours.
func smallestGap(sorted []float64, transform func(float64) float64) float64 {
	least := math.Inf(1)
	for i := 1; i < len(sorted); i++ {
		if g := transform(sorted[i]) - transform(sorted[i-1]); g > 0 && g < least {
			least = g
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// newAxis is an axis on which zero stands apart if its scale is logarithmic.
func newAxis(d chart.Domain, log, hasZero bool, from, to float64, most int, kind chart.Kind) chart.Axis {
	if !log {
		return chart.NewAxis(d, kind, from, to, most)
	}
	side := 1.0
	if to < from {
		side = -1
	}
	corner := from
	if hasZero {
		from += side * zeroRoom
	}
	a := chart.NewAxis(d, chart.Log, from, to, most)
	if len(a.Ticks) < 2 { // less than a decade, between the marks
		a.Ticks, a.Labels = nil, nil
		ticks, _ := chart.NiceTicks(a.Lo, a.Hi, most-1)
		for _, t := range ticks {
			a.Ticks, a.Labels = append(a.Ticks, t), append(a.Labels, prose.Significant(t, 3))
		}
	}
	if hasZero {
		a.HasZero, a.Zero = true, corner+side*zeroPlace
		a.Ticks, a.Labels = append([]float64{0}, a.Ticks...), append([]string{"0"}, a.Labels...)
	}
	return a
}

// ownTicks labels the values themselves if they are few and have room.
func ownTicks(a *chart.Axis, values []float64) {
	if len(values) > mostOwnTicks || a.Exponent != 0 {
		return
	}
	labels := make([]string, len(values))
	for i, v := range values {
		labels[i] = prose.Significant(v, 4)
	}
	b := *a
	b.Ticks, b.Labels = values, labels
	if len(crowded(b)) == 0 {
		*a = b
	}
}

// uncrowd drops labels that would touch the one before.
func uncrowd(a *chart.Axis) {
	for drop := crowded(*a); len(drop) > 0; drop = crowded(*a) {
		a.Ticks, a.Labels = slices.Delete(slices.Clone(a.Ticks), drop[0], drop[0]+1), slices.Delete(slices.Clone(a.Labels), drop[0], drop[0]+1)
	}
}

// crowded lists the ticks whose label touches a neighbour's; of the two it names
// the one that is no power of ten.
func crowded(a chart.Axis) (drop []int) {
	for i := 1; i < len(a.Ticks); i++ {
		room := math.Abs(a.At(a.Ticks[i]) - a.At(a.Ticks[i-1]))
		if room >= (labelWidth(a.Labels[i])+labelWidth(a.Labels[i-1]))/2+5 {
			continue
		}
		if a.Kind == chart.Log && roundPower(a.Ticks[i]) && !roundPower(a.Ticks[i-1]) {
			drop = append(drop, i-1)
		} else {
			drop = append(drop, i)
		}
	}
	return drop
}

func roundPower(v float64) bool {
	e := math.Log10(v)
	return math.Abs(e-math.Round(e)) < 1e-9
}

// labelWidth is about how wide a tick label is drawn.
func labelWidth(s string) float64 { return 6.6 * float64(utf8.RuneCountInString(s)) }
