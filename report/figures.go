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

// fitFigure is figure 1: what was released, and how well the models fit; a row a run.
type fitFigure struct {
	Rows    []fitRow
	Legend  []chart.LegendEntry
	Caption string
}

type fitRow struct {
	Method  string
	Claim   layout.Badge
	Panels  []panel
	Caption string
}

// newFitFigure draws the released vectors of models that have a place in the plane, the
// curves of the judge's figures, and every participant's figure, as a run has them.
func newFitFigure(runs []run) fitFigure {
	var f fitFigure
	planes, sameSpace := planePanels(runs)
	curves := make([][]panel, len(runs))
	sameCurves := true
	for _, c := range judged {
		panels, same := c.panels(runs)
		sameCurves = sameCurves && same
		for i, p := range panels {
			if p.Chart != "" {
				curves[i] = append(curves[i], p)
			}
		}
	}
	plane := false
	for i, r := range runs {
		plane = plane || len(planes[i]) > 0
		panels := append(planes[i], curves[i]...)
		if p, ok := dotsPanel(fmt.Sprintf("dots-%d", i+1), r); ok {
			panels = append(panels, p)
		}
		if len(panels) == 0 && ranked(r.Summary) {
			continue
		}
		f.Rows = append(f.Rows, fitRow{Method: r.label, Claim: r.claim(), Caption: fitCaption(r, len(planes[i]) > 0), Panels: panels})
	}
	if plane || slices.ContainsFunc(curves, func(drawn []panel) bool { return len(drawn) > 0 }) {
		f.Legend = fitLegend(runs, plane, len(runs) > 1 && sameCurves)
	}
	f.Caption = figureCaption(runs, plane, sameSpace, sameCurves)
	return f
}

// planePanels are the vectors of the first and of the last rounds, for models of one or
// two parameters.
func planePanels(runs []run) (panels [][]panel, same bool) {
	drawn := make([][2]cloud, len(runs))
	xs, ys := make([]chart.Domain, len(runs)), make([]chart.Domain, len(runs))
	for i, r := range runs {
		xs[i], ys[i] = chart.NoDomain(), chart.NoDomain()
		if !r.inPlane() {
			continue
		}
		drawn[i] = clouds(r)
		for _, c := range drawn[i] {
			x, y := c.domains()
			xs[i], ys[i] = xs[i].Union(x), ys[i].Union(y)
		}
	}
	sharedX, sameX := chart.SharedDomains(xs, 2.5)
	sharedY, sameY := chart.SharedDomains(ys, 2.5)
	if same = sameX && sameY; same {
		xs, ys = sharedX, sharedY
	}
	panels = make([][]panel, len(runs))
	for i, r := range runs {
		if !r.inPlane() {
			continue
		}
		title := r.label + ": released vectors, "
		first, last := window(r.History.Early), window(r.History.Late)
		panels[i] = []panel{
			{Name: "Released " + first, Chart: drawn[i][0].draw(fmt.Sprintf("early-%d", i+1), title+first, xs[i], ys[i])},
			{Name: "Released " + last, Chart: drawn[i][1].draw(fmt.Sprintf("late-%d", i+1), title+last, xs[i], ys[i])},
		}
	}
	return panels, same
}

// inPlane says that released vectors can be drawn whole.
func (r run) inPlane() bool {
	return (r.Parameters == 1 || r.Parameters == 2) && len(r.History.Early) > 0
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

func fitCaption(r run, plane bool) string {
	var b strings.Builder
	value, _ := headline(r.Summary)
	fmt.Fprintf(&b, "%s %s", r.headlineName(), prose.Rounded(value))
	if a := r.Metrics.Accuracy; a != nil && !tested(r.Summary) {
		fmt.Fprintf(&b, "; %s of the validating clients’ examples are classified right", percent(a.Value))
	}
	if d := r.Metrics.WorstDistance; d != nil {
		fmt.Fprintf(&b, "; the true parameters of the group that fares worst are %s from the nearest model", rounded(*d))
	}
	b.WriteString(".")
	if n := max(len(r.History.Early), len(r.History.Late)); plane && n > mostVectors {
		fmt.Fprintf(&b, " About %s of up to %s vectors are drawn in a panel.", prose.Count(mostVectors), prose.Count(n))
	}
	if plane && r.Parameters == 1 {
		b.WriteString(" There is one parameter: the height of a vector above the line only keeps it apart from others.")
	}
	if slices.ContainsFunc(r.History.Rounds, func(c sim.RoundRecord) bool { return c.Lambda != nil && math.IsInf(float64(*c.Lambda), 1) }) {
		b.WriteString(" Lambda is not drawn where it is infinite: there most coordinates are the same for all.")
	}
	return b.String()
}

func figureCaption(runs []run, plane, sameSpace, sameCurves bool) string {
	parts := []string{}
	if plane {
		parts = append(parts, "The vectors that clients released in the first and in the last rounds.")
	}
	for _, r := range runs {
		words := "The loss of the validating clients under the model that fits each best, after every judged round."
		if tested(r.Summary) {
			words = "The figures of " + testedWords(r.Summary) + ", after every judged round."
		}
		switch {
		case ranked(r.Summary):
			words = "The figures of " + testedWords(r.Summary) + ". The broken line is that of all together."
		case r.Judge == "own":
			words += " At the end client by client, by its number of training examples: the broken line is the mean."
		}
		if !slices.Contains(parts, words) {
			parts = append(parts, words)
		}
	}
	switch {
	case len(runs) == 1:
	case plane && sameSpace && sameCurves:
		parts = append(parts, "All methods are drawn on the same axes.")
	case plane && sameSpace:
		parts = append(parts, "Vectors are drawn on the same axes for all methods, curves are not.")
	case sameCurves:
		parts = append(parts, "Curves are drawn on the same axes for all methods.")
	default:
		parts = append(parts, "The axes differ from method to method.")
	}
	return strings.Join(parts, " ")
}

func fitLegend(runs []run, plane, others bool) []chart.LegendEntry {
	var out []chart.LegendEntry
	add := func(text string, draw func(c *chart.Canvas)) { out = append(out, chart.Entry(text, draw)) }
	if plane {
		clusters, truth, ways := 0, false, false
		for _, r := range runs {
			if r.inPlane() {
				clusters = max(clusters, r.Hypotheses, len(r.History.Returned))
				truth = truth || len(r.History.Truth) > 0
				ways = ways || r.Parameters != 1 && len(r.History.Returned) <= chart.MostNumbered
			}
		}
		for j := range min(clusters, chart.MostNumbered) {
			text := fmt.Sprintf("released, cluster %d", j+1)
			if clusters == 1 {
				text = "released vector"
			}
			add(text, func(c *chart.Canvas) { c.Marks("release "+chart.ColourClass(j), j, 4, chart.Point{X: 15, Y: 9}) })
		}
		if clusters > chart.MostNumbered {
			out = append(out, chart.LegendEntry{Text: fmt.Sprintf("… and %s more clusters", prose.Count(clusters-chart.MostNumbered))})
		}
		add("hypothesis (model) with its number: at the start, and as returned", func(c *chart.Canvas) { c.HypothesisMarks([]chart.Point{{X: 13, Y: 10}}) })
		if ways {
			add("its way there", func(c *chart.Canvas) { c.Path("way s0", "M2 14C10 2 18 16 28 5") })
		}
		if truth {
			add("true parameters of a group", func(c *chart.Canvas) { c.TruthKey(15, 9) })
		}
	}
	add("this method’s figure", func(c *chart.Canvas) { c.Path("curve own", "M2 5 10 11 18 12 28 13") })
	if others {
		add("the other methods’", func(c *chart.Canvas) { c.Path("curve other", "M2 5 10 11 18 12 28 13") })
	}
	add("round whose models are returned", func(c *chart.Canvas) { c.Circle("returned", 15, 9, 5) })
	return out
}

// newLeakageFigure is figure 2 of the papers.
func newLeakageFigure(runs []run) panelFigure {
	curves, left := make([][]leakage, len(runs)), make([]int, len(runs))
	xs, ys := make([]chart.Domain, len(runs)), make([]chart.Domain, len(runs))
	for i, r := range runs {
		xs[i], ys[i] = chart.NoDomain(), chart.NoDomain()
		curves[i], left[i] = leakages(r)
		for _, c := range curves[i] {
			x, y := extent(c.points)
			xs[i], ys[i] = xs[i].Union(x), ys[i].Union(y).Include(0)
		}
	}
	xs, _ = chart.SharedDomains(xs, 6)
	ys, _ = chart.SharedDomains(ys, 6)
	f := panelFigure{Caption: "The largest total epsilon among the clients that ever had a release in a cluster (all clients, where there is one model). A level stretch means that nobody at the top was asked in those rounds."}
	drawnClusters := map[int]bool{}
	for i, r := range runs {
		label := r.label
		switch {
		case len(curves[i]) > 0 && ys[i].Hi > 0:
			f.Panels = append(f.Panels, panel{Name: label, Chart: leakagePanel(fmt.Sprintf("leakage-%d", i+1), label, r, curves[i], xs[i], ys[i]), Terms: layout.Claimed(r.Privacy.Statement)})
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

func leakageLegend(drawn map[int]bool) (out []chart.LegendEntry) {
	for _, j := range slices.Sorted(maps.Keys(drawn)) {
		out = append(out, chart.Entry(fmt.Sprintf("cluster %d", j+1), func(c *chart.Canvas) {
			c.Path("curve "+chart.ColourClass(j)+" "+chart.DashClass(j), "M1 9H29")
			c.Marks("mark "+chart.ColourClass(j), j, 4, chart.Point{X: 15, Y: 9})
		}))
	}
	return out
}

// newBudgetFigure is the distribution of the clients' budgets.
func newBudgetFigure(runs []run) panelFigure {
	f := panelFigure{Caption: "How many clients spent how much by the end, over all their releases."}
	for i, r := range runs {
		s := spent(r)
		label := r.label
		if !s.drawn() {
			f.miss(label, s.words())
			continue
		}
		f.Panels = append(f.Panels, panel{Name: label, Chart: budgetPanel(fmt.Sprintf("budgets-%d", i+1), label, r, s), Terms: layout.Claimed(r.Privacy.Statement)})
		if s.endless > 0 {
			f.Caption += fmt.Sprintf(" %s: not drawn are %s with an unlimited total.", label, prose.Counted(s.endless, "client", "clients"))
		}
	}
	return f
}
