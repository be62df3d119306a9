package clipping

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

const adapts = "What adapts in Online (known in simulation only)"

// learned are the cells of Online that the study looks into: the best of every grid, and
// that of one run.
func (b book) learned() (out []group) {
	for _, epsilon := range b.task.epsilons {
		for _, runs := range []int{runsOf(online, 5), 1} {
			if g, ok := b.best(row{method: online, epsilon: epsilon, runs: runs, steps: b.task.steps()}); ok {
				out = append(out, g)
			}
		}
	}
	return out
}

func (g group) name() string {
	budget := "5 runs"
	if g.row.runs == 1 {
		budget = "1 run"
	}
	return fmt.Sprintf("epsilon %v, %s, %s", g.row.epsilon, budget, g.setting)
}

// mean of a share over the path and the seeds; ok is false where it is not known.
func (g group) share(of func(moment) *event.Number) (s lab.Spread, ok bool) {
	var means []float64
	for _, seed := range g.seeds() {
		var sum, n float64
		for _, m := range g.cells[seed].Value.Path {
			if v := of(m); v != nil {
				sum, n = sum+float64(*v), n+1
			}
		}
		if n > 0 {
			means = append(means, sum/n)
		}
	}
	if len(means) == 0 {
		return s, false
	}
	return lab.MeanAndDeviation(means), true
}

// end is a value of the last moment.
func (g group) end(of func(moment) *event.Number) (s lab.Spread, ok bool) {
	var ends []float64
	for _, seed := range g.seeds() {
		if path := g.cells[seed].Value.Path; len(path) > 0 {
			if v := of(path[len(path)-1]); v != nil {
				ends = append(ends, float64(*v))
			}
		}
	}
	if len(ends) == 0 {
		return s, false
	}
	return lab.MeanAndDeviation(ends), true
}

func clipOf(m moment) *event.Number      { return m.Clip }
func stepOf(m moment) *event.Number      { return m.Step }
func clipAgrees(m moment) *event.Number  { return m.ClipAgree }
func stepAgrees(m moment) *event.Number  { return m.StepAgree }
func clipRises(m moment) *event.Number   { return m.ClipUp }
func stepRises(m moment) *event.Number   { return m.StepUp }
func clippedPart(m moment) *event.Number { return m.Clipped }

// signRows tell where clip and step went, and how many of the signs that moved them were
// those of the gradients and not of the noise.
func (b book) signRows() (out []study.Row) {
	add := func(g group, metric, unit, note string, s lab.Spread, ok bool) {
		if ok {
			out = append(out, lab.Measured(study.Row{Section: adapts, Label: g.name(), Metric: metric, Unit: unit, Note: note, Verdict: study.NoNumber}, s))
		}
	}
	far := fmt.Sprintf("a run cannot move it by more than a factor of %.3g", math.Exp(rate*float64(b.task.steps())))
	for _, g := range b.learned() {
		s, ok := g.end(clipOf)
		add(g, "clip at the end", "", fmt.Sprintf("from %v; %s", g.setting.Clip, far), s, ok)
		s, ok = g.end(stepOf)
		add(g, "step at the end", "", fmt.Sprintf("from %v; %s", g.setting.Step, far), s, ok)
		s, ok = g.share(clipAgrees)
		add(g, "signs of the clip that agree with those without noise", "share", "0.5: a coin", s, ok)
		s, ok = g.share(stepAgrees)
		add(g, "signs of the step that agree with those without noise", "share", "0.5: a coin", s, ok)
		s, ok = g.share(clipRises)
		add(g, "signs that raised the clip", "share", "", s, ok)
		s, ok = g.share(stepRises)
		add(g, "signs that raised the step", "share", "", s, ok)
		s, ok = g.share(clippedPart)
		add(g, "examples that were clipped", "share", "", s, ok)
	}
	return out
}

// pathCharts are clip, step and agreeing signs over time.
func (b book) pathCharts() (out []study.Chart) {
	for _, c := range []struct {
		title, y string
		log      bool
		of       func(moment) *event.Number
	}{
		{"The clip over time", "clip C", true, clipOf},
		{"The step over time", "step rho", true, stepOf},
		{"Signs of the clip that agree with those without noise", "share", false, clipAgrees},
		{"Signs of the step that agree with those without noise", "share", false, stepAgrees},
	} {
		chart := study.Chart{Title: c.title, XTitle: "steps", YTitle: c.y, LogY: c.log, Note: "mean over seeds; known in simulation only, and covered by no guarantee"}
		for _, g := range b.learned() {
			if g.row.runs == 1 {
				continue // rows have them: with four methods and four epsilons all colours are taken
			}
			if s := g.path(c.of); len(s.Points) > 0 {
				chart.Series = append(chart.Series, s)
			}
		}
		if len(chart.Series) > 0 {
			out = append(out, chart)
		}
	}
	return out
}

// path is a value over time, its mean over the seeds.
func (g group) path(of func(moment) *event.Number) study.Series {
	s := study.Series{Name: g.name()}
	for i, m := range g.first().Value.Path {
		var values []float64
		for _, seed := range g.seeds() {
			if path := g.cells[seed].Value.Path; i < len(path) {
				if v := of(path[i]); v != nil {
					values = append(values, float64(*v))
				}
			}
		}
		if len(values) > 0 {
			s.Points = append(s.Points, lab.Exactly(lab.MeanAndDeviation(values).Middle).At(float64(m.Steps)))
		}
	}
	return s
}

// drawn is a group as charts have it: errors are on a log axis, which has no place for a mean
// less a deviation that is larger, as one diverged seed brings about.
func (t task) drawn(g group) lab.Spread {
	if !t.lower {
		return g.spread()
	}
	s := lab.MeanAndDeviation(lab.Pick(g.figures(), math.Log))
	return lab.Spread{Middle: math.Exp(s.Middle), Low: math.Exp(s.Low), High: math.Exp(s.High)}
}

// figureCharts are the thesis's figures by epsilon, ours and theirs.
func (b book) figureCharts(k int) []study.Chart {
	t := b.task.table(k)
	what := b.task.unit
	note := "mean and one standard deviation over seeds, the best cells that are finished"
	if what == "%" {
		what = "test accuracy in %"
	}
	if b.task.lower {
		note = "geometric mean and deviation over seeds, the best cells that are finished; the thesis's are plain ones"
	}
	if b.task.otherData {
		note += "; the thesis's are of nine times as many texts"
	}
	chart := study.Chart{
		Title: fmt.Sprintf("Figure %s (table %s): k = %d, by epsilon", t.figure(), t.Table, k), XTitle: "epsilon of the whole grid", YTitle: what, LogY: b.task.lower,
		Note: note,
	}
	for _, m := range private {
		ours, theirs := study.Series{Name: string(m)}, study.Series{Name: string(m), Paper: true}
		for _, epsilon := range b.task.epsilons {
			if g, ok := b.best(b.place(m, epsilon, k)); ok && (k == 5 || b.complete(g.row)) {
				ours.Points = append(ours.Points, b.task.drawn(g).At(epsilon))
			}
			if f, ok := t.at(m, epsilon); ok {
				theirs.Points = append(theirs.Points, lab.Spread{Middle: f.Figure, Low: f.Figure - f.Deviation, High: f.Figure + f.Deviation}.At(epsilon))
			}
		}
		if len(ours.Points) > 0 {
			chart.Series = append(chart.Series, ours, theirs)
		}
	}
	if len(chart.Series) == 0 {
		return nil
	}
	return []study.Chart{chart}
}
