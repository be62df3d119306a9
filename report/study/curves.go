package study

import (
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
)

// drawCurves draws series as lines with marks: ours solid and filled, the paper's
// dashed and hollow.
func drawCurves(c *chart.Canvas, traces []trace, ax, ay chart.Axis) []chart.LegendEntry {
	shifts := dodged(traces, ax)
	for _, t := range traces {
		if t.banded && !t.Loose {
			c.Path("band "+t.colour(), bandPath(t, ax, ay))
		}
	}
	for i, t := range traces {
		if !t.Loose {
			t.line(c, linePath(t, ax, ay, shifts[i]))
		}
	}
	for i, t := range traces {
		if !t.banded {
			c.Path("whisker "+t.colour(), whiskers(t, ax, ay, shifts[i]))
		}
	}
	for i, t := range traces {
		marked := t.Points
		if t.banded && !t.Loose {
			marked = chart.Staggered(marked, i, len(traces))
		}
		var places []chart.Point
		for _, p := range marked {
			places = append(places, chart.Point{X: ax.At(p.X) + shifts[i], Y: ay.At(p.Y)})
		}
		t.mark(c, places...)
	}
	return append(curveLegend(traces), intervalLegend(traces, true)...)
}

// line draws along a path: ours solid, the paper's dashed.
func (t trace) line(c *chart.Canvas, d string) {
	class := "curve " + t.colour()
	if t.Paper {
		class += " theirs"
	}
	c.Path(class, d)
}

// mark draws a series' shape: ours filled, the paper's hollow and larger, so that one of
// ours inside is still seen.
func (t trace) mark(c *chart.Canvas, places ...chart.Point) {
	if t.Loose && len(t.Points) > fewLoose { // a cloud
		c.Marks("mark "+t.colour(), t.look, 3, places...)
		return
	}
	if t.Paper {
		c.Marks("hollow "+t.colour(), t.look, 5, places...)
	} else {
		c.Marks("mark "+t.colour(), t.look, 4, places...)
	}
}

// dodged moves series with intervals a little apart where they share an x, so
// that whiskers do not cover one another.
func dodged(traces []trace, ax chart.Axis) []float64 {
	shifts := make([]float64, len(traces))
	var moved []int
	var places []float64
	for i, t := range traces {
		if !t.banded && t.hasInterval() {
			moved = append(moved, i)
			for _, p := range t.Points {
				places = append(places, ax.At(p.X))
			}
		}
	}
	if len(moved) < 2 {
		return shifts
	}
	gap := smallestGap(distinct(places), func(v float64) float64 { return v })
	if gap == 0 {
		gap = 2 * zeroPlace
	}
	step := min(6, 0.7*gap/float64(len(moved)), 2*zeroPlace*0.7/float64(len(moved)))
	if step < 1.2 {
		return shifts
	}
	for n, i := range moved {
		shifts[i] = (float64(n) - float64(len(moved)-1)/2) * step
	}
	return shifts
}

// segments cuts a series where it crosses to a zero that stands apart: a line
// there would claim to know what lies between.
func segments(points []Point, ax, ay chart.Axis) (out [][]Point) {
	apart := func(p Point) [2]bool { return [2]bool{ax.HasZero && p.X == 0, ay.HasZero && p.Y == 0} }
	start := 0
	for i := 1; i <= len(points); i++ {
		if i == len(points) || apart(points[i]) != apart(points[i-1]) {
			out = append(out, points[start:i])
			start = i
		}
	}
	return out
}

func linePath(t trace, ax, ay chart.Axis, shift float64) string {
	var d strings.Builder
	for _, segment := range segments(t.Points, ax, ay) {
		if len(segment) < 2 {
			continue
		}
		line := make([]chart.Point, len(segment))
		for i, p := range segment {
			line[i] = chart.Point{X: p.X, Y: p.Y}
		}
		shifted := ax
		shifted.From, shifted.To, shifted.Zero = ax.From+shift, ax.To+shift, ax.Zero+shift
		d.WriteString(chart.Polyline(chart.ThinLine(line, chart.Columns), shifted, ay))
	}
	return d.String()
}

// bandPath is the area between the ends of the intervals.
func bandPath(t trace, ax, ay chart.Axis) string {
	var d strings.Builder
	for _, segment := range segments(t.Points, ax, ay) {
		var upper, lower []chart.Point
		for _, p := range segment {
			if low, high, ok := interval(p, ay); ok {
				upper, lower = append(upper, chart.Point{X: ax.At(p.X), Y: high}), append(lower, chart.Point{X: ax.At(p.X), Y: low})
			}
		}
		if len(upper) < 2 {
			continue
		}
		upper, lower = chart.ThinLine(upper, chart.Columns), chart.ThinLine(lower, chart.Columns)
		slices.Reverse(lower)
		command := "M"
		for _, p := range append(upper, lower...) {
			d.WriteString(command + chart.Coordinate(p.X) + " " + chart.Coordinate(p.Y))
			command = "L"
		}
		d.WriteString("z")
	}
	return d.String()
}

// whiskers are upright lines with caps; an end that is cut at the edge has none.
func whiskers(t trace, ax, ay chart.Axis, shift float64) string {
	var d strings.Builder
	const half = 3.0 // of a cap
	for _, p := range t.Points {
		low, high, ok := interval(p, ay)
		if !ok {
			continue
		}
		x := ax.At(p.X) + shift
		d.WriteString("M" + chart.Coordinate(x) + " " + chart.Coordinate(low) + "V" + chart.Coordinate(high))
		for _, end := range [][2]float64{{p.Low, low}, {p.High, high}} {
			if chart.Drawable(end[0]) {
				d.WriteString("M" + chart.Coordinate(x-half) + " " + chart.Coordinate(end[1]) + "h" + chart.Coordinate(2*half))
			}
		}
	}
	return d.String()
}

func curveLegend(traces []trace) (out []chart.LegendEntry) {
	for _, t := range traces {
		out = append(out, chart.Entry(t.named(), func(c *chart.Canvas) {
			if len(t.Points) > 1 && !t.Loose {
				t.line(c, "M1 9H29")
			}
			t.mark(c, chart.Point{X: 15, Y: 9})
		}))
	}
	return out
}

// intervalLegend names whiskers, and bands where long series may have them.
func intervalLegend(traces []trace, bands bool) (out []chart.LegendEntry) {
	short := func(t trace) bool { return !t.banded && t.hasInterval() }
	long := func(t trace) bool { return t.banded && t.hasInterval() }
	if slices.ContainsFunc(traces, short) {
		out = append(out, chart.Entry("interval", func(c *chart.Canvas) { c.Path("whisker", "M15 2V16M12 2h6M12 16h6") }))
	}
	if bands && slices.ContainsFunc(traces, long) {
		out = append(out, chart.Entry("interval", func(c *chart.Canvas) { c.Path("band", "M1 4 29 7V14L1 16z") }))
	}
	return out
}
