package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
)

// points are a line's, by steps made, or by rounds where these are not counted.
func (l courseLine) points(r run, kind courseKind) (out []chart.Point) {
	stepped, each := r.stepped(), r.stepsARound()
	for _, record := range r.History.Rounds {
		x := record.Round
		switch {
		case stepped && record.Steps != nil:
			x = record.Steps.Made
		case stepped:
			x *= each
		}
		v := l.at(r, record)
		if v == nil || x < 1 || !chart.Drawable(float64(*v)) || kind == scales && *v <= 1e-290 || kind == shares && (*v < 0 || *v > 1) {
			continue
		}
		if len(out) > 0 && float64(x) <= out[len(out)-1].X {
			continue
		}
		out = append(out, chart.Point{X: float64(x), Y: float64(*v)})
	}
	if kind == totals && len(out) > 0 {
		out = slices.Insert(out, 0, chart.Point{})
	}
	return out
}

// class is the line's style.
func (l courseLine) class() string {
	if l.name == "" {
		return "curve own"
	}
	return "curve " + chart.ColourClass(l.colour) + " " + chart.DashClass(l.colour)
}

// drawn are the points of a line that has a picture: one that never moves is told in words.
func (c course) drawn(l courseLine, r run) []chart.Point {
	points := l.points(r, c.kind)
	if c.kind == scales && constant(points) || len(points) == 1 && ranked(r.Summary) { // a dot is no course
		return nil
	}
	return points
}

// panels are one a run, empty where there is nothing to draw; on common axes where that
// leaves all readable.
func (c course) panels(runs []run) []panel {
	lines := make([][][]chart.Point, len(runs))
	xs, ys := make([]chart.Domain, len(runs)), make([]chart.Domain, len(runs))
	for i, r := range runs {
		xs[i], ys[i] = chart.NoDomain(), chart.NoDomain()
		for _, l := range c.lines {
			points := c.drawn(l, r)
			lines[i] = append(lines[i], points)
			x, y := extent(points)
			xs[i], ys[i] = xs[i].Union(x), ys[i].Union(y)
		}
		if c.kind == scales && !ys[i].Empty() {
			ys[i] = chart.Domain{Lo: math.Log10(ys[i].Lo), Hi: math.Log10(ys[i].Hi)}
		}
	}
	if c.oneUnit(runs, xs) {
		xs, _ = chart.SharedDomains(xs, 6)
		ys, _ = chart.SharedDomains(ys, 6)
	}
	out := make([]panel, len(runs))
	for i, r := range runs {
		if xs[i].Empty() || !slices.ContainsFunc(lines[i], func(points []chart.Point) bool { return len(points) > 0 }) {
			continue
		}
		out[i] = panel{Name: c.name(r), Chart: c.draw(fmt.Sprintf("%s-%d", c.id, i+1), r, lines[i], xs[i], ys[i]), Unseen: c.unseen}
		if c.kind == totals {
			out[i].Terms = layout.Claimed(r.Privacy.Statement)
		}
	}
	return out
}

// oneUnit says that all runs that have something to draw measure the same on both axes.
func (c course) oneUnit(runs []run, xs []chart.Domain) bool {
	var drawn []run
	for i, r := range runs {
		if !xs[i].Empty() {
			drawn = append(drawn, r)
		}
	}
	return !slices.ContainsFunc(drawn, func(r run) bool { return r.over() != drawn[0].over() || c.unit(r) != c.unit(drawn[0]) })
}

// constant says that a line never moves.
func constant(points []chart.Point) bool {
	return !slices.ContainsFunc(points, func(p chart.Point) bool { return p.Y != points[0].Y })
}

// axis is the upright one, with room for the level.
func (c course) axis(y chart.Domain, level float64) chart.Axis {
	kind := chart.Real
	switch c.kind {
	case shares:
		y = chart.Domain{Lo: 0, Hi: 1}
	case totals:
		y = chart.Domain{Lo: 0, Hi: 1.06 * max(y.Hi, level)}
	case scales:
		// Less than a factor of two would leave a line between two labels.
		middle, half := (y.Lo+y.Hi)/2, max(0.16, 0.54*y.Span())
		kind, y = chart.Log, chart.Domain{Lo: math.Pow(10, middle-half), Hi: math.Pow(10, middle+half)}
	default:
		y = y.Wide().Padded(0.08)
	}
	return chart.NewAxis(y, kind, chart.PlotBottom, chart.PlotTop, 5)
}

func (c course) draw(id string, r run, lines [][]chart.Point, x, y chart.Domain) template.HTML {
	level, levelName := 0.0, ""
	if c.level != nil {
		level, levelName = c.level(r)
	}
	if levelName == "" || c.kind == totals && !(level > 0 && level < 3*y.Hi) {
		level, levelName = 0, ""
	}
	ax := chart.NewAxis(chart.Domain{Lo: 0, Hi: max(1, x.Hi)}, chart.Whole, chart.PlotLeft, chart.PlotRight, 6)
	ay := c.axis(y, level)
	over, title := r.over(), c.unit(r)
	if c.kind == scales {
		title += " (log scale)"
	}
	var out chart.Canvas
	out.Frame(ax, ay, over, title)
	if levelName != "" {
		out.Line("chance", chart.PlotLeft, ay.At(level), chart.PlotRight, ay.At(level))
	}
	var words []string
	for i, points := range lines {
		if len(points) == 0 {
			continue
		}
		out.Path(c.lines[i].class(), chart.Polyline(chart.ThinLine(points, chart.Columns), ax, ay))
		last := points[len(points)-1]
		if len(points) == 1 {
			out.Circle("own-dot", ax.At(last.X), ay.At(last.Y), 3)
		}
		words = append(words, c.describe(c.lines[i].name, points[0], last, over))
	}
	if levelName != "" {
		name, shift := levelName, 14.0
		if c.kind == totals {
			name, shift = name+" "+prose.Cost(level), -5
		}
		out.Text("mark-name", "start", chart.PlotLeft+6, ay.At(level)+shift, name)
	}
	return out.SVG(id, r.label+": "+strings.ToLower(c.name(r)), strings.Join(words, " "))
}

func (c course) describe(name string, first, last chart.Point, over string) string {
	write := prose.Rounded
	if c.kind == totals {
		write = prose.Cost
	}
	text := fmt.Sprintf("From %s at %s %s to %s at %s %s.", write(first.Y), over, prose.Count(int(first.X)), write(last.Y), over, prose.Count(int(last.X)))
	if name != "" {
		text = capital(name) + ": f" + text[1:]
	}
	return text
}
