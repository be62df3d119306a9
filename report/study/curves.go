package study

import (
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
)

// drawCurves draws series as lines with marks: ours solid and filled, the paper's
// dashed and hollow.
func drawCurves(c *chart.Canvas, traces []trace, ax, ay chart.Axis) []layout.LegendEntry {
	shifts := dodged(traces, ax)
	for _, t := range traces {
		if len(t.Points) > mostMarked {
			c.Path("band "+t.colour(), bandPath(t, ax, ay))
		}
	}
	for i, t := range traces {
		class := "curve " + t.colour()
		if t.Paper {
			class += " theirs"
		}
		c.Path(class, linePath(t, ax, ay, shifts[i]))
	}
	for i, t := range traces {
		if len(t.Points) <= mostMarked {
			c.Path("whisker "+t.colour(), whiskers(t, ax, ay, shifts[i]))
		}
	}
	for i, t := range traces {
		var d strings.Builder
		for _, p := range markedPoints(t, i, len(traces)) {
			chart.MarkPath(&d, t.look, ax.At(p.X)+shifts[i], ay.At(p.Y), markSize(t))
		}
		c.Path(markClass(t), d.String())
	}
	return append(curveLegend(traces), intervalLegend(traces, true)...)
}

func markClass(t trace) string {
	if t.Paper {
		return "hollow " + t.colour()
	}
	return "mark " + t.colour()
}

// markSize makes hollow marks larger, so that one of ours inside is still seen.
func markSize(t trace) float64 {
	if t.Paper {
		return 5
	}
	return 4
}

// markedPoints are all of a short series; of a long one five, staggered against
// the other series, so that curves that coincide still show both shapes.
func markedPoints(t trace, i, traces int) []Point {
	if len(t.Points) <= mostMarked {
		return t.Points
	}
	const marks = 5
	var out []Point
	for m := range marks {
		share := (float64(m) + (float64(i)+0.5)/float64(traces)) / marks
		out = append(out, t.Points[min(len(t.Points)-1, int(share*float64(len(t.Points))))])
	}
	return out
}

// dodged moves series with intervals a little apart where they share an x, so
// that whiskers do not cover one another.
func dodged(traces []trace, ax chart.Axis) []float64 {
	shifts := make([]float64, len(traces))
	var moved []int
	var places []float64
	for i, t := range traces {
		if len(t.Points) <= mostMarked && t.hasInterval() {
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
		chart.Polyline(&d, chart.ThinLine(line, chart.Columns), shifted, ay)
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

func curveLegend(traces []trace) []layout.LegendEntry {
	var out []layout.LegendEntry
	for _, t := range traces {
		var c chart.Canvas
		class := "curve " + t.colour()
		if t.Paper {
			class += " theirs"
		}
		if len(t.Points) > 1 {
			c.Path(class, "M1 9H29")
		}
		var d strings.Builder
		chart.MarkPath(&d, t.look, 15, 9, markSize(t))
		c.Path(markClass(t), d.String())
		out = append(out, layout.LegendEntry{Key: c.Key(), Text: t.named()})
	}
	return out
}

// intervalLegend names whiskers, and bands where long series may have them.
func intervalLegend(traces []trace, bands bool) []layout.LegendEntry {
	short := func(t trace) bool { return len(t.Points) <= mostMarked && t.hasInterval() }
	long := func(t trace) bool { return len(t.Points) > mostMarked && t.hasInterval() }
	var out []layout.LegendEntry
	if slices.ContainsFunc(traces, short) {
		var c chart.Canvas
		c.Path("whisker", "M15 2V16M12 2h6M12 16h6")
		out = append(out, layout.LegendEntry{Key: c.Key(), Text: "interval"})
	}
	if bands && slices.ContainsFunc(traces, long) {
		var c chart.Canvas
		c.Path("band", "M1 4 29 7V14L1 16z")
		out = append(out, layout.LegendEntry{Key: c.Key(), Text: "interval"})
	}
	return out
}
