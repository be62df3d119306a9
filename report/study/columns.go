package study

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
)

// thinnestColumn is the width below which bars beside one another are drawn as
// steps instead.
const thinnestColumn = 4

// drawColumns draws a histogram: ours as bars, beside one another if there are
// several; the paper's as a dashed outline.
func drawColumns(c *chart.Canvas, traces []trace, ax, ay chart.Axis) []chart.LegendEntry {
	slots := map[string]int{}
	for _, t := range traces {
		if _, ok := slots[t.Name]; !t.Paper && !ok {
			slots[t.Name] = len(slots)
		}
	}
	full := columnWidth(traces, ax)
	width := full
	if len(slots) > 1 {
		width = 0.86 * full / float64(len(slots))
	}
	stepped := len(slots) > 1 && width < thinnestColumn
	base := ay.From
	if ay.Kind != chart.Log {
		base = ay.At(0)
	}
	for _, t := range traces {
		shift, w := 0.0, full
		if slot, ok := slots[t.Name]; ok && len(slots) > 1 && !stepped {
			w, shift = width, (float64(slot)-float64(len(slots)-1)/2)*width
		}
		switch {
		case t.Paper:
			c.Path("curve theirs "+outlineColour(t, traces), outline(t, ax, ay, base, shift, w))
		case stepped:
			c.Path("steps "+t.colour()+" "+chart.DashClass(t.look), outline(t, ax, ay, base, 0, full))
		default:
			gap := min(1.2, 0.08*w)
			for _, p := range t.Points {
				middle, y := ax.At(p.X)+shift, ay.At(p.Y)
				left, right := inPlot(middle-w/2+gap), inPlot(middle+w/2-gap)
				c.Rect("column "+t.colour(), left, min(y, base), max(1, right-left), max(y, base)-min(y, base))
			}
		}
		if len(t.Points) <= mostMarked {
			c.Path("whisker", whiskers(t, ax, ay, shift))
		}
		if len(slots) > 1 && !t.Paper {
			drawColumnMarks(c, t, ax, ay, base, shift, stepped)
		}
	}
	return append(columnLegend(traces, len(slots) > 1, stepped), intervalLegend(traces, false)...)
}

// drawColumnMarks puts a series' shape into its bars, or on the highest of its steps:
// colour alone would not tell series apart.
func drawColumnMarks(c *chart.Canvas, t trace, ax, ay chart.Axis, base, shift float64, stepped bool) {
	const size, depth = 3.2, 9
	var inside, outside []chart.Point
	if stepped {
		highest := slices.MaxFunc(t.Points, func(a, b Point) int { return cmp.Compare(a.Y, b.Y) })
		outside = append(outside, chart.Point{X: ax.At(highest.X), Y: ay.At(highest.Y)})
	} else {
		for _, p := range t.Points {
			x, y := ax.At(p.X)+shift, ay.At(p.Y)
			switch {
			case base-y > 2*depth:
				inside = append(inside, chart.Point{X: x, Y: base - depth})
			case y-base > 2*depth:
				inside = append(inside, chart.Point{X: x, Y: base + depth})
			default: // too short to hold it
				outside = append(outside, chart.Point{X: x, Y: min(y, base) - depth})
			}
		}
	}
	c.Marks("in-bar", t.look, size, inside...)
	c.Marks("mark "+t.colour(), t.look, size, outside...)
}

// columnWidth is the room of one bar: the least distance between two.
func columnWidth(traces []trace, ax chart.Axis) float64 {
	var places []float64
	for _, t := range traces {
		for _, p := range t.Points {
			places = append(places, ax.At(p.X))
		}
	}
	gap := smallestGap(distinct(places), func(v float64) float64 { return v })
	if gap == 0 {
		gap = (chart.PlotRight - chart.PlotLeft) / 4
	}
	if ax.HasZero {
		gap = min(gap, 2*(zeroPlace-4)) // clear of the corner and of the break
	}
	return min(gap, (chart.PlotRight-chart.PlotLeft)/2)
}

// inPlot cuts a bar at the sides of the chart.
func inPlot(x float64) float64 { return min(max(x, chart.PlotLeft), chart.PlotRight) }

// outlineColour is ink for a lone series of the paper: it lies across our bars.
func outlineColour(t trace, traces []trace) string {
	theirs := 0
	for _, other := range traces {
		if other.Paper {
			theirs++
		}
	}
	if theirs == 1 {
		return "ink"
	}
	return t.colour()
}

// outline goes around bars that stand side by side, and down where one is missing.
func outline(t trace, ax, ay chart.Axis, base, shift, width float64) string {
	var d strings.Builder
	for i, p := range t.Points {
		left, right := inPlot(ax.At(p.X)+shift-width/2), inPlot(ax.At(p.X)+shift+width/2)
		joined := i > 0 && ax.At(p.X)-ax.At(t.Points[i-1].X) < width+0.6
		if joined {
			d.WriteString("V" + chart.Coordinate(ay.At(p.Y)))
		} else {
			d.WriteString("M" + chart.Coordinate(left) + " " + chart.Coordinate(base) + "V" + chart.Coordinate(ay.At(p.Y)))
		}
		d.WriteString("H" + chart.Coordinate(right))
		if i == len(t.Points)-1 || ax.At(t.Points[i+1].X)-ax.At(p.X) >= width+0.6 {
			d.WriteString("V" + chart.Coordinate(base))
		}
	}
	return d.String()
}

func columnLegend(traces []trace, marked, stepped bool) (out []chart.LegendEntry) {
	for _, t := range traces {
		out = append(out, chart.Entry(t.named(), func(c *chart.Canvas) {
			mark := "in-bar"
			switch {
			case t.Paper:
				c.Path("curve theirs "+outlineColour(t, traces), "M7 16V3H23V16")
				return
			case stepped:
				c.Path("steps "+t.colour()+" "+chart.DashClass(t.look), "M2 16V9H12V4H20V11H28V16")
				mark = "mark " + t.colour()
			default:
				c.Rect("column "+t.colour(), 8, 4, 14, 12)
			}
			if marked {
				c.Marks(mark, t.look, 3.2, chart.Point{X: 15, Y: 10})
			}
		}))
	}
	return out
}
