package report

import (
	"math"
	"slices"
	"unicode/utf8"
)

// Room for zero beside a log axis.
const (
	zeroPlace = 13 // from the corner to zero
	zeroRoom  = 34 // from the corner to the log axis
)

// mostOwnTicks is how many different x a chart may have to label each of them.
const mostOwnTicks = 9

// axesOf finds axes that hold all points and the finite ends of intervals.
func axesOf(c Chart, traces []trace) (ax, ay axis) {
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
	xs = distinct(xs)
	ax = studyAxis(xPadded(xs, c), c.LogX, slices.Contains(xs, 0), plotLeft, plotRight, 6, kindOf(xs))
	ownTicks(&ax, xs)
	uncrowd(&ax)
	ys = distinct(ys)
	ay = studyAxis(yPadded(ys, c), c.LogY, slices.Contains(ys, 0), plotBottom, plotTop, 5, kindOf(ys))
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
func kindOf(values []float64) axisKind {
	for _, v := range values {
		if v != math.Trunc(v) || math.Abs(v) > 1e15 {
			return realAxis
		}
	}
	return wholeAxis
}

// positive is the domain of what a log axis shows.
func positive(values []float64) domain {
	d := noDomain()
	for _, v := range values {
		if v > 0 {
			d = d.include(v)
		}
	}
	if d.empty() {
		return domain{1, 10}
	}
	return d
}

// xPadded leaves half a bar, or a little, at both sides.
func xPadded(xs []float64, c Chart) domain {
	if c.LogX {
		d := positive(xs)
		pad := 0.05 * logSpan(d)
		if c.Bars {
			pad = smallestGap(xs, math.Log) / 2
		}
		return widened(d, pad)
	}
	d := domain{xs[0], xs[len(xs)-1]}
	if c.Bars {
		half := smallestGap(xs, func(v float64) float64 { return v }) / 2
		if d.lo == d.hi {
			half = max(0.5, 0.05*math.Abs(d.lo))
		}
		return domain{d.lo - half, d.hi + half}
	}
	d = d.wide()
	if len(xs) > mostMarked {
		return d
	}
	return d.padded(0.05)
}

// yPadded starts at zero where that costs little room; bars always stand on it.
func yPadded(ys []float64, c Chart) domain {
	if c.LogY {
		d := positive(ys)
		return widened(d, 0.07*logSpan(d))
	}
	d := domain{ys[0], ys[len(ys)-1]}
	switch {
	case c.Bars:
		d = d.include(0)
		if d.lo == d.hi {
			return domain{0, 1}
		}
		return domain{d.lo * 1.06, d.hi * 1.06}
	case d.lo >= 0 && d.lo < 0.6*d.hi:
		return domain{0, d.hi * 1.05}
	}
	return d.wide().padded(0.08)
}

// widened multiplies a log domain's ends by e to the power of pad; one value
// alone gets a factor of two.
func widened(d domain, pad float64) domain {
	if !(pad > 0) {
		pad = math.Ln2
	}
	return domain{max(1e-299, d.lo*math.Exp(-pad)), min(1e301, d.hi*math.Exp(pad))}
}

func logSpan(d domain) float64 { return math.Log(d.hi) - math.Log(d.lo) }

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

// studyAxis is an axis on which zero stands apart if its scale is logarithmic.
func studyAxis(d domain, log, hasZero bool, from, to float64, most int, kind axisKind) axis {
	if !log {
		return newAxis(d, kind, from, to, most)
	}
	side := 1.0
	if to < from {
		side = -1
	}
	corner := from
	if hasZero {
		from += side * zeroRoom
	}
	a := newAxis(d, logAxis, from, to, most)
	if len(a.ticks) < 2 { // less than a decade, between the marks
		a.ticks, a.labels = nil, nil
		ticks, _ := niceTicks(a.lo, a.hi, most-1)
		for _, t := range ticks {
			a.ticks, a.labels = append(a.ticks, t), append(a.labels, significant(t, 3))
		}
	}
	if hasZero {
		a.apart, a.zero = true, corner+side*zeroPlace
		a.ticks, a.labels = append([]float64{0}, a.ticks...), append([]string{"0"}, a.labels...)
	}
	return a
}

// ownTicks labels the values themselves if they are few and have room.
func ownTicks(a *axis, values []float64) {
	if len(values) > mostOwnTicks || a.exponent != 0 {
		return
	}
	labels := make([]string, len(values))
	for i, v := range values {
		labels[i] = significant(v, 4)
	}
	b := *a
	b.ticks, b.labels = values, labels
	if len(crowded(b)) == 0 {
		*a = b
	}
}

// uncrowd drops labels that would touch the one before.
func uncrowd(a *axis) {
	for drop := crowded(*a); len(drop) > 0; drop = crowded(*a) {
		a.ticks, a.labels = slices.Delete(slices.Clone(a.ticks), drop[0], drop[0]+1), slices.Delete(slices.Clone(a.labels), drop[0], drop[0]+1)
	}
}

// crowded lists the ticks whose label touches a neighbour's; of the two it names
// the one that is no power of ten.
func crowded(a axis) (drop []int) {
	for i := 1; i < len(a.ticks); i++ {
		room := math.Abs(a.at(a.ticks[i]) - a.at(a.ticks[i-1]))
		if room >= (labelWidth(a.labels[i])+labelWidth(a.labels[i-1]))/2+5 {
			continue
		}
		if a.kind == logAxis && roundPower(a.ticks[i]) && !roundPower(a.ticks[i-1]) {
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
