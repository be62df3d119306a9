// Package silos reproduces paper 002's comparisons of methods that train across silos.
package silos

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{tradeoff, finetune, overhead, spectrumOfLambda, rotatedMNIST, subsample, lowPrivacy}

// cell is one run on silos, boiled down.
type cell struct {
	Figure  event.Number   `json:"figure"` // mean squared error, or share of right answers
	Rounds  []int          `json:"rounds"`
	Curve   []event.Number `json:"curve"` // the figure after each of these rounds
	Epsilon event.Number   `json:"epsilon"`
	Proved  *event.Number  `json:"proved"`
	Noise   event.Number   `json:"noise"` // median over silos
	Short   int            `json:"short"` // silos with less than one batch
	Silos   int            `json:"silos"` // all of them
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
	return boilDown(res), nil
}

// boilDown keeps what tables and curves need. Shares of wrong answers become
// shares of right ones, as the paper has them.
func boilDown(res sim.Result) cell {
	c := cell{Epsilon: res.Privacy.Epsilon, Silos: len(res.Participants)}
	if res.Privacy.Proved != nil {
		c.Proved = &res.Privacy.Proved.Epsilon
	}
	if c.Figure = res.Metrics.Loss; res.Metrics.Error != nil {
		c.Figure = 1 - *res.Metrics.Error
	}
	noise := make([]float64, len(res.Participants))
	for i, line := range res.Participants {
		noise[i] = float64(line.Noise)
		if !line.Comparable {
			c.Short++
		}
	}
	c.Noise = event.Number(lab.Quantiles(noise).Middle)
	for i, r := range res.History.Rounds {
		if every := max(1, len(res.History.Rounds)/50); (i+1)%every != 0 && i != len(res.History.Rounds)-1 {
			continue
		}
		value := r.Loss
		if r.Error != nil {
			value = 1 - *r.Error
		}
		c.Rounds, c.Curve = append(c.Rounds, r.Round), append(c.Curve, value)
	}
	return c
}

// methodRun is one of the paper's methods on one of its data sets, accounted as the
// paper does. Epsilon 0 is without privacy. The authors' loop makes one round more
// than it is told.
func methodRun(kind, method string, epsilon float64) config.Run {
	r := config.Default(kind, method, "paper")
	r.Name = kind
	r.Algorithm.Rounds = 201
	if r.Privacy.Epsilon = epsilon; epsilon == 0 {
		lab.Unprotected(&r)
	}
	switch kind {
	case "vehicle":
		r.Privacy.Delta = 1e-7
	case "rotated-mnist", "cifar10-silos":
		r.Privacy.Delta = 1e-4
	}
	return r
}

func withLambda(r config.Run, lambda float64) config.Run {
	r.Algorithm.Lambda = config.Lambda(fmt.Sprint(lambda))
	return r
}

func withRounds(r config.Run, rounds int) config.Run {
	r.Algorithm.Rounds = rounds
	return r
}

// contender is a method with its settings, and what came out of them: the best
// setting is the one with the best mean over seeds.
type contender struct {
	name     string
	settings []config.Run
	labels   []string // of the settings; empty for a single one
}

func alone(name string, r config.Run) contender {
	return contender{name: name, settings: []config.Run{r}, labels: []string{""}}
}

// overLambdas is a method with its lambda chosen afterwards.
func overLambdas(name string, r config.Run, lambdas []float64) contender {
	c := contender{name: name}
	for _, l := range lambdas {
		c.settings, c.labels = append(c.settings, withLambda(r, l)), append(c.labels, fmt.Sprintf("lambda %v", l))
	}
	return c
}

// outcome is a contender's best setting.
type outcome struct {
	name, label string
	cells       []cell
}

func (o outcome) spread() lab.Spread { return lab.MeanAndDeviation(values(o.cells)) }

// short says how many silos are too small for a batch.
func (o outcome) short() string {
	return fmt.Sprintf("%d of %d silos hold less than one batch", o.cells[0].Short, o.cells[0].Silos)
}

func values(cells []cell) []float64 { return lab.Pick(cells, figure) }

// contest runs all contenders of all rows and returns them with their best
// settings, row by row. Lower is better for errors, higher for shares.
func contest(l *lab.Lab, rows [][]contender, lower bool) ([][]outcome, error) {
	var runs []config.Run
	for _, row := range rows {
		for _, c := range row {
			runs = append(runs, c.settings...)
		}
	}
	cells, err := lab.Grid(l, runs, simulate)
	if err != nil {
		return nil, err
	}
	out := make([][]outcome, len(rows))
	at := 0
	for i, row := range rows {
		for _, c := range row {
			of := cells[at : at+len(c.settings)]
			best := bestOf(of, lower)
			out[i] = append(out[i], outcome{c.name, c.labels[best], of[best]})
			at += len(c.settings)
		}
	}
	return out, nil
}

// bestOf is the setting with the best mean over seeds.
func bestOf(cells [][]cell, lower bool) (best int) {
	for i := range cells {
		a, b := lab.MeanAndDeviation(values(cells[i])).Middle, lab.MeanAndDeviation(values(cells[best])).Middle
		if lower && a < b || !lower && a > b || math.IsNaN(b) {
			best = i
		}
	}
	return best
}

// named finds a contender's outcome.
func named(row []outcome, name string) outcome {
	return row[slices.IndexFunc(row, func(o outcome) bool { return o.name == name })]
}

// claimRow is a sentence of the paper as a row that can be false.
func claimRow(section, label, metric, unit string, s lab.Spread, holds bool, note string) study.Row {
	return lab.Claim(study.Row{Section: section, Label: label, Metric: metric, Unit: unit, Note: note}, s, holds)
}

// paired is the mean difference of two outcomes over the same seeds, with its
// standard deviation.
func paired(a, b outcome) lab.Spread { return pairedBy(figure, a, b) }

// pairedBy is paired for any figure of a cell.
func pairedBy(f func(cell) float64, a, b outcome) lab.Spread {
	d := make([]float64, len(a.cells))
	for i := range d {
		d[i] = f(a.cells[i]) - f(b.cells[i])
	}
	return lab.MeanAndDeviation(d)
}

// caveats are what every experiment on silos has to say.
func caveats(more ...string) []string {
	return append([]string{
		"Unit: example, relation: add-remove, claim: heuristic: batches are shuffled and accounted as Poisson samples, as in the paper. What is proved for the same runs is larger: see the rows on epsilon. Sizes and silo statistics count as public.",
		"tuning: not charged. Where a lambda is chosen, it is the one with the best test figure, as in the paper.",
		"The texts of the papers lack their figures: only prose and the figures of the authors' README can be compared.",
	}, more...)
}

// epsilonRows tell what the heuristic number is, and what is proved.
func epsilonRows(section string, cells []cell, target float64) []study.Row {
	if len(cells) == 0 || target == 0 {
		return nil
	}
	row := func(metric, note string, s lab.Spread) study.Row {
		return lab.Measured(study.Row{Section: section, Label: fmt.Sprintf("target epsilon %v", target), Metric: metric, Unit: "epsilon", Note: note, Verdict: study.NoFigure}, s)
	}
	mean := func(f func(cell) float64) lab.Spread { return lab.MeanAndDeviation(lab.Pick(cells, f)) }
	rows := []study.Row{row("epsilon, as the paper accounts", "heuristic, add-remove, largest over silos", mean(func(c cell) float64 { return float64(c.Epsilon) }))}
	if cells[0].Proved != nil {
		rows = append(rows, row("epsilon, proved", "replace-one, no amplification, largest over silos", mean(func(c cell) float64 { return float64(*c.Proved) })))
	}
	return rows
}

// curveOf is an outcome's figure over the rounds.
func curveOf(o outcome, name string) study.Series {
	s := study.Series{Name: name}
	for i, round := range o.cells[0].Rounds {
		s.Points = append(s.Points, lab.MeanAndDeviation(lab.Pick(o.cells, func(c cell) float64 { return float64(c.Curve[i]) })).At(float64(round)))
	}
	return s
}

// methodSeries is a curve a method: a row of outcomes for every x.
func methodSeries(xs []float64, rows [][]outcome) []study.Series {
	var out []study.Series
	for j, o := range rows[0] {
		s := study.Series{Name: o.name}
		for i, x := range xs {
			s.Points = append(s.Points, rows[i][j].spread().At(x))
		}
		out = append(out, s)
	}
	return out
}
