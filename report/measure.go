package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/layout"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// tested says that examples are judged, all together: everybody's own, or one test set;
// otherwise clients judge that take no part in training.
func tested(r sim.Summary) bool { return r.Judge == "own" || r.Judge == "test" }

// central says that one data set is trained on as a whole: there are no clients to speak
// of.
func central(r sim.Summary) bool { return fl.IsCentral(r.Algorithm) }

func allCentral(runs []run) bool {
	return !slices.ContainsFunc(runs, func(r run) bool { return !central(r.Summary) })
}

// testedWords say which models are held against which examples.
func testedWords(r sim.Summary) string {
	switch {
	case r.Judge == "own":
		return "every client’s model on its own held-out examples"
	case central(r):
		return "the model on the examples that were held out"
	}
	return "the server’s model (of several the one that fits best) on everybody’s held-out examples as one test set"
}

// classes says that the run's examples have classes; otherwise they have values.
func classes(r sim.Summary) bool { return r.Metrics.Error != nil || r.Metrics.Accuracy != nil }

// ofWords says that the run's examples are words.
func ofWords(r sim.Summary) bool { return r.Metrics.Perplexity != nil }

// loss is what the judge's is called, what its axis says behind that, and what it is a
// mean of.
func (r run) loss() (name, unit, of string) {
	judge := r.judgeName() + " "
	switch {
	case ofWords(r.Summary):
		return judge + "log loss", ", in nats a word", "cross entropy of the next word"
	case r.Metrics.MSE != nil && tested(r.Summary):
		return judge + "MSE", ", of pixels from 0 to 1", "squared error of their pixels"
	case !classes(r.Summary) && tested(r.Summary):
		return judge + "MSE", ", in squared " + r.targetUnit(), "squared error"
	case !classes(r.Summary):
		return judge + "RMSE", ", in " + r.targetUnit(), "root mean squared error"
	}
	if of = r.classLoss(); of == "cross entropy" {
		unit = ", in nats"
	}
	if name = judge + of; !tested(r.Summary) {
		of = "mean " + of + " of their examples"
	}
	return name, unit, of
}

// targetUnit is the unit of the values that losses are of: a target with a public range is
// trained and judged as 0 to 1 of it. RMSE and MAE of all examples are in its own unit.
func (r run) targetUnit() string {
	if r.known && len(r.plan.Data.TargetRange) > 0 {
		return "shares of the target’s range"
	}
	return "units of y"
}

// judgeName begins the names of the judge's figures.
func (r run) judgeName() string {
	if tested(r.Summary) {
		return "Test"
	}
	return "Validation"
}

func (r run) lossName() string { name, _, _ := r.loss(); return name }
func (r run) lossUnit() string { name, unit, _ := r.loss(); return name + unit }

// classLoss is the loss that classes are judged by: networks by cross entropy, whatever
// training followed.
func (r run) classLoss() string {
	if r.known && r.plan.Algorithm.Local.Loss == "hinge" && r.plan.Model.Kind == "linear" {
		return "hinge loss"
	}
	return "cross entropy"
}

// lossWords say what the judge's loss is a mean of.
func (r run) lossWords() string {
	name, _, of := r.loss()
	if tested(r.Summary) {
		return name + ": " + testedWords(r.Summary) + "; the mean over all of them of the " + of + "."
	}
	return name + ": mean over the validating clients of the " + of + " under the model that fits each best."
}

// headline is the figure that a run is first judged by: the average precision of people's
// risks, the share of wrong answers of other tested examples that have classes, the loss
// otherwise.
func headline(r sim.Summary) (value float64, ofErrors bool) {
	switch m, f := r.Metrics, rankedFigure(r); {
	case f != nil:
		return float64(f.Value), false
	case tested(r) && m.Error != nil && !ranked(r):
		return float64(*m.Error), true
	}
	return float64(r.Metrics.Loss), false
}

// lineFigure is a participant's own, if it has one.
func lineFigure(l sim.Line) *event.Number {
	if l.Untrained != nil {
		return numberOf(l.Untrained.AveragePrecision)
	}
	return cmp.Or(l.Error, l.Loss)
}

// lineFigureName is the name of lineFigure.
func (r run) lineFigureName() string {
	switch {
	case ranked(r.Summary):
		return averagePrecision
	case classes(r.Summary):
		return "Test error"
	}
	return r.lossName()
}

// averagePrecision begins sentences and columns.
const averagePrecision = "Average precision"

// taskFigure is a metric of the task, over all judged examples.
type taskFigure struct {
	name  string
	of    func(sim.Metrics) *metrics.Figure
	write func(event.Number) string
	// pageOnly figures are left out on a terminal, whose lines are short.
	pageOnly bool
}

var taskFigures = []taskFigure{
	{accuracyName, func(m sim.Metrics) *metrics.Figure { return m.Accuracy }, percent, false},
	{"log loss", func(m sim.Metrics) *metrics.Figure { return m.LogLoss }, rounded, false},
	{"perplexity", func(m sim.Metrics) *metrics.Figure { return m.Perplexity }, rounded, false},
	{"AUC", func(m sim.Metrics) *metrics.Figure { return m.AUC }, rounded, false},
	{"average precision", func(m sim.Metrics) *metrics.Figure { return m.AveragePrecision }, rounded, false},
	{"Brier score", func(m sim.Metrics) *metrics.Figure { return m.Brier }, rounded, true},
	{"calibration slope", func(m sim.Metrics) *metrics.Figure { return m.CalibrationSlope }, rounded, true},
	{"calibration intercept", func(m sim.Metrics) *metrics.Figure { return m.CalibrationIntercept }, rounded, true},
	{"RMSE of all examples", func(m sim.Metrics) *metrics.Figure { return m.RMSE }, rounded, false},
	{"MAE", func(m sim.Metrics) *metrics.Figure { return m.MAE }, rounded, false},
	{"variance captured", func(m sim.Metrics) *metrics.Figure { return m.Captured }, percent, false},
	{"R²", func(m sim.Metrics) *metrics.Figure { return m.R2 }, rounded, false},
	{"100 × MSE", func(m sim.Metrics) *metrics.Figure { return m.MSE }, hundredfold, false},
}

const accuracyName = "accuracy"

// idle says that the figure tells nothing of people: hardly any of them fall ill, so that
// nearly all answers are right.
func (f taskFigure) idle(people bool) bool { return people && f.name == accuracyName }

func percent(n event.Number) string { return fmt.Sprintf("%.1f %%", 100*float64(n)) }

// hundredfold is how paper 001 writes the mean squared error of pixels from 0 to 1.
func hundredfold(n event.Number) string { return rounded(100 * n) }

func rounded(n event.Number) string { return prose.Rounded(float64(n)) }
func cost(n event.Number) string    { return prose.Cost(float64(n)) }

// cell is the figure over its interval.
func (f taskFigure) cell(m sim.Metrics) layout.Cell {
	c := figureCell(f.of(m), f.write)
	c.Strong = c.Text != ""
	return c
}

// figureCell is a figure over its interval.
func figureCell(v *metrics.Figure, write func(event.Number) string) layout.Cell {
	if v == nil {
		return layout.Cell{}
	}
	c := layout.Cell{Text: write(v.Value)}
	if v.Low != nil && v.High != nil {
		c.Small = []string{write(*v.Low) + " to " + write(*v.High)}
	}
	return c
}
