package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// courseRows is how many rounds of a course a terminal shows.
const courseRows = 6

// Course prints how the private steps of a run went, in a few of its rounds: of central
// training, and where clip or step size are learned. Of other runs it prints nothing.
func Course(w io.Writer, res sim.Result) error {
	rounds := slices.DeleteFunc(slices.Clone(res.History.Rounds), func(c sim.RoundRecord) bool { return c.Steps == nil })
	r := runsOf([]sim.Result{res})[0]
	if len(rounds) == 0 || !r.learns() && !central(res.Summary) {
		return nil
	}
	if priced := slices.DeleteFunc(slices.Clone(rounds), func(c sim.RoundRecord) bool { return c.Epsilon == nil }); len(priced) > 0 {
		rounds = priced
	}
	shown := make([]sim.RoundRecord, min(courseRows, len(rounds)))
	for i := range shown {
		shown[i] = rounds[i*(len(rounds)-1)/max(1, len(shown)-1)]
	}
	var notes []string
	if r.learns() {
		moved := "clip follows"
		if r.plan.Privacy.Clipping.Rule == "online" {
			moved = "clip and " + strings.ToLower(r.stepName()) + " follow"
		}
		notes = append(notes, moved+" from sums with noise")
	}
	if slices.ContainsFunc(shown, func(c sim.RoundRecord) bool { return c.Steps.Clipped != nil }) {
		unseen := "shortened"
		if slices.ContainsFunc(shown, func(c sim.RoundRecord) bool { return c.Steps.ClipAgree != nil || c.Steps.StepAgree != nil }) {
			unseen += " and agree"
		}
		notes = append(notes, unseen+": in simulation only, no guarantee covers it")
	}
	text := "\n" + lined(courseTable(r, shown))
	if len(notes) > 0 {
		text += strings.Join(notes, "; ") + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// courseTable has a row a round; columns that no round fills are left out.
func courseTable(r run, shown []sim.RoundRecord) (t layout.Table) {
	column := func(name string, figures bool, cell func(c sim.RoundRecord) string) {
		layout.AddColumn(&t, name, figures, shown, func(c sim.RoundRecord) layout.Cell { return layout.Words(cell(c)) })
	}
	share := func(name string, of func(s *sim.StepsRecord) *event.Number) {
		column(name, true, func(c sim.RoundRecord) string { return prose.Optional(of(c.Steps), percent) })
	}
	column(r.over(), true, func(c sim.RoundRecord) string {
		if !r.stepped() {
			return fmt.Sprint(c.Round)
		}
		return fmt.Sprint(c.Steps.Made)
	})
	name := "test loss"
	if r.ofAnswers() {
		name = "test accuracy"
	}
	column(name, true, func(c sim.RoundRecord) string {
		if r.ofAnswers() {
			return prose.Optional(learntBy(r, c), percent)
		}
		return prose.Optional(learntBy(r, c), learnt)
	})
	column("clip", true, func(c sim.RoundRecord) string { return learnt(c.Steps.Clip) })
	column(strings.ToLower(r.stepName()), true, func(c sim.RoundRecord) string { return learnt(c.Steps.Step) })
	share("shortened", func(s *sim.StepsRecord) *event.Number { return s.Clipped })
	share("clip rose", func(s *sim.StepsRecord) *event.Number { return s.ClipUp })
	share("agree", func(s *sim.StepsRecord) *event.Number { return s.ClipAgree })
	share("step rose", func(s *sim.StepsRecord) *event.Number { return s.StepUp })
	share("agree", func(s *sim.StepsRecord) *event.Number { return s.StepAgree })
	if shown[0].Epsilon == nil {
		return t
	}
	p := r.Privacy
	column("eps so far", true, func(c sim.RoundRecord) string { return prose.Optional(c.Epsilon, figure) })
	column("claim", false, func(sim.RoundRecord) string { return string(p.Claim) })
	column("unit", false, func(sim.RoundRecord) string { return string(p.Unit) })
	column("relation", false, func(sim.RoundRecord) string { return string(p.Relation) })
	return t
}
