package study

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
)

// The size of the bar that shows a spread in a table.
const (
	rangeWidth  = 132
	rangeHeight = 16
	rangeMargin = 7
)

// barScale is what bars of one metric share: otherwise they could not be compared.
type barScale struct {
	chart.Axis
	shown bool
}

// scaleKey says which rows share a scale.
type scaleKey struct{ metric, unit string }

func scaleOf(r Row) scaleKey { return scaleKey{r.Metric, r.Unit} }

// rowValues are a row's numbers that have a place on an axis.
func rowValues(r Row) (values []float64) {
	for _, n := range []*event.Number{r.Paper, r.Measured, r.Low, r.High} {
		if n != nil && chart.Drawable(float64(*n)) {
			values = append(values, float64(*n))
		}
	}
	return values
}

// barScales are the scales of a table. One figure alone has none: there is
// nothing to compare it with.
func barScales(rows []Row) map[scaleKey]barScale {
	domains, figures := map[scaleKey]chart.Domain{}, map[scaleKey]int{}
	for _, r := range rows {
		for _, n := range []*event.Number{r.Paper, r.Measured} {
			if n != nil && chart.Drawable(float64(*n)) {
				figures[scaleOf(r)]++
			}
		}
		d, ok := domains[scaleOf(r)]
		if !ok {
			d = chart.NoDomain()
		}
		for _, v := range rowValues(r) {
			d = d.Include(v)
		}
		domains[scaleOf(r)] = d
	}
	scales := map[scaleKey]barScale{}
	for key, d := range domains {
		if d.Empty() || d.Lo == d.Hi || figures[key] < 2 {
			continue
		}
		kind := chart.Real
		if d.Lo > leastOnLog && d.Hi > 100*d.Lo {
			kind = chart.Log
		}
		scales[key] = barScale{chart.Axis{Domain: d, Kind: kind, From: rangeMargin, To: rangeWidth - rangeMargin}, true}
	}
	return scales
}

// rangeBar draws our figure with its spread, and the paper's as a hollow diamond.
// It repeats what the cells beside it say, and is hidden from screen readers.
func rangeBar(r Row, s barScale) template.HTML {
	if !s.shown || r.Measured == nil || !chart.Drawable(float64(*r.Measured)) {
		return ""
	}
	const middle = rangeHeight / 2
	var c chart.Canvas
	c.Line("rail", rangeMargin, middle, rangeWidth-rangeMargin, middle)
	if r.Low != nil && r.High != nil && chart.Drawable(float64(*r.Low)) && chart.Drawable(float64(*r.High)) {
		from, to := s.At(float64(*r.Low)), s.At(float64(*r.High))
		c.Rect("spread", from, middle-3, max(1, to-from), 6)
	}
	c.Marks("mark ours", chart.Circle, 3.4, chart.Point{X: s.At(float64(*r.Measured)), Y: middle})
	if r.Paper != nil && chart.Drawable(float64(*r.Paper)) {
		c.Marks("hollow theirs", chart.Diamond, 4.4, chart.Point{X: s.At(float64(*r.Paper)), Y: middle})
	}
	return template.HTML(fmt.Sprintf(`<svg class="range" viewBox="0 0 %d %d" aria-hidden="true" focusable="false">%s</svg>`,
		rangeWidth, rangeHeight, c.Elements()))
}

// barNote says what the bars mean and from where to where they reach.
func barNote(rows []Row, scales map[scaleKey]barScale) string {
	var b strings.Builder
	b.WriteString("Range: the dot is our figure")
	if slices.ContainsFunc(rows, func(r Row) bool { return r.Low != nil && r.High != nil }) {
		b.WriteString(", the band its spread")
	}
	if slices.ContainsFunc(rows, func(r Row) bool { return r.Paper != nil }) {
		b.WriteString(", the open diamond the paper’s figure")
	}
	b.WriteString(". ")
	var ranges []string
	seen := map[scaleKey]bool{}
	for _, r := range rows {
		key := scaleOf(r)
		s, ok := scales[key]
		if !ok || seen[key] {
			continue
		}
		seen[key] = true
		text := fmt.Sprintf("from %s to %s", prose.Rounded(s.Lo), prose.Rounded(s.Hi))
		if key.unit != "" {
			text += " " + key.unit
		}
		if s.Kind == chart.Log {
			text += " (logarithmic)"
		}
		if key.metric != "" && len(scales) > 1 {
			text = key.metric + " " + text
		}
		ranges = append(ranges, text)
	}
	switch {
	case len(ranges) == 1:
		b.WriteString("All have one scale: " + ranges[0] + ".")
	case len(ranges) <= 4:
		b.WriteString("Each metric has its own scale: " + strings.Join(ranges, "; ") + ".")
	default:
		b.WriteString("Each metric has its own scale.")
	}
	return b.String()
}

// leastOnLog is the smallest number that a log axis shows: below, its margins
// would vanish.
const leastOnLog = 1e-290
