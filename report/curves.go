package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// curve is one of the judge's figures over the rounds.
type curve struct {
	id   string
	name func(run) string
	unit func(run) string // of its axis; curves of one unit share a frame
	at   func(sim.RoundRecord) *event.Number
	of   func(sim.Metrics) *event.Number // the returned models'
}

// judged are the curves that runs may have.
var judged = []curve{
	{"loss", run.lossCurve, run.lossUnit,
		func(r sim.RoundRecord) *event.Number { return &r.Loss }, func(m sim.Metrics) *event.Number { return &m.Loss }},
	{"error", plainly("Test error"), plainly("share of wrong answers"),
		func(r sim.RoundRecord) *event.Number { return r.Error }, func(m sim.Metrics) *event.Number { return m.Error }},
	{"lambda", plainly("Lambda, set by the server"), plainly("median lambda"),
		func(r sim.RoundRecord) *event.Number { return r.Lambda }, func(m sim.Metrics) *event.Number { return m.Lambda }},
}

func plainly(s string) func(run) string { return func(run) string { return s } }

// lossCurve is the panel's name.
func (r run) lossCurve() string { return r.judgeName() + " loss" }

// points are the figures that can be drawn, by round; before the first judgement there
// are none.
func (c curve) points(r run) (out []chart.Point) {
	if c.id == "error" && ranked(r.Summary) { // hardly anybody falls ill: all curves are alike
		return nil
	}
	for _, record := range r.History.Rounds {
		if len(r.History.Rounds) == 1 && ranked(r.Summary) {
			break // a dot is no curve, and the table has its figure
		}
		if v := c.at(record); v != nil && chart.Drawable(float64(*v)) && chart.Drawable(float64(record.Loss)) && record.Round >= 0 {
			out = append(out, chart.Point{X: float64(record.Round), Y: float64(*v)})
		}
	}
	return out
}

func extent(points []chart.Point) (x, y chart.Domain) {
	x, y = chart.NoDomain(), chart.NoDomain()
	for _, p := range points {
		x, y = x.Include(p.X), y.Include(p.Y)
	}
	return x, y
}

// panels are one a run, empty without points: its own curve, and the others' behind it
// where they fit one frame.
func (c curve) panels(runs []run) (panels []panel, same bool) {
	lines := make([][]chart.Point, len(runs))
	xs, ys := make([]chart.Domain, len(runs)), make([]chart.Domain, len(runs))
	oneUnit := true
	for i, r := range runs {
		lines[i] = c.points(r)
		xs[i], ys[i] = extent(lines[i])
		oneUnit = oneUnit && c.unit(r) == c.unit(runs[0])
	}
	sharedX, sameX := chart.SharedDomains(xs, 6)
	sharedY, sameY := chart.SharedDomains(ys, 30)
	if same = sameX && sameY && oneUnit; same {
		xs, ys = sharedX, sharedY
	}
	panels = make([]panel, len(runs))
	for i, r := range runs {
		others := lines
		if !same {
			others = lines[i : i+1]
		}
		if len(lines[i]) > 0 {
			panels[i] = panel{Name: c.name(r), Chart: c.draw(fmt.Sprintf("%s-%d", c.id, i+1), r, lines[i], others, xs[i], ys[i])}
		}
	}
	return panels, same
}

func (c curve) draw(id string, r run, own []chart.Point, all [][]chart.Point, x, y chart.Domain) template.HTML {
	var out chart.Canvas
	kind := chart.Real
	switch {
	case y.Lo > 1e-290 && y.Hi > 100*y.Lo:
		kind, y = chart.Log, chart.Domain{Lo: y.Lo / 1.2, Hi: y.Hi * 1.2}
	case y.Lo > 0 && y.Lo < 0.6*y.Hi:
		y = chart.Domain{Lo: 0, Hi: y.Hi * 1.05}
	default:
		y = y.Wide().Padded(0.08)
	}
	x = x.Wide()
	if x.Lo >= 0 {
		x.Lo = 0
	}
	ax := chart.NewAxis(x, chart.Whole, chart.PlotLeft, chart.PlotRight, 6)
	ay := chart.NewAxis(y, kind, chart.PlotBottom, chart.PlotTop, 5)
	title := c.unit(r)
	if kind == chart.Log {
		title += " (log scale)"
	}
	out.Frame(ax, ay, "round", title)
	line := func(class string, points []chart.Point) {
		out.Path(class, chart.Polyline(chart.ThinLine(points, chart.Columns), ax, ay))
	}
	for _, points := range all {
		if len(points) > 0 && &points[0] != &own[0] {
			line("curve other", points)
		}
	}
	line("curve own", own)
	if len(own) == 1 {
		out.Circle("own-dot", ax.At(own[0].X), ay.At(own[0].Y), 3)
	}
	returned := r.Rounds
	if r.Returned == "best" {
		returned = r.BestRound
	}
	if i := slices.IndexFunc(own, func(p chart.Point) bool { return int(p.X) == returned }); i >= 0 { // it was recorded
		out.Circle("returned", ax.At(own[i].X), ay.At(own[i].Y), 5)
	}
	return out.SVG(id, r.label+": "+c.name(r)+" per round", c.describe(r, own))
}

func (c curve) describe(r run, own []chart.Point) string {
	first, last := own[0], own[len(own)-1]
	text := fmt.Sprintf("From %s in round %s to %s in round %s.", prose.Rounded(first.Y), prose.Count(int(first.X)), prose.Rounded(last.Y), prose.Count(int(last.X)))
	if v := c.of(r.Metrics); v != nil {
		text += " Of the returned models: " + rounded(*v) + "."
	}
	return text
}

// leakage is one cluster's largest total epsilon, by round.
type leakage struct {
	cluster int
	points  []chart.Point
}

// leakages are the curves of figure 2: at most mostNumbered, those that end
// highest. Without noise there are none.
func leakages(r run) (curves []leakage, left int) {
	byCluster := map[int]*leakage{}
	for _, record := range r.History.Rounds {
		for j, e := range record.MaxLeakage {
			v := float64(e)
			if !chart.Drawable(v) || v < 0 || record.Round < 0 {
				continue
			}
			if byCluster[j] == nil {
				byCluster[j] = &leakage{cluster: j}
			}
			byCluster[j].points = append(byCluster[j].points, chart.Point{X: float64(record.Round), Y: v})
		}
	}
	for _, c := range byCluster {
		curves = append(curves, *c)
	}
	end := func(l leakage) float64 { return l.points[len(l.points)-1].Y }
	slices.SortFunc(curves, func(a, b leakage) int { return cmp.Or(cmp.Compare(end(b), end(a)), a.cluster-b.cluster) })
	left = max(0, len(curves)-chart.MostNumbered)
	curves = curves[:len(curves)-left]
	slices.SortFunc(curves, func(a, b leakage) int { return a.cluster - b.cluster })
	return curves, left
}

func leakagePanel(id, label string, r run, curves []leakage, x, y chart.Domain) template.HTML {
	var out chart.Canvas
	ax := chart.NewAxis(chart.Domain{Lo: 0, Hi: max(1, x.Hi)}, chart.Whole, chart.PlotLeft, chart.PlotRight, 6)
	ay := chart.NewAxis(chart.Domain{Lo: 0, Hi: y.Hi * 1.06}, chart.Real, chart.PlotBottom, chart.PlotTop, 5)
	out.Frame(ax, ay, "round", "largest total ("+epsilonUnit(r)+")")
	for i, c := range curves {
		var marks []chart.Point
		out.Path("curve "+chart.ColourClass(c.cluster)+" "+chart.DashClass(c.cluster), steps(c.points, ax, ay))
		for _, p := range chart.Staggered(c.points, i, len(curves)) {
			marks = append(marks, chart.Place(p, ax, ay))
		}
		out.Marks("mark "+chart.ColourClass(c.cluster), c.cluster, 3.4, marks...)
	}
	return out.SVG(id, label+": largest total epsilon per cluster and round", describeLeakage(curves))
}

// steps draws a quantity that jumps when it changes.
func steps(points []chart.Point, ax, ay chart.Axis) string {
	var d strings.Builder
	points = chart.ThinLine(points, chart.Columns)
	if len(points) == 0 {
		return ""
	}
	fmt.Fprintf(&d, "M%s %s", chart.Coordinate(ax.At(0)), chart.Coordinate(ay.At(0)))
	for i, p := range points {
		d.WriteString("H" + chart.Coordinate(ax.At(p.X)))
		if i == 0 || p.Y != points[i-1].Y {
			d.WriteString("V" + chart.Coordinate(ay.At(p.Y)))
		}
	}
	return d.String()
}

func describeLeakage(curves []leakage) string {
	var b strings.Builder
	for _, c := range curves {
		last := c.points[len(c.points)-1]
		fmt.Fprintf(&b, "Cluster %d ends at %s in round %s. ", c.cluster+1, prose.Cost(last.Y), prose.Count(int(last.X)))
	}
	return strings.TrimSpace(b.String())
}
