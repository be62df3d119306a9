package report

import (
	"slices"
	"strings"
)

// curves draws series as lines with marks: ours solid and filled, the paper's
// dashed and hollow.
func (c *canvas) curves(traces []trace, ax, ay axis) []legendEntry {
	shifts := dodged(traces, ax)
	for _, t := range traces {
		if len(t.Points) > mostMarked {
			c.path("band "+t.colour(), bandPath(t, ax, ay))
		}
	}
	for i, t := range traces {
		class := "curve " + t.colour()
		if t.Paper {
			class += " theirs"
		}
		c.path(class, linePath(t, ax, ay, shifts[i]))
	}
	for i, t := range traces {
		if len(t.Points) <= mostMarked {
			c.path("whisker "+t.colour(), whiskers(t, ax, ay, shifts[i]))
		}
	}
	for i, t := range traces {
		var d strings.Builder
		for _, p := range markedPoints(t, i, len(traces)) {
			markPath(&d, t.look, ax.at(p.X)+shifts[i], ay.at(p.Y), markSize(t))
		}
		c.path(markClass(t), d.String())
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
func dodged(traces []trace, ax axis) []float64 {
	shifts := make([]float64, len(traces))
	var moved []int
	var places []float64
	for i, t := range traces {
		if len(t.Points) <= mostMarked && t.hasInterval() {
			moved = append(moved, i)
			for _, p := range t.Points {
				places = append(places, ax.at(p.X))
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
func segments(points []Point, ax, ay axis) (out [][]Point) {
	apart := func(p Point) [2]bool { return [2]bool{ax.apart && p.X == 0, ay.apart && p.Y == 0} }
	start := 0
	for i := 1; i <= len(points); i++ {
		if i == len(points) || apart(points[i]) != apart(points[i-1]) {
			out = append(out, points[start:i])
			start = i
		}
	}
	return out
}

func linePath(t trace, ax, ay axis, shift float64) string {
	var d strings.Builder
	for _, segment := range segments(t.Points, ax, ay) {
		if len(segment) < 2 {
			continue
		}
		line := make([]point, len(segment))
		for i, p := range segment {
			line[i] = point{p.X, p.Y}
		}
		shifted := ax
		shifted.from, shifted.to, shifted.zero = ax.from+shift, ax.to+shift, ax.zero+shift
		polyline(&d, thinLine(line, curveColumns), shifted, ay)
	}
	return d.String()
}

// bandPath is the area between the ends of the intervals.
func bandPath(t trace, ax, ay axis) string {
	var d strings.Builder
	for _, segment := range segments(t.Points, ax, ay) {
		var upper, lower []point
		for _, p := range segment {
			if low, high, ok := interval(p, ay); ok {
				upper, lower = append(upper, point{ax.at(p.X), high}), append(lower, point{ax.at(p.X), low})
			}
		}
		if len(upper) < 2 {
			continue
		}
		upper, lower = thinLine(upper, curveColumns), thinLine(lower, curveColumns)
		slices.Reverse(lower)
		command := "M"
		for _, p := range append(upper, lower...) {
			d.WriteString(command + coordinate(p.x) + " " + coordinate(p.y))
			command = "L"
		}
		d.WriteString("z")
	}
	return d.String()
}

// whiskers are upright lines with caps; an end that is cut at the edge has none.
func whiskers(t trace, ax, ay axis, shift float64) string {
	var d strings.Builder
	const half = 3.0 // of a cap
	for _, p := range t.Points {
		low, high, ok := interval(p, ay)
		if !ok {
			continue
		}
		x := ax.at(p.X) + shift
		d.WriteString("M" + coordinate(x) + " " + coordinate(low) + "V" + coordinate(high))
		for _, end := range [][2]float64{{p.Low, low}, {p.High, high}} {
			if drawable(end[0]) {
				d.WriteString("M" + coordinate(x-half) + " " + coordinate(end[1]) + "h" + coordinate(2*half))
			}
		}
	}
	return d.String()
}

func curveLegend(traces []trace) []legendEntry {
	var out []legendEntry
	for _, t := range traces {
		var c canvas
		class := "curve " + t.colour()
		if t.Paper {
			class += " theirs"
		}
		if len(t.Points) > 1 {
			c.path(class, "M1 9H29")
		}
		var d strings.Builder
		markPath(&d, t.look, 15, 9, markSize(t))
		c.path(markClass(t), d.String())
		out = append(out, legendEntry{c.key(), t.named()})
	}
	return out
}

// intervalLegend names whiskers, and bands where long series may have them.
func intervalLegend(traces []trace, bands bool) []legendEntry {
	short := func(t trace) bool { return len(t.Points) <= mostMarked && t.hasInterval() }
	long := func(t trace) bool { return len(t.Points) > mostMarked && t.hasInterval() }
	var out []legendEntry
	if slices.ContainsFunc(traces, short) {
		var c canvas
		c.path("whisker", "M15 2V16M12 2h6M12 16h6")
		out = append(out, legendEntry{c.key(), "interval"})
	}
	if bands && slices.ContainsFunc(traces, long) {
		var c canvas
		c.path("band", "M1 4 29 7V14L1 16z")
		out = append(out, legendEntry{c.key(), "interval"})
	}
	return out
}
