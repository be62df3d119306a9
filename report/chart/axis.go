package chart

import (
	"math"
	"strings"

	"github.com/coterie-fl/coterie/report/prose"
)

// Domain is the part of the number line that an axis shows.
type Domain struct{ Lo, Hi float64 }

// NoDomain holds nothing: Include makes it grow.
func NoDomain() Domain { return Domain{math.Inf(1), math.Inf(-1)} }

// Drawable says that a value has a place on an axis. Beyond 1e300 the width of a
// domain would overflow.
func Drawable(v float64) bool { return !math.IsNaN(v) && math.Abs(v) <= 1e300 }

// Include makes a domain reach a value, if that can be drawn.
func (d Domain) Include(v float64) Domain {
	if !Drawable(v) {
		return d
	}
	return Domain{min(d.Lo, v), max(d.Hi, v)}
}

// Union reaches over both domains.
func (d Domain) Union(e Domain) Domain { return Domain{min(d.Lo, e.Lo), max(d.Hi, e.Hi)} }

// Empty says that a domain holds nothing.
func (d Domain) Empty() bool { return d.Lo > d.Hi }

// Span is the width.
func (d Domain) Span() float64 { return d.Hi - d.Lo }

// Wide gives a domain that is empty, a point or nearly a point a width that
// tick labels of few digits can show.
func (d Domain) Wide() Domain {
	if d.Empty() {
		return Domain{0, 1}
	}
	least := 1e-3 * max(math.Abs(d.Lo), math.Abs(d.Hi))
	switch {
	case d.Lo == 0 && d.Hi == 0:
		return Domain{-1, 1}
	case d.Span() >= least && d.Span() > 1e-300:
		return d
	}
	middle := d.Lo/2 + d.Hi/2
	half := max(least, 1e-299)
	return Domain{middle - half, middle + half}
}

// Padded adds a share of the width on both sides.
func (d Domain) Padded(share float64) Domain {
	p := d.Span() * share
	return Domain{d.Lo - p, d.Hi + p}
}

// SharedDomains gives all panels of a figure the same domain, unless that would squeeze
// one of them to less than 1/most of its panel.
func SharedDomains(domains []Domain, most float64) (_ []Domain, same bool) {
	all := NoDomain()
	for _, d := range domains {
		all = all.Union(d)
	}
	out := make([]Domain, len(domains))
	for i, d := range domains {
		if !d.Empty() && d.Span()*most < all.Span() {
			return domains, false
		}
		out[i] = all
	}
	return out, true
}

// NiceStep is the smallest of 1, 2 and 5 times a power of ten that is not below raw.
func NiceStep(raw float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// NiceTicks are the multiples of a nice step in [lo, hi], at most most+1 of them.
func NiceTicks(lo, hi float64, most int) (ticks []float64, step float64) {
	if !(lo < hi) || !Drawable(lo) || !Drawable(hi) || most < 1 {
		return nil, 0
	}
	step = NiceStep((hi - lo) / float64(most))
	return Multiples(lo, hi, step), step
}

// wholeTicks are niceTicks for counts: no step below 1.
func wholeTicks(lo, hi float64, most int) (ticks []float64, step float64) {
	ticks, step = NiceTicks(lo, hi, most)
	if step > 0 && step < 1 {
		return Multiples(lo, hi, 1), 1
	}
	return ticks, step
}

// Multiples are those of a step in [lo, hi].
func Multiples(lo, hi, step float64) []float64 {
	var ticks []float64
	first, last := math.Ceil(lo/step-1e-9), math.Floor(hi/step+1e-9)
	for i := first; i <= last; i++ {
		ticks = append(ticks, i*step+0) // +0: no negative zero
	}
	return ticks
}

// Kind says which ticks an axis has.
type Kind int

// The kinds of axes: any numbers, counts, powers.
const (
	Real Kind = iota
	Whole
	Log
)

// Axis maps values to positions in a chart.
type Axis struct {
	Domain
	Kind     Kind
	From, To float64 // position of lo and of hi
	Ticks    []float64
	Labels   []string
	Exponent int     // tick labels are divided by 10^exponent
	HasZero  bool    // a log axis with a place for zero beside it
	Zero     float64 // that place
}

// NewAxis has nice ticks, about most of them, between the positions of lo and hi.
func NewAxis(d Domain, kind Kind, from, to float64, most int) Axis {
	a := Axis{Domain: d, Kind: kind, From: from, To: to}
	if kind == Log {
		a.logTicks(most)
		return a
	}
	a.Domain = d.Wide()
	var step float64
	if kind == Whole {
		a.Ticks, step = wholeTicks(a.Lo, a.Hi, most)
	} else {
		a.Ticks, step = NiceTicks(a.Lo, a.Hi, most)
	}
	a.Exponent = engineering(max(math.Abs(a.Lo), math.Abs(a.Hi)))
	unit := math.Pow(10, float64(a.Exponent))
	decimals := max(0, -int(math.Floor(math.Log10(step/unit)+1e-9)))
	for _, t := range a.Ticks {
		a.Labels = append(a.Labels, prose.Fixed(t/unit, decimals))
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

// logTicks marks powers of ten, and 2 and 5 times them where there is room; where these
// are too few to read anything off, nice numbers.
func (a *Axis) logTicks(most int) {
	first, last := int(math.Floor(math.Log10(a.Lo))), int(math.Ceil(math.Log10(a.Hi)))
	stride := max(1, (last-first+most-1)/most)
	steps := []float64{1}
	if last-first <= 3 {
		steps = []float64{1, 2, 5}
	}
	for e := first; e <= last; e += stride {
		for _, m := range steps {
			if v := m * math.Pow(10, float64(e)); v >= a.Lo && v <= a.Hi {
				a.Ticks = append(a.Ticks, v)
				a.Labels = append(a.Labels, strings.TrimPrefix(prose.Significant(v, 1), "1×"))
			}
		}
	}
	if len(a.Ticks) >= 3 {
		return
	}
	a.Ticks, _ = NiceTicks(a.Lo, a.Hi, most)
	a.Labels = nil
	for _, v := range a.Ticks {
		a.Labels = append(a.Labels, prose.Significant(v, 3))
	}
}

// At is a value's position.
func (a Axis) At(v float64) float64 {
	if a.HasZero && v == 0 {
		return a.Zero
	}
	share := (v - a.Lo) / a.Span()
	if a.Kind == Log {
		// Logs are subtracted: a quotient of huge and tiny would overflow.
		share = (math.Log(v) - math.Log(a.Lo)) / (math.Log(a.Hi) - math.Log(a.Lo))
	}
	return a.From + share*(a.To-a.From)
}

// titled adds to an axis title what its labels were divided by.
func (a Axis) titled(title string) string {
	if a.Exponent == 0 {
		return title
	}
	return title + " (" + prose.PowerOfTen(a.Exponent) + ")"
}
