package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// Table prints runs side by side for a terminal: what they learnt, and under it what
// that cost, every epsilon with claim, unit and relation in its line.
func Table(w io.Writer, runs []sim.Summary) error {
	var t layout.Table
	column := func(name string, figures bool, cell func(r sim.Summary) string) {
		layout.AddColumn(&t, name, figures, runs, func(r sim.Summary) layout.Cell { return layout.Words(cell(r)) })
	}
	if slices.ContainsFunc(runs, func(r sim.Summary) bool { return r.Name != r.Algorithm }) {
		column("run", false, func(r sim.Summary) string { return r.Name })
	}
	column("method", false, tableName)
	column("data", false, func(r sim.Summary) string { return r.Dataset })
	column("protects", false, func(r sim.Summary) string { return r.Privacy.Protects })
	column("clients", true, func(r sim.Summary) string {
		if central(r) {
			return ""
		}
		return fmt.Sprint(r.Clients)
	})
	column("rounds", true, func(r sim.Summary) string { return fmt.Sprint(r.Rounds) })
	for _, c := range []struct {
		name            string
		tested, classes bool
	}{{"validation loss", false, false}, {"test MSE", true, false}, {"test error", true, true}} {
		column(c.name, true, func(r sim.Summary) string {
			if tested(r) != c.tested || tested(r) && classes(r) != c.classes || ofWords(r) || ranked(r) { // whose loss is a figure of its own
				return ""
			}
			value, _ := headline(r)
			return learnt(event.Number(value))
		})
	}
	for _, f := range taskFigures {
		if !f.pageOnly {
			column(f.name, true, func(r sim.Summary) string {
				if f.idle(ranked(r)) {
					return ""
				}
				return f.terminal(r.Metrics)
			})
		}
	}
	column("worst distance", true, func(r sim.Summary) string { return prose.Optional(r.Metrics.WorstDistance, figure) })
	column("declined", true, func(r sim.Summary) string {
		return prose.Optional(r.Privacy.Ceiling, func(event.Number) string { return fmt.Sprint(r.Privacy.Declined) })
	})
	_, err := io.WriteString(w, lined(t)+"\n"+privacyTable(runs)+remarks(runs))
	return err
}

func tableName(r sim.Summary) string {
	if r.Mode == "sound" && r.Privacy.Protects == "update" {
		return r.Algorithm + " (sound)"
	}
	return r.Algorithm
}

// terminal is the figure with its interval.
func (f taskFigure) terminal(m sim.Metrics) string {
	c := f.cell(m)
	if len(c.Small) == 0 {
		return c.Text
	}
	return c.Text + " (" + c.Small[0] + ")"
}

// priced is one statement about a run: its own, or what is proved for the same releases.
type priced struct {
	event.Statement
	name                  string
	median, update, group string
}

// privacyTable says what the runs cost. The bounds for other updates and other groups
// stand beside the number that they put into perspective.
func privacyTable(runs []sim.Summary) string {
	var lines []priced
	wider := false
	for _, r := range runs {
		p := r.Privacy
		median := figure(p.MedianEpsilon)
		if central(r) {
			median = ""
		}
		lines = append(lines, priced{p.Statement, tableName(r), median, prose.Optional(p.EpsilonAnyUpdate, figure), prose.Optional(switched(r), figure)})
		if p.Proved != nil {
			lines = append(lines, priced{Statement: *p.Proved, name: "  the same releases"})
		}
		wider = wider || p.EpsilonAnyUpdate != nil
	}
	var t layout.Table
	column := func(name string, figures bool, cell func(l priced) string) {
		layout.AddColumn(&t, name, figures, lines, func(l priced) layout.Cell { return layout.Words(cell(l)) })
	}
	column("privacy", false, func(l priced) string { return l.name })
	column("median eps", true, func(l priced) string { return l.median })
	most := "max eps"
	if !slices.ContainsFunc(runs, func(r sim.Summary) bool { return !central(r) }) {
		most = "eps" // nobody is more exposed than others
	}
	column(most, true, func(l priced) string { return figure(l.Epsilon) })
	column("any update", true, func(l priced) string { return l.update })
	column("any group", true, func(l priced) string { return l.group })
	column("delta", true, func(l priced) string { return figure(l.Delta) })
	column("radius", true, func(l priced) string {
		if l.Radius == nil && l.Claim == event.ClaimHeuristic && l.Unit == event.UnitNeighbourhood {
			return "private"
		}
		return prose.Optional(l.Radius, figure)
	})
	column("claim", false, func(l priced) string { return string(l.Claim) })
	column("unit", false, func(l priced) string { return string(l.Unit) })
	column("relation", false, func(l priced) string { return string(l.Relation) })
	if !wider {
		return lined(t)
	}
	return lined(t) + "any update: eps if all updates of the same hypotheses were others; any group: eps if other hypotheses were chosen too.\n"
}

// remarks say how clusters came out, and what loaders left out, once for runs on the
// same data.
func remarks(runs []sim.Summary) (text string) {
	said := ""
	for _, r := range runs {
		if sizes := clusterSizes(r, nil); sizes != "" {
			text += tableName(r) + ": " + sizes + "\n"
		}
		if r.Data == nil || len(r.Data.LeftOut) == 0 && len(r.Data.Notes) == 0 || r.Data.String() == said {
			continue
		}
		said = r.Data.String()
		text += said + "\n"
	}
	return text
}

// mostLines keeps a terminal readable.
const mostLines = 30

// Lines prints what every participant asked for, did and spent; of many, the first.
func Lines(w io.Writer, r sim.Summary) error {
	var t layout.Table
	shown := r.Participants
	if len(shown) > mostLines {
		shown = shown[:mostLines]
	}
	lines := named(shown)
	column := func(name string, figures bool, cell func(l sim.Line) string) {
		layout.AddColumn(&t, name, figures, lines, func(l sim.Line) layout.Cell { return layout.Words(cell(l)) })
	}
	if !central(r) {
		column("participant", false, func(l sim.Line) string { return l.Name })
	}
	column("examples", true, func(l sim.Line) string { return fmt.Sprint(l.Examples) })
	if !counted(r) {
		column("target", true, func(l sim.Line) string {
			return targetWords(l, func(x float64) string { return fmt.Sprintf("%.3g", x) })
		})
		column("noise", true, func(l sim.Line) string { return figure(l.Noise) })
	}
	figureName := "test figure"
	if ranked(r) {
		figureName = "average precision"
	}
	column(figureName, true, func(l sim.Line) string { return prose.Optional(lineFigure(l), learnt) })
	column("less best untrained", true, func(l sim.Line) string { return lessThanBest(l).Text })
	column("spent eps", true, func(l sim.Line) string { return figure(l.Epsilon) })
	column("delta", true, func(l sim.Line) string { return figure(l.Delta) })
	column("proved eps", true, func(l sim.Line) string {
		return prose.Optional(l.Proved, func(n event.Number) string { return figure(n) + " " + string(event.ReplaceOne) })
	})
	column("a person's eps, delta", true, func(l sim.Line) string { return prose.Optional(l.ProtectsPerson, person) })
	column("claim", false, func(l sim.Line) string { return string(l.Claim) })
	column("unit", false, func(l sim.Line) string { return string(l.Unit) })
	column("relation", false, func(l sim.Line) string { return l.Relation })
	column("sampling", false, func(l sim.Line) string { return l.Sampling })
	text := lined(t)
	if more := len(r.Participants) - len(shown); more > 0 {
		text += fmt.Sprintf("and %s more, who are in the report and in result.json\n", prose.Count(more))
	}
	_, err := io.WriteString(w, text)
	return err
}

// lined is a table with aligned columns: words to the left, figures to the right.
func lined(t layout.Table) string {
	head := make([]layout.Cell, len(t.Columns))
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		head[i].Text = c.Name
	}
	rows := append([][]layout.Cell{head}, t.Rows...)
	for _, row := range rows {
		for i, cell := range row {
			if cell.Text == "" {
				row[i].Text = "-"
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.Text))
			if t.Columns[i].Figures {
				line.WriteString(pad + cell.Text + "  ")
			} else {
				line.WriteString(cell.Text + pad + "  ")
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}

// learnt is a judge's figure: four digits.
func learnt(n event.Number) string { return fmt.Sprintf("%#.4g", float64(n)) }

// figure is a number with the digits that a reader needs.
func figure(n event.Number) string {
	x := float64(n)
	switch {
	case math.IsInf(x, 0):
		return "inf"
	case x == 0:
		return "0"
	case math.Abs(x) >= 0.01 && math.Abs(x) < 1000:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
