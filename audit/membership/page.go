package membership

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
)

// Page shows what attacks found on the run of a name by a command, beside what it claims.
func Page(f Found, name, command string, claimed event.Statement, version string) study.Study {
	s := study.Study{
		ID: "membership", Title: fmt.Sprintf("Which %ss was %s trained on?", f.Unit, name), Scale: "one model", Seeds: 1,
		Intro: []string{
			fmt.Sprintf("%s and %s are told apart by the trained model. %s.", prose.Counted(f.Members, "member", "members"), prose.Counted(f.NonMembers, "non-member", "non-members"), f.Verdict),
			"The run's own claim: " + Claim(claimed) + ".",
			"The curve shows, for every share of non-members that are taken for members, the share of members that is found. Its left end counts: there few are named, and those rightly.",
		},
		Version: version, Kernel: model.Kernel(), Command: command,
	}
	for _, line := range append(append([]string{}, f.Says...), f.NotCovered...) {
		s.Caveats = append(s.Caveats, line+".")
	}
	chart := study.Chart{
		Title: "Members found", XTitle: "non-members taken for members", YTitle: "members found", LogX: true, LogY: true,
		Note: "Both axes have logarithms. Guessing is the line on which both shares are the same.",
	}
	guess := study.Series{Name: "guessing"}
	least := 1 / float64(max(1, f.NonMembers))
	for x := least; x < 1; x *= 2 {
		guess.Points = append(guess.Points, point(x, x))
	}
	guess.Points = append(guess.Points, point(1, 1))
	for _, a := range f.Attacks {
		s.Rows = append(s.Rows, rowsOf(a, f.Unit)...)
		series := study.Series{Name: a.Attack}
		for _, p := range a.ROC {
			if p.FalsePositive > 0 && p.TruePositive > 0 {
				series.Points = append(series.Points, point(float64(p.FalsePositive), float64(p.TruePositive)))
			}
		}
		chart.Series = append(chart.Series, series)
	}
	chart.Series = append(chart.Series, guess)
	s.Charts = []study.Chart{chart}
	return s
}

func point(x, y float64) study.Point { return study.Point{X: x, Y: y, Low: y, High: y} }

func rowsOf(a Attack, unit string) []study.Row {
	row := func(section, metric, note string, value event.Number, low, high *event.Number) study.Row {
		return study.Row{Section: section, Label: a.Attack, Metric: metric, Note: note, Settings: map[string]any{"attack": a.Attack}, Measured: &value, Low: low, High: high}
	}
	var out []study.Row
	if a.AUC != nil {
		out = append(out, row("AUC", "AUC", a.How(), a.AUC.Value, a.AUC.Low, a.AUC.High))
	}
	for _, r := range a.Rates {
		out = append(out, row(fmt.Sprintf("Members found where at most %v of the non-members are taken for members", float64(r.At)), "true positive rate",
			prose.Counted(r.FalsePositives, "false positive", "false positives"), r.TruePositive, &r.Low, &r.High))
	}
	note := fmt.Sprintf("of at most %s that so many can show; says %s, right in %.3g, wrong in %.3g", prose.Rounded(float64(a.Epsilon.Most)), a.Epsilon.Says, float64(a.Epsilon.TruePositive), float64(a.Epsilon.FalsePositive))
	return append(out, row(EpsilonHead(a.Epsilon, unit), "epsilon at least", note, a.Epsilon.AtLeast, nil, nil))
}

// EpsilonHead is what stands above empirical epsilons: their terms.
func EpsilonHead(e Epsilon, unit string) string {
	return fmt.Sprintf("Empirical epsilon at delta %.3g, at least (claim none: descriptive; one %s, add-remove; confidence %.4g)", float64(e.Delta), unit, float64(e.Confidence))
}

// Claim is a run's statement in a line; the zero statement is one that nobody made.
func Claim(s event.Statement) string {
	switch s.Claim {
	case "":
		return "not known to whoever wrote the folder"
	case event.ClaimNone:
		return "none, nothing is protected"
	}
	return fmt.Sprintf("epsilon %s (%s)", prose.Cost(float64(s.Epsilon)), layout.Claimed(s))
}

// How says what an attack used: other models, or neighbours and their noise.
func (a Attack) How() string {
	switch {
	case a.Sigma != nil:
		return fmt.Sprintf("%s, sigma %.3g RMS", prose.Counted(a.Neighbours, "neighbour", "neighbours"), float64(*a.Sigma))
	case a.Models > 0:
		return prose.Counted(a.Models, "model", "models")
	}
	return ""
}
