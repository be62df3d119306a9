// Package silos reproduces paper 002's comparisons of methods that train across silos.
package silos

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
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

// simulate keeps what tables and curves need of a run. Shares of wrong answers become
// shares of right ones, as the paper has them.
func simulate(l *lab.Lab, run config.Run) (cell, error) {
	res, err := l.Result(run)
	if err != nil {
		return cell{}, err
	}
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
	return c, nil
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
	if r.Algorithm.Lambda = config.Lambda(fmt.Sprint(lambda)); math.IsInf(lambda, 1) {
		r.Algorithm.Lambda = "inf"
	}
	return r
}

func withRounds(r config.Run, rounds int) config.Run {
	r.Algorithm.Rounds = rounds
	return r
}

// contender is a method with its settings.
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
		one := withLambda(r, l)
		c.settings, c.labels = append(c.settings, one), append(c.labels, "lambda "+string(one.Algorithm.Lambda))
	}
	return c
}

// outcome is what came of a contender: its best setting is the one with the best mean
// over seeds.
type outcome struct {
	name, label string   // of the contender, and of its best setting
	cells       []cell   // of the best setting
	all         [][]cell // of every setting
	best        int
}

func (o outcome) spread() lab.Spread { return spread(o.cells) }

// short says how many silos are too small for a batch.
func (o outcome) short() string {
	return fmt.Sprintf("%d of %d silos hold less than one batch", o.cells[0].Short, o.cells[0].Silos)
}

func spread(cells []cell) lab.Spread { return lab.MeanAndDeviation(lab.Pick(cells, figure)) }

// contest runs the contenders at every x and returns their outcomes, a row for every x.
// Lower is better for errors, higher for shares.
func contest(l *lab.Lab, xs []float64, lower bool, contenders func(x float64) []contender) ([][]outcome, error) {
	return contestOver(xs, lower, contenders, func(runs []config.Run) ([][]cell, error) { return lab.Grid(l, runs, simulate) })
}

// contestOver is a contest whose cells are made by grid: every run with every seed.
func contestOver(xs []float64, lower bool, contenders func(x float64) []contender, grid func([]config.Run) ([][]cell, error)) ([][]outcome, error) {
	var runs []config.Run
	for _, x := range xs {
		for _, c := range contenders(x) {
			runs = append(runs, c.settings...)
		}
	}
	cells, err := grid(runs)
	if err != nil {
		return nil, err
	}
	out := make([][]outcome, len(xs))
	for i, x := range xs {
		for _, c := range contenders(x) {
			n := len(c.settings)
			best := bestOf(cells[:n], lower)
			out[i] = append(out[i], outcome{c.name, c.labels[best], cells[best], cells[:n], best})
			cells = cells[n:]
		}
	}
	return out, nil
}

// bestOf is the setting with the best mean over seeds.
func bestOf(cells [][]cell, lower bool) (best int) {
	for i := range cells {
		a, b := spread(cells[i]).Middle, spread(cells[best]).Middle
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

// figureRows are outcomes that the paper has no numbers for: like, with each one's name
// behind the label, its setting where settings have a place for one, and a note.
func figureRows(like study.Row, row []outcome, note func(outcome) string) []study.Row {
	var rows []study.Row
	for _, o := range row {
		r := like
		r.Label, r.Verdict, r.Note, r.Settings = like.Label+o.name, study.NoNumber, note(o), maps.Clone(like.Settings)
		if _, ok := r.Settings["setting"]; ok {
			r.Settings["setting"] = o.label
		}
		rows = append(rows, lab.Measured(r, o.spread()))
	}
	return rows
}

// plainly notes the setting, and the same of all outcomes.
func plainly(text string) func(outcome) string {
	return func(o outcome) string { return joined(o.label, text) }
}

// joined puts a comma between words, where there are any.
func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// paired is the mean difference of two outcomes over the same seeds, with its
// standard deviation.
func paired(a, b outcome) lab.Spread {
	return lab.MeanAndDeviation(lab.Differences(a.cells, b.cells, figure))
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
		return lab.Measured(study.Row{Section: section, Label: fmt.Sprintf("target epsilon %v", target), Metric: metric, Unit: "epsilon", Note: note, Verdict: study.NoNumber}, s)
	}
	mean := func(f func(cell) float64) lab.Spread { return lab.MeanAndDeviation(lab.Pick(cells, f)) }
	rows := []study.Row{row("epsilon, as the paper accounts", "heuristic, add-remove, largest over silos", mean(func(c cell) float64 { return float64(c.Epsilon) }))}
	if cells[0].Proved != nil {
		rows = append(rows, row("epsilon, proved", "replace-one, no amplification, largest over silos", mean(func(c cell) float64 { return float64(*c.Proved) })))
	}
	return rows
}

// budgetRows are the epsilonRows of a contest over epsilon.
func budgetRows(section string, epsilons []float64, rows [][]outcome) (out []study.Row) {
	for i, row := range rows {
		out = append(out, epsilonRows(section, row[0].cells, epsilons[i])...)
	}
	return out
}

// curve is an outcome's figure over the rounds.
func (o outcome) curve() study.Series {
	rounds := lab.Pick(o.cells[0].Rounds, func(round int) float64 { return float64(round) })
	return lab.Curve(o.name, rounds, func(i int) lab.Spread {
		return lab.MeanAndDeviation(lab.Pick(o.cells, func(c cell) float64 { return float64(c.Curve[i]) }))
	})
}

// methodSeries is a curve a method: a row of outcomes for every x.
func methodSeries(xs []float64, rows [][]outcome) (out []study.Series) {
	for j, o := range rows[0] {
		out = append(out, lab.Curve(o.name, xs, func(i int) lab.Spread { return rows[i][j].spread() }))
	}
	return out
}
