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

// mainName is a main figure for readers.
func mainName(c sim.Comparison) string {
	switch c.Figure {
	case "auc":
		return "AUC"
	case "rmse", "mse", "log_loss":
		return strings.ToUpper(c.Figure)
	}
	return c.Figure
}

// otherName is the compared method for readers.
func otherName(c sim.Comparison) string {
	if c.Algorithm == "local" {
		return "local training"
	}
	return prose.Method(c.Algorithm)
}

// tallied counts the verdicts on a comparison.
func tallied(c sim.Comparison) (better, worse, unclear, unknown int) {
	for _, p := range c.Participants {
		switch p.Verdict {
		case sim.VerdictBetter:
			better++
		case sim.VerdictWorse:
			worse++
		case sim.VerdictUnclear:
			unclear++
		default:
			unknown++
		}
	}
	return better, worse, unclear, unknown
}

// verdictWords say for how many the run's method is better than the compared one.
func verdictWords(method string, c sim.Comparison) string {
	better, worse, unclear, unknown := tallied(c)
	n, subject := len(c.Participants), capital(prose.Method(method))+" is better than "+otherName(c)
	if c.Algorithm == "local" {
		subject = "Taking part paid"
	}
	text := fmt.Sprintf("%s for %s of %s, worse for %s; for %s the interval leaves it open.", subject, prose.Count(better), prose.Counted(n, "participant", "participants"), prose.Count(worse), prose.Count(unclear))
	if unknown > 0 {
		text += fmt.Sprintf(" %s cannot be compared: %s is not defined on what they hold out.", prose.Count(unknown), mainName(c))
	}
	return text
}

// signed is a difference with its sign.
func signed(n event.Number) string { return fmt.Sprintf("%+.3g", float64(n)) }

// interval is a figure and its interval on one line.
func interval(f *metrics.Figure, write func(event.Number) string) string {
	switch {
	case f == nil:
		return ""
	case f.Low == nil || f.High == nil:
		return write(f.Value)
	}
	return write(f.Value) + " (" + write(*f.Low) + " to " + write(*f.High) + ")"
}

// Paid prints, participant by participant, how the run's method compares with the others
// that it was held against: did taking part pay, and for whom?
func Paid(w io.Writer, r sim.Summary) error {
	for _, c := range r.Comparison {
		if len(c.Participants) == 0 {
			continue
		}
		var t layout.Table
		column := func(name string, figures bool, cell func(p sim.Compared) string) {
			layout.AddColumn(&t, name, figures, c.Participants, func(p sim.Compared) layout.Cell { return layout.Words(cell(p)) })
		}
		column("participant", false, func(p sim.Compared) string { return p.Name })
		column("held out", true, func(p sim.Compared) string { return fmt.Sprint(p.Examples) })
		column(mainName(c)+", "+r.Algorithm, true, func(p sim.Compared) string { return interval(p.Figure, learnt) })
		column(c.Algorithm, true, func(p sim.Compared) string { return interval(p.Other, learnt) })
		column("difference", true, func(p sim.Compared) string { return interval(p.Difference, signed) })
		column(verdictName(c), false, func(p sim.Compared) string { return p.Verdict })
		question := "Is " + r.Algorithm + " better than " + c.Algorithm + ", for whom?"
		if c.Algorithm == "local" {
			question = "Did taking part pay, for whom?"
		}
		if _, err := fmt.Fprintf(w, "\n%s\n%s%s\n", question, lined(t), verdictWords(r.Algorithm, c)); err != nil {
			return err
		}
	}
	return nil
}

func verdictName(c sim.Comparison) string {
	if c.Algorithm == "local" {
		return "than alone"
	}
	return "than " + c.Algorithm
}
