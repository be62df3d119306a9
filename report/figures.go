package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// newVectorFigure is figure 1 of the papers: a row for every method.
func newVectorFigure(methods []method, results []sim.Result) vectorFigure {
	clouds := make([][2]cloud, len(results))
	xs, ys := make([]chart.Domain, len(results)), make([]chart.Domain, len(results))
	for i, r := range results {
		clouds[i] = [2]cloud{early(r), late(r)}
		x, y := clouds[i][0].domains()
		x2, y2 := clouds[i][1].domains()
		xs[i], ys[i] = x.Union(x2), y.Union(y2)
	}
	sharedX, sameX := chart.SharedDomains(xs, 2.5)
	sharedY, sameY := chart.SharedDomains(ys, 2.5)
	if sameX && sameY {
		xs, ys = sharedX, sharedY
	}
	lossCharts, sameLoss := lossPanels(methods, results)

	var f vectorFigure
	for i, r := range results {
		name, label := methods[i].Label, methods[i].Label+": released vectors, "
		first, last := window(r.History.Early), window(r.History.Late)
		f.Rows = append(f.Rows, vectorRow{Method: name, Claim: layout.ClaimOf(r.Privacy.Statement), Caption: vectorCaption(r), Panels: []panel{
			{Name: "Released " + first, Chart: clouds[i][0].draw(fmt.Sprintf("early-%d", i+1), label+first, xs[i], ys[i])},
			{Name: "Released " + last, Chart: clouds[i][1].draw(fmt.Sprintf("late-%d", i+1), label+last, xs[i], ys[i])},
			{Name: "Validation loss", Chart: lossCharts[i]},
		}})
	}
	f.Legend = vectorLegend(results, len(results) > 1 && sameLoss)
	f.Caption = figureCaption(results, sameX && sameY, sameLoss)
	return f
}

// window names the rounds that vectors were released in.
func window(releases []sim.Release) string {
	if len(releases) == 0 {
		return "never"
	}
	first, last := math.MaxInt, 0
	for _, v := range releases {
		first, last = min(first, v.Round), max(last, v.Round)
	}
	if first == last {
		return "in round " + prose.Count(first)
	}
	return fmt.Sprintf("in rounds %s to %s", prose.Count(first), prose.Count(last))
}

func vectorCaption(r sim.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Validation %s %s", lossName(r), prose.Rounded(float64(r.Metrics.ValidationLoss)))
	if pictures(r) {
		fmt.Fprintf(&b, "; %s of the validating clients’ pictures are classified right", accuracyOf(r))
	}
	if d := r.Metrics.WorstDistance; d != nil {
		fmt.Fprintf(&b, "; the true parameters of the group that fares worst are %s from the nearest model", prose.Rounded(float64(*d)))
	}
	b.WriteString(".")
	if n := max(len(r.History.Early), len(r.History.Late)); n > mostVectors {
		fmt.Fprintf(&b, " About %s of up to %s vectors are drawn in a panel.", prose.Count(mostVectors), prose.Count(n))
	}
	if r.Parameters > 2 {
		fmt.Fprintf(&b, " Only the first two of %s parameters are drawn.", prose.Count(r.Parameters))
	}
	if r.Parameters == 1 {
		b.WriteString(" There is one parameter: the height of a vector above the line only keeps it apart from others.")
	}
	return b.String()
}

func figureCaption(results []sim.Result, sameSpace, sameLoss bool) string {
	var b strings.Builder
	b.WriteString("The vectors that clients released in the first and in the last rounds, and the loss of the validating clients under the model that fits each best.")
	if len(results) > 1 {
		switch {
		case sameSpace && sameLoss:
			b.WriteString(" All methods are drawn on the same axes.")
		case sameSpace:
			b.WriteString(" Vectors are drawn on the same axes for all methods, losses are not.")
		case sameLoss:
			b.WriteString(" Losses are drawn on the same axes for all methods, vectors are not.")
		default:
			b.WriteString(" The axes differ from method to method.")
		}
	}
	return b.String()
}

func vectorLegend(results []sim.Result, others bool) []layout.LegendEntry {
	clusters, truth, ways := 0, false, false
	for _, r := range results {
		clusters = max(clusters, r.Hypotheses, len(r.History.Returned))
		truth = truth || len(r.History.Truth) > 0
		ways = ways || r.Parameters != 1 && len(r.History.Returned) <= chart.MostNumbered
	}
	var out []layout.LegendEntry
	add := func(text string, draw func(c *chart.Canvas)) {
		var c chart.Canvas
		draw(&c)
		out = append(out, layout.LegendEntry{Key: c.Key(), Text: text})
	}
	for j := range min(clusters, chart.MostNumbered) {
		text := fmt.Sprintf("released, cluster %d", j+1)
		if clusters == 1 {
			text = "released vector"
		}
		add(text, func(c *chart.Canvas) { c.MarkKey("release", j, 15) })
	}
	if clusters > chart.MostNumbered {
		out = append(out, layout.LegendEntry{Text: fmt.Sprintf("… and %s more clusters", prose.Count(clusters-chart.MostNumbered))})
	}
	add("hypothesis (model) with its number: at the start, and as returned", func(c *chart.Canvas) { c.HypothesisMarks([]chart.Point{{X: 13, Y: 10}}) })
	if ways {
		add("its way there", func(c *chart.Canvas) { c.Path("way s0", "M2 14C10 2 18 16 28 5") })
	}
	if truth {
		add("true parameters of a group", func(c *chart.Canvas) { c.TruthKey(15, 9) })
	}
	add("this method’s loss", func(c *chart.Canvas) { c.Path("curve own", "M2 5 10 11 18 12 28 13") })
	if others {
		add("the other methods’", func(c *chart.Canvas) { c.Path("curve other", "M2 5 10 11 18 12 28 13") })
	}
	add("round whose models are returned", func(c *chart.Canvas) { c.Circle("returned", 15, 9, 5) })
	return out
}

// newLeakageFigure is figure 2 of the papers.
func newLeakageFigure(methods []method, results []sim.Result) panelFigure {
	curves, left := make([][]leakage, len(results)), make([]int, len(results))
	xs, ys := make([]chart.Domain, len(results)), make([]chart.Domain, len(results))
	for i, r := range results {
		xs[i], ys[i] = chart.NoDomain(), chart.NoDomain()
		curves[i], left[i] = leakages(r)
		for _, c := range curves[i] {
			x, y := extent(c.points)
			xs[i], ys[i] = xs[i].Union(x), ys[i].Union(y).Include(0)
		}
	}
	xs, _ = chart.SharedDomains(xs, 6)
	ys, _ = chart.SharedDomains(ys, 6)
	f := panelFigure{Caption: "The largest total epsilon among the clients that ever had a release in a cluster. A level stretch means that nobody at the top was asked in those rounds."}
	drawnClusters := map[int]bool{}
	for i, r := range results {
		label := methods[i].Label
		switch {
		case len(curves[i]) > 0 && ys[i].Hi > 0:
			f.Panels = append(f.Panels, panel{label, leakagePanel(fmt.Sprintf("leakage-%d", i+1), label, r, curves[i], xs[i], ys[i]), layout.Claimed(r.Privacy.Statement)})
			for _, c := range curves[i] {
				drawnClusters[c.cluster] = true
			}
		case math.IsInf(float64(r.Privacy.MaxEpsilon), 1):
			f.miss(label, "no curve. Without noise the leakage is unlimited from a client’s first release on.")
		default:
			f.miss(label, "no curve. Nothing was released.")
		}
		if left[i] > 0 {
			f.Caption += fmt.Sprintf(" %s: the %d clusters that end highest are drawn, %s are not.", label, len(curves[i]), prose.Count(left[i]))
		}
	}
	f.Legend = leakageLegend(drawnClusters)
	return f
}

func leakageLegend(drawn map[int]bool) []layout.LegendEntry {
	var out []layout.LegendEntry
	for _, j := range slices.Sorted(maps.Keys(drawn)) {
		var c chart.Canvas
		c.Path("curve "+chart.ColourClass(j)+" "+chart.DashClass(j), "M1 9H29")
		c.MarkKey("mark", j, 15)
		out = append(out, layout.LegendEntry{Key: c.Key(), Text: fmt.Sprintf("cluster %d", j+1)})
	}
	return out
}

// newBudgetFigure is the distribution of the clients' budgets.
func newBudgetFigure(methods []method, results []sim.Result) panelFigure {
	f := panelFigure{Caption: "How many clients spent how much by the end, over all their releases."}
	for i, r := range results {
		s := spent(r)
		label := methods[i].Label
		if !s.drawn() {
			f.miss(label, s.words())
			continue
		}
		f.Panels = append(f.Panels, panel{label, budgetPanel(fmt.Sprintf("budgets-%d", i+1), label, r, s), layout.Claimed(r.Privacy.Statement)})
		if s.endless > 0 {
			f.Caption += fmt.Sprintf(" %s: not drawn are %s with an unlimited total.", label, prose.Counted(s.endless, "client", "clients"))
		}
	}
	return f
}
