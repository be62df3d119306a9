package study

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
)

// Limits of what one chart of a study can show.
const (
	mostSeries = 24 // afterwards colour and shape recur together
	mostMarked = 40 // points of a series that all get a mark and a whisker
	mostTold   = 12 // points of a series that a description lists
	fewLoose   = 12 // loose points that are no cloud yet
)

// Panel is a chart under its title, with legend and note.
type Panel struct {
	Name, Note string
	Chart      template.HTML // empty if there is nothing to draw
	Legend     []chart.LegendEntry
}

// Panels are charts as a page shows them. Nothing is drawn if one of them would mislead.
func Panels(charts []Chart) ([]Panel, error) {
	if err := check(Study{Charts: charts}); err != nil {
		return nil, err
	}
	var out []Panel
	look := newLooks(charts)
	for i, c := range charts {
		out = append(out, newPanel(fmt.Sprintf("chart-%d", i+1), c, look))
	}
	return out, nil
}

// looks gives a series of one name the same colour and shape in all charts.
type looks map[string]int

// kin is the name that a series shares its colour by.
func (s Series) kin() string { return cmp.Or(s.Of, s.Name) }

func newLooks(charts []Chart) looks {
	l := looks{}
	for _, c := range charts {
		for _, s := range c.Series {
			if _, ok := l[s.kin()]; !ok {
				l[s.kin()] = len(l)
			}
		}
	}
	return l
}

// trace is a series with what can be drawn of it, in order of x.
type trace struct {
	Series
	look   int
	lost   int  // points without a place
	banded bool // too many points for a mark and a whisker each
}

func tracesOf(c Chart, l looks) []trace {
	var out []trace
	for _, s := range c.Series[:min(len(c.Series), mostSeries)] {
		t := trace{Series: s, look: l[s.kin()]}
		t.Points = nil
		for _, p := range s.Points {
			if hasPlace(p.X, c.LogX) && hasPlace(p.Y, c.LogY) {
				t.Points = append(t.Points, p)
			}
		}
		t.lost = len(s.Points) - len(t.Points)
		slices.SortStableFunc(t.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
		out = append(out, t)
	}
	// Beside one with a band, whiskers would say the same in another way.
	dense := slices.ContainsFunc(out, func(t trace) bool { return len(t.Points) > mostMarked && !t.Loose })
	for i := range out {
		n := len(out[i].Points)
		out[i].banded = n > mostMarked || dense && n > mostTold
	}
	return out
}

func hasPlace(v float64, log bool) bool {
	return chart.Drawable(v) && (!log || v == 0 || v >= leastOnLog)
}

// interval is a point's spread; ends beyond the chart are cut at its edge.
func interval(p Point, ay chart.Axis) (low, high float64, ok bool) {
	if math.IsNaN(p.Low) || math.IsNaN(p.High) || p.Low == p.High {
		return 0, 0, false
	}
	inside := func(v float64) float64 {
		if ay.HasZero && v == 0 {
			return ay.At(0)
		}
		return ay.At(min(max(v, ay.Lo), ay.Hi))
	}
	return inside(p.Low), inside(p.High), true
}

func (t trace) hasInterval() bool {
	return slices.ContainsFunc(t.Points, func(p Point) bool { return p.Low != p.High })
}

func (t trace) colour() string { return chart.ColourClass(t.look) }

// named is what the legend calls a series.
func (t trace) named() string {
	name := cmp.Or(t.Name, "unnamed")
	if t.Paper && !strings.Contains(strings.ToLower(name), "paper") {
		name += " (paper)"
	}
	return name
}

func newPanel(id string, c Chart, l looks) Panel {
	view := Panel{Name: c.Title, Note: c.Note}
	traces := tracesOf(c, l)
	view.Note = strings.TrimSpace(view.Note + leftOut(c, traces))
	drawn := slices.DeleteFunc(slices.Clone(traces), func(t trace) bool { return len(t.Points) == 0 })
	if len(drawn) == 0 {
		return view
	}
	ax, ay := axesOf(c, drawn)
	var out chart.Canvas
	out.Frame(ax, ay, axisTitle(c.XTitle, c.LogX), axisTitle(c.YTitle, c.LogY))
	drawBreaks(&out, ax, ay)
	// Bars thinner than a pixel show no more than a curve.
	dense := slices.ContainsFunc(drawn, func(t trace) bool { return len(t.Points) > chart.Columns })
	if c.Bars && !dense {
		view.Legend = drawColumns(&out, drawn, ax, ay)
	} else {
		view.Legend = drawCurves(&out, drawn, ax, ay)
	}
	view.Chart = out.SVG(id, cmp.Or(c.Title, "Chart"), describeTraces(c, drawn))
	return view
}

// axisTitle says that a scale is no usual one.
func axisTitle(title string, log bool) string {
	if log {
		title += " (log scale)"
	}
	return title
}

// leftOut says what is not drawn: nothing is dropped silently.
func leftOut(c Chart, traces []trace) string {
	var b strings.Builder
	for _, t := range traces {
		if t.lost > 0 {
			fmt.Fprintf(&b, " Not drawn: %s of “%s” without a finite place.", prose.Counted(t.lost, "point", "points"), t.named())
		}
		if len(t.Series.Points) == 0 && t.lost == 0 {
			fmt.Fprintf(&b, " “%s” has no points.", t.named())
		}
	}
	if n := len(c.Series) - len(traces); n > 0 {
		fmt.Fprintf(&b, " The first %d series are drawn, %s are not.", mostSeries, prose.Count(n))
	}
	return b.String()
}

// drawBreaks marks where a log axis ends and zero stands apart.
func drawBreaks(c *chart.Canvas, ax, ay chart.Axis) {
	if ax.HasZero {
		x := (ax.Zero + ax.From) / 2
		c.Rect("gap", x-2.5, chart.PlotBottom-3, 5, 6)
		c.Line("axis", x-4.5, chart.PlotBottom+4, x-0.5, chart.PlotBottom-4)
		c.Line("axis", x+0.5, chart.PlotBottom+4, x+4.5, chart.PlotBottom-4)
	}
	if ay.HasZero {
		y := (ay.Zero + ay.From) / 2
		c.Rect("gap", chart.PlotLeft-3, y-2.5, 6, 5)
		c.Line("axis", chart.PlotLeft-4, y-0.5, chart.PlotLeft+4, y-4.5)
		c.Line("axis", chart.PlotLeft-4, y+4.5, chart.PlotLeft+4, y+0.5)
	}
}

// describeTraces tells a chart in words.
func describeTraces(c Chart, traces []trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s against %s.", cmp.Or(c.YTitle, "y"), cmp.Or(c.XTitle, "x"))
	for _, t := range traces {
		points := t.Points
		fmt.Fprintf(&b, " %s: ", t.named())
		if len(points) > mostTold {
			lowest := slices.MinFunc(points, func(a, b Point) int { return cmp.Compare(a.Y, b.Y) })
			highest := slices.MaxFunc(points, func(a, b Point) int { return cmp.Compare(a.Y, b.Y) })
			fmt.Fprintf(&b, "%s, lowest %s at %s, highest %s at %s, ", prose.Counted(len(points), "point", "points"),
				prose.Rounded(lowest.Y), prose.Rounded(lowest.X), prose.Rounded(highest.Y), prose.Rounded(highest.X))
			points = points[len(points)-1:]
			b.WriteString("at the end ")
		}
		for i, p := range points {
			if i > 0 {
				b.WriteString("; ")
			}
			fmt.Fprintf(&b, "%s at %s", prose.Rounded(p.Y), prose.Rounded(p.X))
			if p.Low != p.High && chart.Drawable(p.Low) && chart.Drawable(p.High) {
				fmt.Fprintf(&b, " [%s, %s]", prose.Rounded(p.Low), prose.Rounded(p.High))
			}
		}
		b.WriteString(".")
	}
	return b.String()
}
