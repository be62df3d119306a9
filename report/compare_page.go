package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// comparedFigure is, client by client, how a run's method compares with others: a panel
// and a table each.
type comparedFigure struct {
	panelFigure
	Tables []comparedTable
}

type comparedTable struct {
	ID, Title, Words string
	Table            layout.Table
}

func newComparedFigure(runs []run) (f comparedFigure) {
	for i, r := range runs {
		for k, c := range r.Comparison {
			sorted := byGain(c)
			id := fmt.Sprintf("compared-%d-%d", i+1, k+1)
			p, ok := gainPanel(id, r, c, sorted)
			if !ok {
				continue
			}
			f.Panels = append(f.Panels, p)
			f.Tables = append(f.Tables, comparedTable{
				ID: id + "-h", Title: p.Name, Words: verdictWords(r.Algorithm, c), Table: gainTable(id+"-h", r, c, sorted),
			})
		}
	}
	if len(f.Panels) == 0 {
		return f
	}
	f.Caption = "Every client’s own figure under this run’s method less that under the other one, on the same held-out examples; the bar is the 95 % interval of the difference over these examples, models held fixed. " +
		"Clients stand in the order of what they gained. Under the line they would have fared better with the other method. Each compared run has a budget of its own; to choose between them by these figures is not charged."
	for _, v := range []string{sim.VerdictBetter, sim.VerdictWorse, sim.VerdictUnclear} {
		f.Legend = append(f.Legend, chart.Entry(verdictLegend[v], func(c *chart.Canvas) {
			c.Path("whisker "+verdictClass(v), "M15 1V17")
			c.Marks("mark "+verdictClass(v), verdictShape[v], 4, chart.Point{X: 15, Y: 9})
		}))
	}
	return f
}

var (
	verdictLegend = map[string]string{
		sim.VerdictBetter: "better with this run’s method", sim.VerdictWorse: "worse", sim.VerdictUnclear: "the interval leaves it open, or there is none",
	}
	verdictShape = map[string]int{sim.VerdictBetter: 2, sim.VerdictWorse: 4, sim.VerdictUnclear: chart.Circle} // up, down, neither
)

// verdictClass is a verdict's colour in the style.
func verdictClass(v string) string {
	switch v {
	case sim.VerdictBetter:
		return "s0"
	case sim.VerdictWorse:
		return "s1"
	}
	return "open"
}

// lessIsBetter says that clients gain where the figure falls.
func lessIsBetter(c sim.Comparison) bool {
	return c.Figure == "rmse" || c.Figure == "mse" || c.Figure == "log_loss"
}

// gain is what a client won by the run's method.
func gain(c sim.Comparison, p sim.Compared) float64 {
	if lessIsBetter(c) {
		return -float64(p.Difference.Value)
	}
	return float64(p.Difference.Value)
}

// byGain are those that can be compared, who gained most first, and then the others.
func byGain(c sim.Comparison) []sim.Compared {
	out := slices.Clone(c.Participants)
	slices.SortStableFunc(out, func(a, b sim.Compared) int {
		switch {
		case a.Difference == nil && b.Difference == nil:
			return 0
		case a.Difference == nil:
			return 1
		case b.Difference == nil:
			return -1
		}
		return cmp.Compare(gain(c, b), gain(c, a))
	})
	return out
}

// gained is a difference with its sign, as pages write it.
func gained(n event.Number) string {
	if n > 0 {
		return "+" + rounded(n)
	}
	return rounded(n)
}

// barred says that a difference has an interval that can be drawn.
func barred(d *metrics.Figure) bool {
	return d.Low != nil && d.High != nil && chart.Drawable(float64(*d.Low)) && chart.Drawable(float64(*d.High))
}

// gainPanel draws the differences with their intervals, gains upward.
func gainPanel(id string, r run, c sim.Comparison, sorted []sim.Compared) (panel, bool) {
	sign := 1.0
	if lessIsBetter(c) {
		sign = -1
	}
	y := chart.NoDomain().Include(0)
	n := 0
	for _, p := range sorted {
		if p.Difference == nil || !chart.Drawable(float64(p.Difference.Value)) {
			break
		}
		n++
		y = y.Include(sign * float64(p.Difference.Value))
		if barred(p.Difference) {
			y = y.Include(sign * float64(*p.Difference.Low)).Include(sign * float64(*p.Difference.High))
		}
	}
	if n == 0 {
		return panel{}, false
	}
	name := fmt.Sprintf("%s against %s", r.label, otherName(c))
	unit := "gain in " + mainName(c)
	if lessIsBetter(c) {
		unit = "fall of the " + mainName(c)
	}
	ax := chart.NewAxis(chart.Domain{Lo: 0.5, Hi: float64(n) + 0.5}, chart.Whole, chart.PlotLeft, chart.PlotRight, 6)
	ay := chart.NewAxis(y.Wide().Padded(0.05), chart.Real, chart.PlotBottom, chart.PlotTop, 5)
	var out chart.Canvas
	out.Frame(ax, ay, "clients, in the table’s order", unit)
	out.Line("zero", chart.PlotLeft, ay.At(0), chart.PlotRight, ay.At(0))
	for i, p := range sorted[:n] {
		class, x := verdictClass(p.Verdict), ax.At(float64(i+1))
		if d := p.Difference; barred(d) {
			out.Line("whisker "+class, x, ay.At(sign*float64(*d.Low)), x, ay.At(sign*float64(*d.High)))
		}
		out.Marks("mark "+class, verdictShape[p.Verdict], 3.6, chart.Point{X: x, Y: ay.At(sign * float64(p.Difference.Value))})
	}
	return panel{Name: name, Chart: template.HTML(out.SVG(id, name, verdictWords(r.Algorithm, c)))}, true
}

// gainTable is the panel in figures.
func gainTable(id string, r run, c sim.Comparison, sorted []sim.Compared) layout.Table {
	t := layout.Table{ID: id}
	sorted = sorted[:min(len(sorted), mostParticipants)]
	column := func(name string, figures bool, cell func(p sim.Compared) layout.Cell) {
		layout.AddColumn(&t, name, figures, sorted, cell)
	}
	column("Participant", false, func(p sim.Compared) layout.Cell { return layout.Words(p.Name) })
	column("Held out", true, func(p sim.Compared) layout.Cell { return layout.Words(prose.Count(p.Examples)) })
	column(mainName(c)+", "+r.label, true, func(p sim.Compared) layout.Cell { return figureCell(p.Figure, rounded) })
	column(mainName(c)+", "+otherName(c), true, func(p sim.Compared) layout.Cell { return figureCell(p.Other, rounded) })
	column("Difference", true, func(p sim.Compared) layout.Cell { return figureCell(p.Difference, gained) })
	column("With this method", false, func(p sim.Compared) layout.Cell { return layout.Words(p.Verdict) })
	return t
}
