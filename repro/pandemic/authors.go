package pandemic

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

// size is how large a study of the authors' model is at a scale.
type size struct{ persons, epochs int }

// sizes: at full as many persons and epochs as the thesis has; at quick fewer persons see
// about as many steps.
var sizes = map[string]size{
	lab.Smoke: {1_000, 1},
	lab.Quick: {200_000, 10},
	lab.Full:  {2_610_000, 2},
}

// authors is the run file of the thesis's model without noise: 1,671 inputs, logistic, focal
// loss from zero, steps of 0.2 on batches of 512.
func authors(of size, set ...string) (config.Run, error) {
	text := fmt.Sprintf("name: authors\ndata: {kind: pandemic, persons: %d, inputs: authors}\nalgorithm: {mode: paper, local: {epochs: %d}}\nprivacy: {protects: nothing}\n", of.persons, of.epochs)
	return config.Resolve([]byte(text), set, sim.Checks()...)
}

// cell is what came of a run.
type cell struct {
	AP         float64 `json:"ap"`
	AUC        float64 `json:"auc"`
	Recall     float64 `json:"recall"` // of those who fall ill, said to by more than a half
	Prevalence float64 `json:"prevalence"`
}

// trained makes a cell: every seed has a population of its own.
func trained(l *lab.Lab, run config.Run) (c cell, err error) {
	run.Data.PopulationSeed = 10 + run.Seed
	s, err := l.Finish(run)
	if err != nil {
		return c, err
	}
	defer s.Close()
	res, err := s.Result()
	if err != nil {
		return c, err
	}
	if f := res.Metrics.AveragePrecision; f != nil {
		c.AP = float64(f.Value)
	}
	if f := res.Metrics.AUC; f != nil {
		c.AUC = float64(f.Value)
	}
	m, err := model.Of(run, s.Federation().Shape())
	if err != nil {
		return c, err
	}
	learner, err := m.Learner()
	if err != nil {
		return c, err
	}
	held := s.Federation().Train[0].Held
	values, _, err := learner.Outputs(nil, s.Returned(), held)
	if err != nil {
		return c, err
	}
	ill, found := 0.0, 0.0
	for i, y := range held.Y {
		if ill += y; y == 1 && values[i] > 0 {
			found++
		}
	}
	c.Prevalence, c.Recall = ill/float64(len(values)), found/max(1, ill)
	return c, nil
}

// trials are the cells of some variants of the authors' run, by name.
func trials(l *lab.Lab, of size, names []string, set func(name string) []string) (map[string][]cell, error) {
	runs := make([]config.Run, len(names))
	for i, name := range names {
		var err error
		if runs[i], err = authors(of, set(name)...); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	cells, err := lab.Grid(l, runs, trained)
	byName := map[string][]cell{}
	for i, name := range names {
		byName[name] = cells[i]
	}
	return byName, err
}

func precision(c cell) float64 { return 100 * c.AP }

// shown is a row of a table: the thesis's figure is of other data, so orders are compared.
func shown(section, label string, paper float64, of size, cells []cell) study.Row {
	return lab.Measured(study.Row{
		Section: section, Label: label, Metric: "average precision, in per cent", Unit: "%", Paper: lab.Number(paper), Verdict: study.Incomparable,
		Settings: map[string]any{"persons": of.persons, "epochs": of.epochs},
		Note:     fmt.Sprintf("AUC %.3g; fall ill: %.3g %%", mean(cells, func(c cell) float64 { return c.AUC }), 100*mean(cells, func(c cell) float64 { return c.Prevalence })),
	}, lab.MeanAndDeviation(lab.Pick(cells, precision)))
}

func mean(cells []cell, of func(cell) float64) float64 {
	return lab.MeanAndDeviation(lab.Pick(cells, of)).Middle
}

// order is a claim that one is better than another, seed by seed, each on a population of its
// own.
func order(section, label, sentence, why string, one, other []cell, paper float64) study.Row {
	return lab.Times(study.Row{
		Section: section, Label: label, Metric: "average precision, ratio", Sentence: sentence, Why: why,
		Note: fmt.Sprintf("the thesis's figures: %.3g times; agrees: the whole 95 %% interval over seeds above 1", paper),
	}, lab.Pick(one, nonzero), lab.Pick(other, nonzero), 1)
}

// nonzero is the average precision, of which a ratio can be told.
func nonzero(c cell) float64 { return max(c.AP, 1e-9) }

// fewPopulations is what we believe of differences that so few populations do not tell.
const fewPopulations = "We believe that the difference is small beside what populations differ by. Tested by nothing but the seeds of this scale; --seeds gives more."

// caveats are those of all studies of the authors' model.
func caveats(of size) []string {
	return []string{
		fmt.Sprintf("Populations of %d persons from the generator (docs/pandemic.md), one a seed, not the challenge's: figures cannot be compared, orders can. Trained for %d epochs in batches of 512, %d steps; the thesis has 2 epochs of 2.6 million (Smoke) or 422,000 (Small).", of.persons, of.epochs, of.epochs*(of.persons/512)),
		"Without noise. Inputs are scaled by the whole population, as the thesis has it, and everybody is judged, also those who were ill and cannot fall ill again: ranked last, they would raise every figure.",
	}
}

// missing is a figure or sentence of the thesis that no cell here can be held against, and why;
// 0: a sentence without a figure.
func missing(section, label string, paper float64, sentence, why string) study.Row {
	r := study.Row{Section: section, Label: label, Verdict: study.Incomparable, Note: sentence + "; " + why}
	if paper != 0 {
		r.Paper = lab.Number(paper)
	}
	return r
}
