package report

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// mostParticipants keeps the page readable; result.json has more of them.
const mostParticipants = 500

// participants is the table of a run's lines.
type participants struct {
	Method string
	Table  layout.Table
	Notes  []string
	// Figures are those of everybody's own held-out examples, beside the first one; in one
	// place these are HeldOut, too.
	Figures              layout.Table
	FiguresName, HeldOut string
}

func newParticipants(id string, r run) participants {
	lines := named(r.Participants[:min(len(r.Participants), mostParticipants)])
	p := participants{Method: r.label, Table: layout.Table{ID: id}, FiguresName: "Figures of their own held-out examples", HeldOut: "the client’s held-out examples"}
	if central(r.Summary) {
		p.FiguresName, p.HeldOut = "Figures and their intervals", "the examples that were held out"
	}
	column := func(name string, figures bool, cell func(l sim.Line) layout.Cell) {
		layout.AddColumn(&p.Table, name, figures, lines, cell)
	}
	column("Participant", false, func(l sim.Line) layout.Cell {
		switch {
		case central(r.Summary):
			return layout.Cell{}
		case !l.Comparable:
			return layout.Words(l.Name + " *")
		}
		return layout.Words(l.Name)
	})
	column("Cluster", true, func(l sim.Line) layout.Cell {
		return layout.Words(prose.Optional(l.Cluster, func(c int) string { return prose.Count(c + 1) }))
	})
	column("Examples", true, func(l sim.Line) layout.Cell { return layout.Words(prose.Count(l.Examples)) })
	if !counted(r.Summary) {
		column("Target (epsilon, delta)", true, func(l sim.Line) layout.Cell { return layout.Words(targetWords(l, prose.Rounded)) })
		column("Noise", true, func(l sim.Line) layout.Cell { return layout.Words(rounded(l.Noise)) })
	}
	column("Spent epsilon, with its claim, unit and relation; sampling", true, func(l sim.Line) layout.Cell {
		small := []string{fmt.Sprintf("%s, %s, %s; %s", l.Claim, l.Unit, l.Relation, l.Sampling)}
		if l.ProtectsPerson != nil {
			small = append(small, "a person: "+person(*l.ProtectsPerson))
		}
		return layout.Words(prose.Cost(float64(l.Epsilon)), small...)
	})
	if !counted(r.Summary) {
		column("Proved epsilon", true, func(l sim.Line) layout.Cell {
			if l.Proved == nil {
				return proved(l.Claim, nil)
			}
			return layout.Words(prose.Cost(float64(*l.Proved)), fmt.Sprintf("%s, %s, %s", event.ClaimProved, l.Unit, event.ReplaceOne))
		})
	}
	column(r.lineFigureName(), true, func(l sim.Line) layout.Cell {
		return layout.Cell{Text: prose.Optional(lineFigure(l), rounded), Strong: lineFigure(l) != nil}
	})
	column("Less the best untrained score", true, lessThanBest)
	p.note(r, lines)
	p.Figures = ownFigures(id+"-figures", central(r.Summary), ranked(r.Summary), lines)
	return p
}

// ownFigures are everybody's, over their intervals. In one place there is nobody to name.
func ownFigures(id string, together, people bool, lines []sim.Line) layout.Table {
	t := layout.Table{ID: id}
	if !together {
		layout.AddColumn(&t, "Participant", false, lines, func(l sim.Line) layout.Cell { return layout.Words(l.Name) })
		layout.AddColumn(&t, "Held out", true, lines, func(l sim.Line) layout.Cell {
			if l.Figures == nil {
				return layout.Cell{}
			}
			return layout.Words(prose.Count(l.TestExamples))
		})
	}
	for _, f := range taskFigures {
		layout.AddColumn(&t, capital(f.name), true, lines, func(l sim.Line) layout.Cell {
			if l.Figures == nil || f.idle(people) {
				return layout.Cell{}
			}
			c := f.cell(sim.Metrics{Figures: *l.Figures})
			c.Strong = false
			return c
		})
	}
	return t
}

// note explains what is in the table.
func (p *participants) note(r run, shown []sim.Line) {
	if !counted(r.Summary) {
		p.Notes = append(p.Notes, "Noise: its standard deviation, divided by the clip.")
	}
	if !central(r.Summary) && slices.ContainsFunc(shown, func(l sim.Line) bool { return !l.Comparable }) {
		p.Notes = append(p.Notes, "Who holds less than one batch of examples is marked *: its figures cannot be compared with those of the papers.")
	}
	if left := len(r.Participants) - len(shown); left > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("The first %s are shown; result.json has the other %s.", prose.Count(len(shown)), prose.Count(left)))
	}
}

// named gives those a name that the data give none.
func named(lines []sim.Line) []sim.Line {
	out := slices.Clone(lines)
	for i := range out {
		if out[i].Name == "" {
			out[i].Name = fmt.Sprintf("client %d", i)
		}
	}
	return out
}

// targetWords are what a participant asked for.
func targetWords(l sim.Line, write func(float64) string) string {
	if l.Target.Epsilon == 0 {
		return "none"
	}
	words := write(float64(l.Target.Epsilon)) + ", " + write(float64(l.Target.Delta))
	if n := l.Target.RecordsPerPerson; n > 1 {
		words += fmt.Sprintf(" for %d records", n)
	}
	return words
}

// person is what is kept by somebody with several records.
func person(t sim.Target) string {
	if t.Delta >= 1 {
		return "nothing is promised"
	}
	return fmt.Sprintf("%s, %s", figure(t.Epsilon), figure(t.Delta))
}

// dotsPanel is every participant's own figure by its number of training examples.
func dotsPanel(id string, r run) (panel, bool) {
	var points []chart.Point
	for _, l := range r.Participants {
		if v := lineFigure(l); v != nil && chart.Drawable(float64(*v)) {
			points = append(points, chart.Point{X: float64(l.Examples), Y: float64(*v)})
		}
	}
	if len(points) == 0 {
		return panel{}, false
	}
	mean, _ := headline(r.Summary)
	x, y := extent(points)
	if chart.Drawable(mean) {
		y = y.Include(mean)
	}
	y, name := y.Wide(), r.lineFigureName()
	ax := chart.NewAxis(x.Wide().Padded(0.04), chart.Whole, chart.PlotLeft, chart.PlotRight, 6)
	ay := chart.NewAxis(chart.Domain{Lo: min(0, y.Lo), Hi: y.Hi * 1.06}, chart.Real, chart.PlotBottom, chart.PlotTop, 5)
	var out chart.Canvas
	out.Frame(ax, ay, "training examples", name)
	dots := make([]chart.Point, len(points))
	for i, p := range points {
		dots[i] = chart.Place(p, ax, ay)
	}
	out.Marks("participant-dot", chart.Circle, 2.6, dots...)
	if chart.Drawable(mean) {
		out.Line("participant-mean", chart.PlotLeft, ay.At(mean), chart.PlotRight, ay.At(mean))
	}
	all := "their mean, weighted by held-out examples, is"
	if ranked(r.Summary) {
		all = "of all together it is"
	}
	return panel{Name: name + " of every client", Chart: out.SVG(id, r.label+": "+name+" of every client",
		fmt.Sprintf("%s; %s %s.", prose.Counted(len(points), "client", "clients"), all, prose.Rounded(mean)))}, true
}
