package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// mostBins is what the width can show with bars that can be told apart.
const mostBins = 26

// mostClusterRows keeps a table readable; result.json has them all.
const mostClusterRows = 24

// spending sorts clients by what their budget is.
type spending struct {
	finite        []sim.Budget // in order of size
	none, endless int
	clients       int // with a finite budget
}

func spent(r run) spending {
	var s spending
	all := r.History.Spends
	for _, b := range r.History.Budgets {
		all = append(all, sim.Budget{Epsilon: b, Clients: 1})
	}
	for _, b := range all {
		switch v := float64(b.Epsilon); {
		case math.IsInf(v, 1):
			s.endless += b.Clients
		case chart.Drawable(v):
			if v == 0 {
				s.none += b.Clients
			}
			s.clients += b.Clients
			s.finite = append(s.finite, b)
		}
	}
	slices.SortFunc(s.finite, func(a, b sim.Budget) int { return cmp.Compare(a.Epsilon, b.Epsilon) })
	return s
}

// drawn says that there is a distribution to show.
func (s spending) drawn() bool { return s.clients > s.none }

// words take the place of a picture.
func (s spending) words() string {
	if s.endless == 0 {
		return "nobody released anything."
	}
	words := prose.Counted(s.endless, "client", "clients") + " released vectors without noise: what they may reveal is unlimited."
	if s.none > 0 {
		words += " " + sentence(prose.Counted(s.none, "client", "clients")) + " released nothing."
	}
	return words
}

// bins counts values in equal intervals from start on.
type bins struct {
	start, width float64
	counts       []int
}

func (b bins) end() float64 { return b.start + b.width*float64(len(b.counts)) }

// binned sorts the values into bins. If every release costs the same, the bins
// are centred on multiples of that cost, so that a bar is a number of releases.
func binned(sorted []sim.Budget, release float64) bins {
	highest := float64(sorted[len(sorted)-1].Epsilon)
	b := bins{}
	if release > 0 && chart.Drawable(release) && highest/release < 1e9 {
		releases := math.Floor(highest/release+0.5) + 1
		b.width = release * math.Ceil(releases/mostBins)
		b.start = -release / 2
	} else {
		b.width = chart.NiceStep(max(highest, 1e-290) / mostBins)
	}
	b.counts = make([]int, b.index(highest)+1)
	for _, one := range sorted {
		b.counts[b.index(float64(one.Epsilon))] += one.Clients
	}
	return b
}

// align puts ticks under the bars' middles if bars stand for numbers of releases.
func (b bins) align(a *chart.Axis) {
	if b.start == 0 || b.width != -2*b.start || a.Exponent != 0 {
		return
	}
	a.Ticks, a.Labels = nil, nil
	for _, t := range chart.Multiples(max(0, a.Lo), a.Hi, b.width*max(1, chart.NiceStep((a.Span()/b.width)/7))) {
		a.Ticks, a.Labels = append(a.Ticks, t), append(a.Labels, prose.Significant(t, 4))
	}
}

func (b bins) index(v float64) int {
	return min(2*mostBins, max(0, int(math.Floor((v-b.start)/b.width))))
}

// budgetPanel is the distribution of per-client budgets.
func budgetPanel(id, label string, r run, s spending) template.HTML {
	release := math.Inf(1)
	if e := r.Privacy.EpsilonPerRelease; e != nil {
		release = float64(*e)
	}
	b := binned(s.finite, release)
	highest := float64(slices.Max(b.counts))
	const marks = 46 // room above the bars for the names of the marks
	right := b.end()
	ceiling := math.Inf(1)
	if c := r.Privacy.Ceiling; c != nil && *c > 0 && float64(*c) < 1.6*right {
		ceiling = float64(*c)
		right = max(right, ceiling+b.width/2)
	}
	ax := chart.NewAxis(chart.Domain{Lo: min(0, b.start), Hi: right}, chart.Real, chart.PlotLeft, chart.PlotRight, 6)
	b.align(&ax)
	ay := chart.NewAxis(chart.Domain{Lo: 0, Hi: highest}, chart.Whole, chart.PlotBottom, chart.PlotTop+marks, 5)
	var out chart.Canvas
	out.Frame(ax, ay, "a client’s total ("+epsilonUnit(r)+")", "clients")
	gap := min(1.5, (ax.At(b.width)-ax.At(0))*0.08)
	for i, n := range b.counts {
		if n == 0 {
			continue
		}
		x := ax.At(b.start + float64(i)*b.width)
		y := ay.At(float64(n))
		out.Rect("bar", x+gap, y, ax.At(b.start+float64(i+1)*b.width)-x-2*gap, chart.PlotBottom-y)
	}
	row := chart.PlotTop + 9.0
	mark := func(class, name string, v float64) {
		if !(v >= ax.Lo && v <= ax.Hi) {
			return
		}
		x := ax.At(v)
		out.Line(class, x, row-4, x, chart.PlotBottom)
		anchor, shift := "start", 5.0
		if x > (chart.PlotLeft+chart.PlotRight)/2 {
			anchor, shift = "end", -5
		}
		out.Text("mark-name", anchor, x+shift, row, name+" "+prose.Cost(v))
		row += 15
	}
	mark("median", "median", float64(r.Privacy.MedianEpsilon))
	mark("maximum", "maximum", float64(r.Privacy.MaxEpsilon))
	mark("ceiling", "ceiling", ceiling)
	return out.SVG(id, label+": distribution of the clients' total epsilon", describeBins(b))
}

func describeBins(b bins) string {
	var s strings.Builder
	for i, n := range b.counts {
		if n > 0 {
			middle := b.start + (float64(i)+0.5)*b.width
			fmt.Fprintf(&s, "Around %s: %s. ", prose.Rounded(middle), prose.Counted(n, "client", "clients"))
		}
	}
	return strings.TrimSpace(s.String())
}

// clusterTable is what the clients of every cluster spent: of a run with too many, the
// clusters with the largest budgets.
func clusterTable(runs []run, several bool) (t layout.Table, note string) {
	type row struct {
		of      run
		cluster int
		sim.ClusterBudget
	}
	var rows []row
	for _, r := range runs {
		var all []row
		for i, c := range r.History.Clusters {
			all = append(all, row{r, i, c})
		}
		if left := len(all) - mostClusterRows; left > 0 {
			slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(b.Max, a.Max) })
			all = all[:mostClusterRows]
			slices.SortFunc(all, func(a, b row) int { return a.cluster - b.cluster })
			note += fmt.Sprintf(" %s: the %d clusters with the largest budgets; result.json has the other %s.", r.label, mostClusterRows, prose.Count(left))
		}
		rows = append(rows, all...)
	}
	t.ID = "clusters-h"
	cost := func(c row, n event.Number) layout.Cell {
		if c.Clients == 0 {
			return layout.Cell{}
		}
		return layout.Words(prose.Cost(float64(n)))
	}
	if several {
		layout.AddColumn(&t, "Method", false, rows, func(c row) layout.Cell { return layout.Words(c.of.label) })
	}
	layout.AddColumn(&t, "Cluster", false, rows, func(c row) layout.Cell { return layout.Words(prose.Count(c.cluster + 1)) })
	layout.AddColumn(&t, "Clients", true, rows, func(c row) layout.Cell { return layout.Words(prose.Count(c.Clients)) })
	layout.AddColumn(&t, "Median epsilon", true, rows, func(c row) layout.Cell { return cost(c, c.Median) })
	layout.AddColumn(&t, "Largest epsilon", true, rows, func(c row) layout.Cell { return cost(c, c.Max) })
	if several {
		layout.AddColumn(&t, "Claim, unit and relation", false, rows, func(c row) layout.Cell { return layout.Words(layout.Claimed(c.of.Privacy.Statement)) })
		return t, note
	}
	return t, " Epsilons: " + layout.Claimed(runs[0].Privacy.Statement) + "." + note
}

// epsilonUnit says what an epsilon is measured at.
func epsilonUnit(r run) string {
	if r.Privacy.Unit == event.UnitNeighbourhood || r.Privacy.Claim == event.ClaimNone {
		return "epsilon at the radius"
	}
	return "epsilon"
}
