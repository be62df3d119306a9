package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/chart"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// courseFigure is how training went: what was learnt and spent, and what happened to
// examples' gradients on the way; a row a run.
type courseFigure struct {
	Rows    []fitRow
	Legend  []chart.LegendEntry
	Caption string
	Inner   bool // something is shown that no guarantee covers
}

// newCourseFigure has a row for every run whose private steps, or whose epsilon round by
// round, are known.
func newCourseFigure(runs []run) (f courseFigure) {
	panels := make([][]panel, len(runs))
	for _, c := range courses {
		for i, p := range c.panels(runs) {
			if p.Chart != "" {
				panels[i] = append(panels[i], p)
				f.Inner = f.Inner || p.Unseen
			}
		}
	}
	norms := false
	for i, r := range runs {
		if p, ok := normsPanel(fmt.Sprintf("norms-%d", i+1), r); ok {
			panels[i], norms = append(panels[i], p), true
		}
		if len(panels[i]) > 0 {
			f.Rows = append(f.Rows, fitRow{Method: r.label, Claim: r.claim(), Panels: panels[i], Caption: r.courseCaption()})
		}
	}
	f.Inner = f.Inner || norms
	if len(f.Rows) == 0 {
		return f
	}
	f.Caption = "What was learnt on the way, and what a run that had ended there would have cost."
	f.Legend = courseLegend(runs, norms)
	if slices.ContainsFunc(runs, run.learns) {
		f.Caption += " Clip and step size, and the way they moved, follow from sums with noise and cost nothing more."
	}
	if !f.Inner {
		return f
	}
	f.Caption += " Panels marked as simulation only are of examples’ gradients without noise: no guarantee covers these"
	if allCentral(runs) {
		f.Caption += ", and whoever may not see the examples may not see them."
	} else {
		f.Caption += ", and a federation shows none of them."
	}
	if norms {
		f.Caption += " At the ends of the norms, bars of less than one example in a thousand are left out."
	}
	return f
}

// courseLegend explains the lines that are drawn.
func courseLegend(runs []run, norms bool) (out []chart.LegendEntry) {
	seen := map[string]bool{}
	for _, c := range courses {
		for _, l := range c.lines {
			if l.name == "" || seen[l.name] || !slices.ContainsFunc(runs, func(r run) bool { return len(c.drawn(l, r)) > 0 }) {
				continue
			}
			seen[l.name] = true
			out = append(out, chart.Entry(l.name, func(c *chart.Canvas) { c.Path(l.class(), "M1 9H29") }))
		}
	}
	for _, when := range stages {
		has := func(r run) bool {
			return slices.ContainsFunc(normsByStage(r), func(n normsOf) bool { return n.when == when })
		}
		if norms && slices.ContainsFunc(runs, has) {
			out = append(out, chart.Entry("norms of the "+when+" round, and its clip", func(c *chart.Canvas) {
				c.Path("curve "+stageClasses[when], "M3 16V9H10V3H17V12H24V16")
			}))
		}
	}
	return out
}

// courseCaption says in words what never moved, and so has no picture.
func (r run) courseCaption() string {
	var fixed []string
	for _, c := range courses {
		for _, l := range c.lines {
			if points := l.points(r, c.kind); c.kind == scales && len(points) > 0 && constant(points) {
				fixed = append(fixed, "the "+strings.ToLower(c.name(r))+" stayed at "+prose.Rounded(points[0].Y))
			}
		}
	}
	if len(fixed) == 0 {
		return ""
	}
	return capital(prose.Joined(fixed)) + "."
}

// courseLine is a curve of a course's panel; one without a name is alone and needs no
// legend.
type courseLine struct {
	name   string
	colour int
	at     func(run, sim.RoundRecord) *event.Number
}

// clipLine and stepLine look the same in all panels.
func clipLine(at func(*sim.StepsRecord) *event.Number) courseLine {
	return courseLine{"clip", 0, ofSteps(at)}
}
func stepLine(at func(*sim.StepsRecord) *event.Number) courseLine {
	return courseLine{"step size", 1, ofSteps(at)}
}

// course is a panel of how training went.
type course struct {
	id     string
	name   func(run) string
	unit   func(run) string
	kind   courseKind
	lines  []courseLine
	level  func(run) (at float64, name string) // a straight line to compare with; nameless: none
	unseen bool
}

// courseKind says which axis a course has.
type courseKind int

const (
	figures courseKind = iota // whatever they are
	totals                    // that begin at nothing, before the first step
	scales                    // by their logarithm; constants are told in words instead
	shares                    // from 0 to 1
)

var courses = []course{
	{id: "course-learnt", name: run.learntName, unit: run.learntUnit, kind: figures, lines: []courseLine{{at: learntBy}}},
	{id: "course-epsilon", name: plainly("Epsilon spent"), unit: run.epsilonName, kind: totals,
		lines: []courseLine{{at: func(_ run, r sim.RoundRecord) *event.Number { return r.Epsilon }}},
		level: func(r run) (float64, string) {
			if r.known && len(r.plan.Privacy.Silos) == 0 && r.plan.Privacy.RecordsPerPerson <= 1 && r.plan.Privacy.NoiseMultiplier == 0 {
				return r.plan.Privacy.Epsilon, "target"
			}
			return 0, ""
		}},
	{id: "course-clip", name: plainly("Clip"), unit: run.clippedName, kind: scales,
		lines: []courseLine{clipLine(func(s *sim.StepsRecord) *event.Number { return &s.Clip })}},
	{id: "course-step", name: run.stepName, unit: func(r run) string { return strings.ToLower(r.stepName()) }, kind: scales,
		lines: []courseLine{stepLine(func(s *sim.StepsRecord) *event.Number { return &s.Step })}},
	{id: "course-clipped", name: plainly("Shortened examples"), unit: plainly("share with gradients longer than the clip"), kind: shares, unseen: true,
		lines: []courseLine{clipLine(func(s *sim.StepsRecord) *event.Number { return s.Clipped })},
		level: func(r run) (float64, string) {
			if c := r.plan.Privacy.Clipping; r.known && c.Rule == "quantile" {
				if c.Quantile == 0 {
					c.Quantile = 0.5
				}
				return 1 - c.Quantile, "aim"
			}
			return 0, ""
		}},
	{id: "course-up", name: plainly("Which way they moved"), unit: plainly("share of steps after which it rose"), kind: shares,
		lines: []courseLine{
			clipLine(func(s *sim.StepsRecord) *event.Number { return s.ClipUp }),
			stepLine(func(s *sim.StepsRecord) *event.Number { return s.StepUp }),
		}, level: coin},
	{id: "course-agree", name: plainly("Moves that agree"), unit: plainly("share that go where sums without noise would"), kind: shares, unseen: true,
		lines: []courseLine{
			clipLine(func(s *sim.StepsRecord) *event.Number { return s.ClipAgree }),
			stepLine(func(s *sim.StepsRecord) *event.Number { return s.StepAgree }),
		}, level: coin},
}

func (r run) epsilonName() string {
	if central(r.Summary) {
		return "epsilon"
	}
	return "epsilon, most exposed client"
}

// ofUpdates says that it is whole clients' updates that are clipped, by the server.
func (r run) ofUpdates() bool { return r.Privacy.Protects == "client" }

func (r run) clippedName() string {
	if r.ofUpdates() {
		return "largest norm of an update"
	}
	return "largest norm of an example’s gradient"
}

func (r run) stepName() string {
	if r.ofUpdates() {
		return "Server step"
	}
	return "Step size"
}

// learns says that clip or step size were moved by what was released.
func (r run) learns() bool {
	rule := r.plan.Privacy.Clipping.Rule
	return r.known && (rule == "quantile" || rule == "online") && slices.ContainsFunc(r.History.Rounds, func(c sim.RoundRecord) bool { return c.Steps != nil })
}

func coin(run) (float64, string) { return 0.5, "a coin" }

// ofSteps is a figure of the private steps, of rounds that have some.
func ofSteps(at func(*sim.StepsRecord) *event.Number) func(run, sim.RoundRecord) *event.Number {
	return func(_ run, r sim.RoundRecord) *event.Number {
		if r.Steps == nil {
			return nil
		}
		return at(r.Steps)
	}
}

// learntBy is the judge's figure in a round of private steps: the share of right answers
// of tested examples that have classes, the loss otherwise.
func learntBy(r run, record sim.RoundRecord) *event.Number {
	switch {
	case !r.stepped() || !chart.Drawable(float64(record.Loss)):
		return nil
	case !r.ofAnswers():
		return &record.Loss
	case record.Error == nil:
		return nil
	}
	right := 1 - *record.Error
	return &right
}

func (r run) ofAnswers() bool { _, errors := headline(r.Summary); return errors }

func (r run) learntName() string {
	if r.ofAnswers() {
		return "Test accuracy"
	}
	return r.lossCurve()
}

func (r run) learntUnit() string {
	if r.ofAnswers() {
		return "share of right answers"
	}
	return r.lossUnit()
}

// stepped says that the run's private steps are counted, or can be: then they are what its
// course runs over.
func (r run) stepped() bool {
	return !r.ofUpdates() && (r.stepsARound() > 0 || slices.ContainsFunc(r.History.Rounds, func(c sim.RoundRecord) bool { return c.Steps != nil }))
}

// stepsARound is how many private steps a round of central training has; 0: there are none.
func (r run) stepsARound() int {
	if central(r.Summary) && len(r.Participants) == 1 && !counted(r.Summary) {
		return r.Participants[0].Steps
	}
	return 0
}

// over is what a course runs over.
func (r run) over() string {
	if r.stepped() {
		return "step"
	}
	return "round"
}
