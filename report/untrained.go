package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// ranked says that a run foretells who falls ill: of people, hardly any of whom do, so that
// the order of their risks is judged, and not how many answers are right.
func ranked(r sim.Summary) bool { return r.Untrained != nil }

// rankedFigure is the average precision of a run on people; nil: it is of none, or nobody
// falls ill.
func rankedFigure(r sim.Summary) *metrics.Figure {
	if r.Untrained == nil {
		return nil
	}
	return r.Untrained.AveragePrecision
}

// leakyGain is by which part of the best rival's average precision a model may be better
// before the report asks for a look at where that comes from.
const leakyGain = 0.25

// whoWins says in words how a run on people compares with scores that nobody trained.
func whoWins(u *sim.Untrained) string {
	best := u.Strongest()
	if u.AveragePrecision == nil || best == nil || best.Difference == nil {
		if u.Positives == 0 {
			return "Nobody is known to fall ill in the week that is foretold, so that nothing can be judged: the population has no target, or nobody in it was infected."
		}
		return "Risks are no numbers, so that nothing can be judged: training went astray, for example by a step that is too long."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Average precision %s, %s times the prevalence (%s of %s fall ill). The best score that nobody trained, %s, has %s, and costs no privacy: ",
		rounded(u.AveragePrecision.Value), prose.Rounded(float64(u.AveragePrecision.Value)/u.Prevalence()), prose.Count(u.Positives),
		prose.Counted(u.Persons, "person", "persons"), best.Name, rounded(best.AveragePrecision.Value))
	difference := fmt.Sprintf("difference %s", rounded(best.Difference.Value))
	if d := best.Difference; d.Low != nil && d.High != nil {
		difference += fmt.Sprintf(", 95 %% interval %s to %s", rounded(*d.Low), rounded(*d.High))
	}
	switch u.Verdict {
	case sim.VerdictBetter:
		fmt.Fprintf(&b, "the model is better (%s).", difference)
	case sim.VerdictWorse:
		fmt.Fprintf(&b, "the model is worse (%s), so that training did not pay.", difference)
	default:
		fmt.Fprintf(&b, "neither is told to be better (%s), so that training is not seen to pay.", difference)
	}
	if d := best.Difference; d.Low != nil && float64(*d.Low) > leakyGain*float64(best.AveragePrecision.Value) {
		b.WriteString(" A gain this large over a score that sees the same contacts is unusual: look for a leak of the week that is foretold before it is believed.")
	}
	return b.String()
}

// rankedRow is the models' or a rival's line.
type rankedRow struct {
	name            string
	precision, area *metrics.Figure
	less            *metrics.Figure // the models' less it
	own             bool
	colour          int
}

func rankedRows(u *sim.Untrained) []rankedRow {
	rows := []rankedRow{{name: "the model", precision: u.AveragePrecision, area: u.AUC, own: true}}
	for i := len(u.Rivals) - 1; i >= 0; i-- { // the strongest come last
		r := u.Rivals[i]
		rows = append(rows, rankedRow{name: r.Name, precision: r.AveragePrecision, area: r.AUC, less: r.Difference, colour: len(rows)})
	}
	return rows
}

// rankedTable is the model beside its rivals. Intervals stand beneath their figures, or, on
// a terminal, behind them.
func rankedTable(u *sim.Untrained, terminal bool) layout.Table {
	t := layout.Table{ID: "untrained-h"}
	rows := rankedRows(u)
	cell := func(f *metrics.Figure, strong bool) layout.Cell {
		c := figureCell(f, rounded)
		if terminal && len(c.Small) > 0 {
			c = layout.Words(c.Text + " (" + c.Small[0] + ")")
		}
		c.Strong = strong && c.Text != ""
		return c
	}
	layout.AddColumn(&t, "score", false, rows, func(r rankedRow) layout.Cell { return layout.Words(r.name) })
	layout.AddColumn(&t, "average precision", true, rows, func(r rankedRow) layout.Cell { return cell(r.precision, r.own) })
	layout.AddColumn(&t, "times prevalence", true, rows, func(r rankedRow) layout.Cell {
		if r.precision == nil {
			return layout.Cell{}
		}
		return layout.Words(prose.Rounded(float64(r.precision.Value) / u.Prevalence()))
	})
	layout.AddColumn(&t, "AUC", true, rows, func(r rankedRow) layout.Cell { return cell(r.area, r.own) })
	layout.AddColumn(&t, "model less it, paired", true, rows, func(r rankedRow) layout.Cell { return cell(r.less, false) })
	if !terminal {
		for i := range t.Columns {
			t.Columns[i].Name = capital(t.Columns[i].Name)
		}
	}
	return t
}

// intervalWords say what the intervals are.
const intervalWords = "Intervals are of 95 %, over households; the epidemic and the model count as given."

// Untrained prints a run on people beside the scores that nobody trained; of other runs
// nothing.
func Untrained(w io.Writer, r sim.Summary) error {
	if !ranked(r) {
		return nil
	}
	text := "\n"
	if r.Untrained.AveragePrecision != nil {
		text += lined(rankedTable(r.Untrained, true)) + intervalWords + "\n"
	}
	_, err := io.WriteString(w, text+whoWins(r.Untrained)+"\n")
	return err
}

// untrainedPart is a run on people beside the scores that nobody trained, on the page.
type untrainedPart struct {
	Method, Words, Note string
	Table               layout.Table
	panelFigure
}

// newUntrained is one part a run on people.
func newUntrained(runs []run) (out []untrainedPart) {
	for i, r := range runs {
		if !ranked(r.Summary) {
			continue
		}
		part := untrainedPart{Method: r.label, Words: whoWins(r.Untrained)}
		if r.Untrained.AveragePrecision != nil {
			part.Table, part.Note = rankedTable(r.Untrained, false), intervalWords+" Differences are paired: what the model and a score miss alike is not in them. The best score is chosen on these people, which favours it a little."
			part.Panels = rankedPanels(fmt.Sprintf("untrained-%d", i+1), r.label, r.Untrained)
		}
		out = append(out, part)
	}
	return out
}

// lessThanBest is a participant's average precision less its best rival's.
func lessThanBest(l sim.Line) layout.Cell {
	if l.Untrained == nil || l.Untrained.Strongest() == nil {
		return layout.Cell{}
	}
	c := figureCell(l.Untrained.Strongest().Difference, rounded)
	c.Small = append(c.Small, l.Untrained.Best)
	return c
}

// numberOf is a figure's value; nil: there is none.
func numberOf(f *metrics.Figure) *event.Number {
	if f == nil {
		return nil
	}
	return &f.Value
}
