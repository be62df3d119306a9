package study

import (
	"math"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
)

// noFigure stands where there is no number.
const noFigure = "–"

// rowFigures are the numbers of a row as text.
type rowFigures struct{ paper, ours, spread string }

// figuresOf writes a row's numbers. The width of the spread decides how many
// decimals are worth showing; the paper's figure is written as it was given.
func figuresOf(r Row) rowFigures {
	f := rowFigures{paper: digitsOf(r.Paper, 5)}
	decimals, ok := spreadDecimals(r)
	write := func(n *event.Number) string {
		if n == nil || !ok || !chart.Drawable(float64(*n)) {
			return digitsOf(n, 3)
		}
		return prose.Fixed(float64(*n), decimals)
	}
	f.ours = write(r.Measured)
	if r.Low != nil || r.High != nil {
		f.spread = "[" + write(r.Low) + ", " + write(r.High) + "]"
	}
	// Figures that differ must not look alike.
	for digits := 4; digits <= 8 && r.Verdict == Differs && f.ours == f.paper && r.Measured != nil && *r.Measured != *r.Paper; digits++ {
		f.ours = digitsOf(r.Measured, digits)
	}
	return f
}

// digitsOf writes a number with so many significant digits.
func digitsOf(n *event.Number, digits int) string {
	if n == nil {
		return noFigure
	}
	switch v := float64(*n); {
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "−∞"
	default:
		return prose.Significant(v, digits)
	}
}

// spreadDecimals are the decimals that show a spread's width with two digits and
// our figure with at least two; ok is false where powers of ten read better.
func spreadDecimals(r Row) (decimals int, ok bool) {
	if r.Low == nil || r.High == nil || r.Measured == nil {
		return 0, false
	}
	low, high, ours := float64(*r.Low), float64(*r.High), float64(*r.Measured)
	width := high - low
	if !chart.Drawable(low) || !chart.Drawable(high) || !chart.Drawable(ours) || !(width > 0) {
		return 0, false
	}
	largest := max(math.Abs(low), math.Abs(high), math.Abs(ours))
	if largest >= 1e7 || largest < 1e-3 {
		return 0, false
	}
	decimals = 1 - exponentOf(width)
	if ours != 0 {
		decimals = max(decimals, 1-exponentOf(ours))
	}
	return min(max(0, decimals), max(0, 5-exponentOf(largest))), true
}

// exponentOf is the power of ten of a number's first digit.
func exponentOf(v float64) int { return int(math.Floor(math.Log10(math.Abs(v)))) }
