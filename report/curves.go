package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// losses are the validation losses that can be drawn, by round.
func losses(r sim.Result) []chart.Point {
	var out []chart.Point
	for _, record := range r.History.Rounds {
		if v := float64(record.ValidationLoss); chart.Drawable(v) && record.Round >= 0 {
			out = append(out, chart.Point{X: float64(record.Round), Y: v})
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

// lossPanels are the third panels of figure 1, one a result: its own loss, and
// the others' behind it where they fit one frame.
func lossPanels(methods []method, results []sim.Result) (panels []template.HTML, same bool) {
	lines := make([][]chart.Point, len(results))
	xs, ys := make([]chart.Domain, len(results)), make([]chart.Domain, len(results))
	for i, r := range results {
		lines[i] = losses(r)
		xs[i], ys[i] = extent(lines[i])
	}
	xs, sameX := chart.SharedDomains(xs, 6)
	ys, sameY := chart.SharedDomains(ys, 30)
	same = sameX && sameY && sameLossKind(results)
	for i, r := range results {
		others := lines
		if !same {
			others = lines[i : i+1]
		}
		panels = append(panels, lossPanel(fmt.Sprintf("loss-%d", i+1), methods[i].Label, r, lines[i], others, xs[i], ys[i]))
	}
	return panels, same
}

func lossPanel(id, label string, r sim.Result, own []chart.Point, all [][]chart.Point, x, y chart.Domain) template.HTML {
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
	title := lossUnit(r)
	if kind == chart.Log {
		title += " (log scale)"
	}
	out.Frame(ax, ay, "round", title)
	curve := func(class string, points []chart.Point) {
		var d strings.Builder
		chart.Polyline(&d, chart.ThinLine(points, chart.Columns), ax, ay)
		out.Path(class, d.String())
	}
	for _, points := range all {
		if len(own) == 0 || len(points) == 0 || &points[0] != &own[0] {
			curve("curve other", points)
		}
	}
	curve("curve own", own)
	if len(own) == 1 {
		out.Circle("own-dot", ax.At(own[0].X), ay.At(own[0].Y), 3)
	}
	if p, ok := returnedPoint(r, own); ok {
		out.Circle("returned", ax.At(p.X), ay.At(p.Y), 5)
	}
	return out.SVG(id, label+": validation loss per round", describeLoss(r, own))
}

// returnedPoint is the loss of the round whose models are returned, if that
// round was recorded.
func returnedPoint(r sim.Result, own []chart.Point) (chart.Point, bool) {
	for _, p := range own {
		if int(p.X) == returnedRound(r) {
			return p, true
		}
	}
	return chart.Point{}, false
}

func returnedRound(r sim.Result) int {
	if r.Returned == "best" {
		return r.BestRound
	}
	return r.Rounds
}

func describeLoss(r sim.Result, own []chart.Point) string {
	if len(own) == 0 {
		return "No loss was recorded."
	}
	first, last := own[0], own[len(own)-1]
	return fmt.Sprintf("From %s in round %s to %s in round %s. Of the returned models: %s.",
		prose.Rounded(first.Y), prose.Count(int(first.X)), prose.Rounded(last.Y), prose.Count(int(last.X)), prose.Rounded(float64(r.Metrics.ValidationLoss)))
}

// leakage is one cluster's largest total epsilon, by round.
type leakage struct {
	cluster int
	points  []chart.Point
}

// leakages are the curves of figure 2: at most mostNumbered, those that end
// highest. Without noise there are none.
func leakages(r sim.Result) (curves []leakage, left int) {
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
	slices.SortFunc(curves, func(a, b leakage) int {
		if end(a) != end(b) {
			if end(a) > end(b) {
				return -1
			}
			return 1
		}
		return a.cluster - b.cluster
	})
	left = max(0, len(curves)-chart.MostNumbered)
	curves = curves[:len(curves)-left]
	slices.SortFunc(curves, func(a, b leakage) int { return a.cluster - b.cluster })
	return curves, left
}

func leakagePanel(id, label string, r sim.Result, curves []leakage, x, y chart.Domain) template.HTML {
	var out chart.Canvas
	ax := chart.NewAxis(chart.Domain{Lo: 0, Hi: max(1, x.Hi)}, chart.Whole, chart.PlotLeft, chart.PlotRight, 6)
	ay := chart.NewAxis(chart.Domain{Lo: 0, Hi: y.Hi * 1.06}, chart.Real, chart.PlotBottom, chart.PlotTop, 5)
	out.Frame(ax, ay, "round", "largest total ("+epsilonUnit(r)+")")
	for i, c := range curves {
		out.Path("curve "+chart.ColourClass(c.cluster)+" "+chart.DashClass(c.cluster), steps(c.points, ax, ay))
		// Marks are staggered: curves that coincide still show both shapes.
		var marks strings.Builder
		markEvery(&marks, c, i, len(curves), ax, ay)
		out.Path("mark "+chart.ColourClass(c.cluster), marks.String())
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

func markEvery(b *strings.Builder, c leakage, i, curves int, ax, ay chart.Axis) {
	const marks = 5
	for m := range marks {
		share := (float64(m) + (float64(i)+0.5)/float64(curves)) / marks
		p := c.points[min(len(c.points)-1, int(share*float64(len(c.points))))]
		chart.MarkPath(b, c.cluster, ax.At(p.X), ay.At(p.Y), 3.4)
	}
}

func describeLeakage(curves []leakage) string {
	var b strings.Builder
	for _, c := range curves {
		last := c.points[len(c.points)-1]
		fmt.Fprintf(&b, "Cluster %d ends at %s in round %s. ", c.cluster+1, prose.Cost(last.Y), prose.Count(int(last.X)))
	}
	return strings.TrimSpace(b.String())
}
