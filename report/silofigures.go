package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// siloFigures are a run's two pictures: the test figure by round, and every silo's
// at the end.
func siloFigures(id, name string, r sim.SiloResult) vectorRow {
	figure := siloFigureName(r.Metrics)
	return vectorRow{
		Method: name, Claim: siloClaim(r.Privacy),
		Panels: []panel{
			{Name: figure + ", round by round", Chart: siloCurve(id+"-rounds", name, figure, r)},
			{Name: figure + " of every silo", Chart: siloDots(id+"-silos", name, figure, r)},
		},
		Caption: strings.TrimSpace("Left: the mean over all silos’ held-out examples after every judged round. Right: every silo by its number of training examples; the line is the mean. " +
			siloClusters(r.SiloSummary)),
	}
}

// siloClusters says how silos came to share models, where they could choose, and which
// models were left over: groups that have found no model of their own train together.
func siloClusters(r sim.SiloSummary) string {
	if r.Clusters < 2 {
		return ""
	}
	sizes, unused := make([]int, r.Clusters), 0
	for _, s := range r.Silos {
		if s.Cluster != nil && *s.Cluster >= 0 && *s.Cluster < len(sizes) {
			sizes[*s.Cluster]++
		}
	}
	words := make([]string, len(sizes))
	for i, n := range sizes {
		words[i] = prose.Count(n)
		if n == 0 {
			unused++
		}
	}
	text := "Clusters of " + prose.Joined(words) + " silos."
	if unused > 0 {
		text += fmt.Sprintf(" Nobody chose %d of %d models: groups may have been left together (algorithm.empty says what becomes of such models).", unused, len(sizes))
	}
	return text
}

func siloCurve(id, name, figure string, r sim.SiloResult) template.HTML {
	var points []chart.Point
	for _, one := range r.History.Rounds {
		v := float64(one.Loss)
		if one.Error != nil {
			v = float64(*one.Error)
		}
		if chart.Drawable(v) {
			points = append(points, chart.Point{X: float64(one.Round), Y: v})
		}
	}
	var out chart.Canvas
	x, y := extent(points)
	kind := chart.Real
	if y.Lo > 0 && y.Hi > 20*y.Lo {
		kind, y = chart.Log, chart.Domain{Lo: y.Lo / 1.2, Hi: y.Hi * 1.2}
	} else {
		y = y.Wide().Padded(0.08)
	}
	x = x.Wide()
	x.Lo = min(x.Lo, 0)
	ax, ay := chart.NewAxis(x, chart.Whole, chart.PlotLeft, chart.PlotRight, 6), chart.NewAxis(y, kind, chart.PlotBottom, chart.PlotTop, 5)
	title := figure
	if kind == chart.Log {
		title += " (log scale)"
	}
	out.Frame(ax, ay, "round", title)
	var d strings.Builder
	chart.Polyline(&d, chart.ThinLine(points, chart.Columns), ax, ay)
	out.Path("curve own", d.String())
	return out.SVG(id, name+": "+figure+" per round", fmt.Sprintf("It ends at %s after %s.",
		prose.Rounded(siloFigureOf(r.Metrics)), prose.Counted(r.Rounds, "round", "rounds")))
}

func siloDots(id, name, figure string, r sim.SiloResult) template.HTML {
	var points []chart.Point
	for _, s := range r.Silos {
		if v, ok := siloLineFigure(s); ok && chart.Drawable(v) {
			points = append(points, chart.Point{X: float64(s.Examples), Y: v})
		}
	}
	mean := siloFigureOf(r.Metrics)
	x, y := extent(points)
	if chart.Drawable(mean) {
		y = y.Include(mean)
	}
	y = y.Wide()
	ax := chart.NewAxis(x.Wide().Padded(0.04), chart.Whole, chart.PlotLeft, chart.PlotRight, 6)
	ay := chart.NewAxis(chart.Domain{Lo: min(0, y.Lo), Hi: y.Hi * 1.06}, chart.Real, chart.PlotBottom, chart.PlotTop, 5)
	var out chart.Canvas
	out.Frame(ax, ay, "training examples", figure)
	var d strings.Builder
	for _, p := range points {
		chart.CircleMark(&d, ax.At(p.X), ay.At(p.Y), 2.6)
	}
	out.Path("silo-dot", d.String())
	if chart.Drawable(mean) {
		out.Line("silo-mean", chart.PlotLeft, ay.At(mean), chart.PlotRight, ay.At(mean))
	}
	return out.SVG(id, name+": "+figure+" of every silo", fmt.Sprintf("%s; their mean, weighted by held-out examples, is %s.",
		prose.Counted(len(points), "silo", "silos"), prose.Rounded(mean)))
}
