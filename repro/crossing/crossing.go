// Package crossing compares the methods of the two theses with one another: each on the other's data and under the other's privacy.
package crossing

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{handwritingMethods, schoolClustering}

// contender is a method and what a run file says of it.
type contender struct {
	name string
	set  []string
}

// setting is what all contenders of a table share: a protection, as it is headed and as
// run files say it.
type setting struct {
	title string
	x     float64 // where it stands in a chart; NaN: in none
	set   []string
}

// table is a setting and what came of every contender that takes part in it.
type table struct {
	setting
	outcomes []outcome
}

// outcome is a contender's cells, in seed order.
type outcome struct {
	name  string
	cells []cell
}

// cell is one run, boiled down.
type cell struct {
	Figure  event.Number `json:"figure"` // mean squared error, or share of right answers
	Epsilon event.Number `json:"epsilon"`
	Claim   event.Claim  `json:"claim"`
	// Moved is the share of participants that end in another cluster than that of their
	// number, where those begin who choose by their last release alone.
	Moved event.Number `json:"moved"`
}

func figure(c cell) float64 { return float64(c.Figure) }

func simulate(l *lab.Lab, run config.Run) (cell, error) {
	s, err := l.Finish(run)
	if err != nil {
		return cell{}, err
	}
	defer s.Close()
	res, err := s.Result()
	if err != nil {
		return cell{}, err
	}
	c := cell{Figure: res.Metrics.Loss, Epsilon: res.Privacy.Epsilon, Claim: res.Privacy.Claim}
	if res.Metrics.Accuracy != nil {
		c.Figure = res.Metrics.Accuracy.Value
	}
	moved := 0
	for i, line := range res.Participants {
		if line.Cluster != nil && *line.Cluster != i%res.Hypotheses {
			moved++
		}
	}
	c.Moved = event.Number(float64(moved) / float64(max(1, len(res.Participants))))
	return c, nil
}

// settled are the runs of contenders under a setting.
func settled(file string, s setting, contenders []contender) ([]config.Run, error) {
	var runs []config.Run
	for _, c := range contenders {
		run, err := config.Resolve([]byte(file), slices.Concat(s.set, c.set), sim.Checks()...)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", s.title, c.name, err)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// compare runs the contenders of every setting.
func compare(l *lab.Lab, file string, settings []setting, contenders func(setting) []contender) ([]table, error) {
	var tables []table
	var runs []config.Run
	for _, s := range settings {
		more, err := settled(file, s, contenders(s))
		if err != nil {
			return nil, err
		}
		runs = append(runs, more...)
		t := table{setting: s}
		for _, c := range contenders(s) {
			t.outcomes = append(t.outcomes, outcome{name: c.name})
		}
		tables = append(tables, t)
	}
	cells, err := lab.Grid(l, runs, simulate)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		for j := range t.outcomes {
			t.outcomes[j].cells, cells = cells[0], cells[1:]
		}
	}
	return tables, nil
}

func (o outcome) spread() lab.Spread { return lab.MeanAndDeviation(lab.Pick(o.cells, figure)) }

// named finds a contender's outcome; false if it sat out.
func (t table) named(name string) (outcome, bool) {
	i := slices.IndexFunc(t.outcomes, func(o outcome) bool { return o.name == name })
	if i < 0 {
		return outcome{}, false
	}
	return t.outcomes[i], true
}

// promised says what an outcome's privacy is.
func (o outcome) promised() string {
	c := o.cells[0]
	if c.Claim == event.ClaimNone {
		return "claim none"
	}
	return fmt.Sprintf("epsilon %.4g, claim %s", float64(c.Epsilon), c.Claim)
}

// noFigure is said of every experiment here.
const noFigure = "No figure in the papers: neither compares these methods, so no row can agree or differ. What a row has is ours, and what it says of a difference holds if the interval over seeds leaves out 0."

// levelRows are the figures of a table.
func (t table) levelRows(metric, unit string) []study.Row {
	var rows []study.Row
	for _, o := range t.outcomes {
		rows = append(rows, lab.Measured(study.Row{
			Section: t.title, Label: o.name, Metric: metric, Unit: unit, Verdict: study.NoNumber,
			Settings: map[string]any{"epsilon": o.cells[0].Epsilon, "claim": o.cells[0].Claim}, Note: o.promised(),
		}, o.spread()))
	}
	return rows
}

// duel is a comparison of two contenders.
type duel struct{ a, b string }

// duelRows are the differences of a table, seed by seed, as difference says it in a
// unit.
func (t table) duelRows(duels []duel, unit string, lower bool, difference func(a, b cell) float64) []study.Row {
	var rows []study.Row
	for _, d := range duels {
		a, okA := t.named(d.a)
		b, okB := t.named(d.b)
		if !okA || !okB {
			continue
		}
		s := paired(a, b, difference)
		rows = append(rows, lab.Measured(study.Row{
			Section: t.title + ": against one another", Label: d.a + " against " + d.b, Metric: "difference", Unit: unit,
			Verdict: study.NoNumber, Note: words(s, d, len(a.cells), lower),
		}, s))
	}
	return rows
}

// paired is the mean difference over the same seeds, and its 95 % interval by Student's
// t; one seed has none.
func paired(a, b outcome, difference func(a, b cell) float64) lab.Spread {
	d := make([]float64, len(a.cells))
	for i := range d {
		d[i] = difference(a.cells[i], b.cells[i])
	}
	s := lab.MeanAndDeviation(d)
	n := float64(len(d))
	if n < 2 {
		return lab.Exactly(s.Middle)
	}
	half := (s.High - s.Middle) / math.Sqrt(n) * distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975)
	return lab.Spread{Middle: s.Middle, Low: s.Middle - half, High: s.Middle + half}
}

// points are a difference of two shares in hundredths; percent is one error's distance
// from another, relative to that.
func points(a, b cell) float64  { return 100 * (figure(a) - figure(b)) }
func percent(a, b cell) float64 { return 100 * (figure(a)/figure(b) - 1) }

// words say who is better, if the interval tells.
func words(s lab.Spread, d duel, seeds int, lower bool) string {
	switch {
	case seeds < 2:
		return "one seed tells nothing about chance"
	case s == lab.Exactly(0):
		return "the same figures with every seed"
	case s.Low <= 0 && s.High >= 0:
		return fmt.Sprintf("%d seeds do not tell them apart", seeds)
	case (s.Middle < 0) == lower:
		return d.a + " is better"
	}
	return d.b + " is better"
}

// chart is a curve a contender over the settings that have a place in it. One that sits
// out in all but one setting is drawn across.
func chart(title, note, x, y string, tables []table, contenders []contender) study.Chart {
	c := study.Chart{Title: title, XTitle: x, YTitle: y, LogX: true, Note: note + "mean and one standard deviation over seeds"}
	for _, one := range contenders {
		s := study.Series{Name: one.name}
		var xs []float64
		for _, t := range tables {
			if math.IsNaN(t.x) {
				continue
			}
			xs = append(xs, t.x)
			if o, ok := t.named(one.name); ok {
				s.Points = append(s.Points, o.spread().At(t.x))
			}
		}
		if len(s.Points) == 1 {
			level := s.Points[0]
			s.Points = nil
			for _, x := range xs {
				s.Points = append(s.Points, study.Point{X: x, Y: level.Y, Low: level.Low, High: level.High})
			}
		}
		c.Series = append(c.Series, s)
	}
	return c
}
