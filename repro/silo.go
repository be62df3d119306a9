package repro

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sim"
)

// siloCell is one run on silos, boiled down.
type siloCell struct {
	Figure  event.Number   `json:"figure"` // mean squared error, or share of right answers
	Rounds  []int          `json:"rounds"`
	Curve   []event.Number `json:"curve"` // the figure after each of these rounds
	Epsilon event.Number   `json:"epsilon"`
	Proved  *event.Number  `json:"proved"`
	Noise   event.Number   `json:"noise"` // median over silos
	Short   int            `json:"short"` // silos with less than one batch
	Silos   int            `json:"silos"` // all of them
}

func figure(c siloCell) float64 { return float64(c.Figure) }

// siloGrid runs every configuration with every seed, in seed order.
func (l *lab) siloGrid(runs []config.Run) ([][]siloCell, error) {
	out := make([][]siloCell, len(runs))
	var jobs []func() error
	for i, run := range runs {
		run, err := l.resolve(run)
		if err != nil {
			return nil, err
		}
		out[i] = make([]siloCell, l.seeds)
		for s := range l.seeds {
			jobs = append(jobs, func() error {
				one := run
				one.Seed = uint64(s + 1)
				one.Run.Workers = 1 // cells are what is spread over the cores
				return l.remember(one, &out[i][s], func() (any, error) { return l.simulateSilos(one) })
			})
		}
	}
	return out, l.all(jobs)
}

func (l *lab) simulateSilos(run config.Run) (siloCell, error) {
	s, err := sim.NewSilos(run, l.folder)
	if err != nil {
		return siloCell{}, err
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err == nil {
			err = l.ctx.Err()
		}
		if err != nil {
			return siloCell{}, err
		}
	}
	res, err := s.Result()
	if err != nil {
		return siloCell{}, err
	}
	return boilSilos(res), nil
}

// boilSilos keeps what tables and curves need. Shares of wrong answers become
// shares of right ones, as the paper has them.
func boilSilos(res sim.SiloResult) siloCell {
	c := siloCell{Epsilon: res.Privacy.Epsilon, Silos: len(res.Silos)}
	if res.Privacy.Proved != nil {
		c.Proved = &res.Privacy.Proved.Epsilon
	}
	if res.Metrics.TestMSE != nil {
		c.Figure = *res.Metrics.TestMSE
	} else {
		c.Figure = 1 - *res.Metrics.TestError
	}
	noise := make([]float64, len(res.Silos))
	for i, line := range res.Silos {
		noise[i] = float64(line.Noise)
		if !line.Comparable {
			c.Short++
		}
	}
	c.Noise = event.Number(quantiles(noise).middle)
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

// siloRun is one of the paper's methods on one of its data sets, accounted as the
// paper does. Epsilon 0 is without privacy. The authors' loop makes one round more
// than it is told.
func siloRun(kind, method string, epsilon float64) config.Run {
	r := config.Default(kind, method, "paper")
	r.Name = kind
	r.Algorithm.Rounds = 201
	r.Privacy.Epsilon = epsilon
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
	cells       []siloCell
}

func (o outcome) spread() spread { return meanAndDeviation(values(o.cells)) }

func values(cells []siloCell) []float64 {
	out := make([]float64, len(cells))
	for i, c := range cells {
		out[i] = figure(c)
	}
	return out
}

// contest runs all contenders of all rows and returns them with their best
// settings, row by row. Lower is better for errors, higher for shares.
func (l *lab) contest(rows [][]contender, lower bool) ([][]outcome, error) {
	var runs []config.Run
	for _, row := range rows {
		for _, c := range row {
			runs = append(runs, c.settings...)
		}
	}
	cells, err := l.siloGrid(runs)
	if err != nil {
		return nil, err
	}
	out := make([][]outcome, len(rows))
	at := 0
	for i, row := range rows {
		for _, c := range row {
			best := at
			for j := at; j < at+len(c.settings); j++ {
				a, b := meanAndDeviation(values(cells[j])).middle, meanAndDeviation(values(cells[best])).middle
				if lower && a < b || !lower && a > b || math.IsNaN(b) {
					best = j
				}
			}
			out[i] = append(out[i], outcome{c.name, c.labels[best-at], cells[best]})
			at += len(c.settings)
		}
	}
	return out, nil
}

// named finds a contender's outcome.
func named(row []outcome, name string) outcome {
	return row[slices.IndexFunc(row, func(o outcome) bool { return o.name == name })]
}

// claimRow is a sentence of the paper as a row that can be false.
func claimRow(section, label, metric, unit string, s spread, holds bool, note string) study.Row {
	r := measured(study.Row{Section: section, Label: label, Metric: metric, Unit: unit, Note: note, Verdict: study.Differs}, s)
	if holds {
		r.Verdict = study.Agrees
	}
	return r
}

// paired is the mean difference of two outcomes over the same seeds, with its
// standard deviation.
func paired(a, b outcome) spread {
	d := make([]float64, len(a.cells))
	for i := range d {
		d[i] = figure(a.cells[i]) - figure(b.cells[i])
	}
	return meanAndDeviation(d)
}

// siloCaveats are what every experiment on silos has to say.
func siloCaveats(more ...string) []string {
	return append([]string{
		"Unit: example, relation: add-remove, claim: heuristic: batches are shuffled and accounted as Poisson samples, as in the paper. What is proved for the same runs is larger: see the rows on epsilon. Sizes and silo statistics count as public.",
		"tuning: not charged. Where a lambda is chosen, it is the one with the best test figure, as in the paper.",
		"The texts of the papers lack their figures: only prose and the figures of the authors' README can be compared.",
	}, more...)
}

// epsilonRows tell what the heuristic number is, and what is proved.
func epsilonRows(section string, cells []siloCell, target float64) []study.Row {
	if len(cells) == 0 || target == 0 {
		return nil
	}
	row := func(metric, note string, s spread) study.Row {
		return measured(study.Row{Section: section, Label: fmt.Sprintf("target epsilon %v", target), Metric: metric, Unit: "epsilon", Note: note, Verdict: study.NoFigure}, s)
	}
	pick := func(f func(siloCell) float64) spread {
		v := make([]float64, len(cells))
		for i, c := range cells {
			v[i] = f(c)
		}
		return meanAndDeviation(v)
	}
	rows := []study.Row{row("epsilon, as the paper accounts", "heuristic, add-remove, largest over silos", pick(func(c siloCell) float64 { return float64(c.Epsilon) }))}
	if cells[0].Proved != nil {
		rows = append(rows, row("epsilon, proved", "replace-one, no amplification, largest over silos", pick(func(c siloCell) float64 { return float64(*c.Proved) })))
	}
	return rows
}

// curveOf is an outcome's figure over the rounds.
func curveOf(o outcome, name string) study.Series {
	s := study.Series{Name: name}
	for i, round := range o.cells[0].Rounds {
		v := make([]float64, len(o.cells))
		for j, c := range o.cells {
			v[j] = float64(c.Curve[i])
		}
		m := meanAndDeviation(v)
		s.Points = append(s.Points, study.Point{X: float64(round), Y: m.middle, Low: m.low, High: m.high})
	}
	return s
}
