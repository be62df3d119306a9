package report

import (
	"math"
	"strconv"
)

// domain is the part of the number line that an axis shows.
type domain struct{ lo, hi float64 }

// noDomain holds nothing: include makes it grow.
func noDomain() domain { return domain{math.Inf(1), math.Inf(-1)} }

// drawable says that a value has a place on an axis. Beyond 1e300 the width of a
// domain would overflow.
func drawable(v float64) bool { return !math.IsNaN(v) && math.Abs(v) <= 1e300 }

func (d domain) include(v float64) domain {
	if !drawable(v) {
		return d
	}
	return domain{min(d.lo, v), max(d.hi, v)}
}

func (d domain) union(e domain) domain { return domain{min(d.lo, e.lo), max(d.hi, e.hi)} }
func (d domain) empty() bool           { return d.lo > d.hi }
func (d domain) span() float64         { return d.hi - d.lo }

// wide gives a domain that is empty, a point or nearly a point a width that
// tick labels of few digits can show.
func (d domain) wide() domain {
	if d.empty() {
		return domain{0, 1}
	}
	least := 1e-3 * max(math.Abs(d.lo), math.Abs(d.hi))
	switch {
	case d.lo == 0 && d.hi == 0:
		return domain{-1, 1}
	case d.span() >= least && d.span() > 1e-300:
		return d
	}
	middle := d.lo/2 + d.hi/2
	half := max(least, 1e-299)
	return domain{middle - half, middle + half}
}

// padded adds a share of the width on both sides.
func (d domain) padded(share float64) domain {
	p := d.span() * share
	return domain{d.lo - p, d.hi + p}
}

// shared gives all panels of a figure the same domain, unless that would squeeze
// one of them to less than 1/most of its panel.
func shared(domains []domain, most float64) (_ []domain, same bool) {
	all := noDomain()
	for _, d := range domains {
		all = all.union(d)
	}
	out := make([]domain, len(domains))
	for i, d := range domains {
		if !d.empty() && d.span()*most < all.span() {
			return domains, false
		}
		out[i] = all
	}
	return out, true
}

// niceStep is the smallest of 1, 2 and 5 times a power of ten that is not below raw.
func niceStep(raw float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// niceTicks are the multiples of a nice step in [lo, hi], at most most+1 of them.
func niceTicks(lo, hi float64, most int) (ticks []float64, step float64) {
	if !(lo < hi) || !drawable(lo) || !drawable(hi) || most < 1 {
		return nil, 0
	}
	step = niceStep((hi - lo) / float64(most))
	return multiples(lo, hi, step), step
}

// wholeTicks are niceTicks for counts: no step below 1.
func wholeTicks(lo, hi float64, most int) (ticks []float64, step float64) {
	ticks, step = niceTicks(lo, hi, most)
	if step > 0 && step < 1 {
		return multiples(lo, hi, 1), 1
	}
	return ticks, step
}

func multiples(lo, hi, step float64) []float64 {
	var ticks []float64
	first, last := math.Ceil(lo/step-1e-9), math.Floor(hi/step+1e-9)
	for i := first; i <= last; i++ {
		ticks = append(ticks, i*step+0) // +0: no negative zero
	}
	return ticks
}

// axisKind says which ticks an axis has.
type axisKind int

const (
	realAxis axisKind = iota
	wholeAxis
	logAxis
)

// axis maps values to positions in a chart.
type axis struct {
	domain
	kind     axisKind
	from, to float64 // position of lo and of hi
	ticks    []float64
	labels   []string
	exponent int     // tick labels are divided by 10^exponent
	apart    bool    // a log axis with a place for zero beside it
	zero     float64 // that place
}

func newAxis(d domain, kind axisKind, from, to float64, most int) axis {
	a := axis{domain: d, kind: kind, from: from, to: to}
	if kind == logAxis {
		a.logTicks(most)
		return a
	}
	a.domain = d.wide()
	var step float64
	if kind == wholeAxis {
		a.ticks, step = wholeTicks(a.lo, a.hi, most)
	} else {
		a.ticks, step = niceTicks(a.lo, a.hi, most)
	}
	a.exponent = engineering(max(math.Abs(a.lo), math.Abs(a.hi)))
	unit := math.Pow(10, float64(a.exponent))
	decimals := max(0, -int(math.Floor(math.Log10(step/unit)+1e-9)))
	for _, t := range a.ticks {
		a.labels = append(a.labels, minus(grouped(strconv.FormatFloat(t/unit+0, 'f', decimals, 64))))
	}
	return a
}

// engineering is the multiple of three by which labels are shortened, 0 if they
// are short.
func engineering(largest float64) int {
	if largest >= 1e-2 && largest < 1e5 {
		return 0
	}
	return 3 * int(math.Floor(math.Log10(largest)/3))
}

// logTicks marks powers of ten, and 2 and 5 times them where there is room.
func (a *axis) logTicks(most int) {
	first, last := int(math.Floor(math.Log10(a.lo))), int(math.Ceil(math.Log10(a.hi)))
	stride := max(1, (last-first+most-1)/most)
	steps := []float64{1}
	if last-first <= 3 {
		steps = []float64{1, 2, 5}
	}
	for e := first; e <= last; e += stride {
		for _, m := range steps {
			if v := m * math.Pow(10, float64(e)); v >= a.lo && v <= a.hi {
				a.ticks = append(a.ticks, v)
				a.labels = append(a.labels, significant(v, 1))
			}
		}
	}
}

// at is a value's position.
func (a axis) at(v float64) float64 {
	if a.apart && v == 0 {
		return a.zero
	}
	share := (v - a.lo) / a.span()
	if a.kind == logAxis {
		// Logs are subtracted: a quotient of huge and tiny would overflow.
		share = (math.Log(v) - math.Log(a.lo)) / (math.Log(a.hi) - math.Log(a.lo))
	}
	return a.from + share*(a.to-a.from)
}

// titled adds to an axis title what its labels were divided by.
func (a axis) titled(title string) string {
	if a.exponent == 0 {
		return title
	}
	return title + " (×10" + superscript(a.exponent) + ")"
}
