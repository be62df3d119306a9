package report

import (
	"fmt"
	"html/template"
	"strings"

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
		words[i] = count(n)
		if n == 0 {
			unused++
		}
	}
	text := "Clusters of " + joined(words) + " silos."
	if unused > 0 {
		text += fmt.Sprintf(" Nobody chose %d of %d models: groups may have been left together (algorithm.empty says what becomes of such models).", unused, len(sizes))
	}
	return text
}

func siloCurve(id, name, figure string, r sim.SiloResult) template.HTML {
	var points []point
	for _, one := range r.History.Rounds {
		v := float64(one.Loss)
		if one.Error != nil {
			v = float64(*one.Error)
		}
		if drawable(v) {
			points = append(points, point{float64(one.Round), v})
		}
	}
	var out canvas
	x, y := extent(points)
	kind := realAxis
	if y.lo > 0 && y.hi > 20*y.lo {
		kind, y = logAxis, domain{y.lo / 1.2, y.hi * 1.2}
	} else {
		y = y.wide().padded(0.08)
	}
	x = x.wide()
	x.lo = min(x.lo, 0)
	ax, ay := newAxis(x, wholeAxis, plotLeft, plotRight, 6), newAxis(y, kind, plotBottom, plotTop, 5)
	title := figure
	if kind == logAxis {
		title += " (log scale)"
	}
	out.frame(ax, ay, "round", title)
	var d strings.Builder
	polyline(&d, thinLine(points, curveColumns), ax, ay)
	out.path("curve own", d.String())
	return out.svg(id, name+": "+figure+" per round", fmt.Sprintf("It ends at %s after %s.",
		rounded(siloFigureOf(r.Metrics)), counted(r.Rounds, "round", "rounds")))
}

func siloDots(id, name, figure string, r sim.SiloResult) template.HTML {
	var points []point
	for _, s := range r.Silos {
		if v, ok := siloLineFigure(s); ok && drawable(v) {
			points = append(points, point{float64(s.Examples), v})
		}
	}
	mean := siloFigureOf(r.Metrics)
	x, y := extent(points)
	if drawable(mean) {
		y = y.include(mean)
	}
	y = y.wide()
	ax := newAxis(x.wide().padded(0.04), wholeAxis, plotLeft, plotRight, 6)
	ay := newAxis(domain{min(0, y.lo), y.hi * 1.06}, realAxis, plotBottom, plotTop, 5)
	var out canvas
	out.frame(ax, ay, "training examples", figure)
	var d strings.Builder
	for _, p := range points {
		circleMark(&d, ax.at(p.x), ay.at(p.y), 2.6)
	}
	out.path("silo-dot", d.String())
	if drawable(mean) {
		out.line("silo-mean", plotLeft, ay.at(mean), plotRight, ay.at(mean))
	}
	return out.svg(id, name+": "+figure+" of every silo", fmt.Sprintf("%s; their mean, weighted by held-out examples, is %s.",
		counted(len(points), "silo", "silos"), rounded(mean)))
}
