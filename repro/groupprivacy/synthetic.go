// Package groupprivacy reproduces the studies of Algorithm 1, group privacy by clustering: synthetic data, hospital charges, handwriting.
package groupprivacy

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/metrics"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{synthetic, hospital, handwriting}

var synthetic = lab.Experiment{
	ID: "synthetic", Title: "Two linear groups: FedAvg, IFCA and group-private training",
	Paper: "paper 000, figures 1 and 2, appendix B.1, propositions 3.1 and 3.2; paper 004, section 4.1; thesis 001, section 2.5.1",
	Quick: "5 s", Full: "20 s",
	Seeds:  map[string]int{lab.Smoke: 4, lab.Quick: 50, lab.Full: 200},
	Launch: runSynthetic,
}

// variant is one way to train the synthetic federation.
type variant struct {
	section, label string
	kind, mode     string
	settings       map[string]any
	change         func(*config.Run)
	sentence       string // that the paper says of where it ends
	note           string
}

func balanced(r *config.Run) {
	r.Algorithm.Sampling, r.Algorithm.Rounds, r.Algorithm.Stop.Patience = "balanced", 85, 0
}

func patience(n int) func(*config.Run) {
	return func(r *config.Run) { r.Algorithm.Stop.Patience = n }
}

// SoundRadius trains in sound mode, everybody asked in turn: a public radius that decays.
func SoundRadius(c, decay float64, epochs, clients, rounds int) func(*config.Run) {
	return func(r *config.Run) {
		balanced(r)
		r.Algorithm.ClientsPerRound, r.Algorithm.Rounds = clients, rounds
		r.Privacy.Radius, r.Privacy.RadiusDecay, r.Algorithm.Local.Epochs = c, decay, epochs
	}
}

var variants = []variant{
	{"Figure 1: as the paper sets it", "FedAvg", "fedavg", "paper", map[string]any{"k": 1, "nu": 0}, nil, "", "one model lies between the two groups"},
	{"Figure 1: as the paper sets it", "IFCA", "ifca", "paper", map[string]any{"k": 2, "nu": 0}, nil, "", "both groups are found"},
	{"Figure 1: as the paper sets it", "group-private", "group-private", "paper", map[string]any{"k": 2, "nu": 5, "patience": 6}, nil,
		"appendix B.1: in just a few rounds the process converges to values very close to the two optimal parameters", "agrees: 9 seeds in 10 do; the paper shows one run"},
	{"What matters", "nu 2", "group-private", "paper", map[string]any{"k": 2, "nu": 2, "patience": 6}, func(r *config.Run) { r.Privacy.NoiseMultiplier = 2 }, "", "less noise"},
	{"What matters", "patience 12", "group-private", "paper", map[string]any{"k": 2, "nu": 5, "patience": 12}, patience(12), "", "more rounds, more leakage"},
	{"What matters", "patience 30", "group-private", "paper", map[string]any{"k": 2, "nu": 5, "patience": 30}, patience(30), "", "more rounds, more leakage"},
	{"What matters", "empty clusters kept", "group-private", "paper", map[string]any{"k": 2, "nu": 5, "empty": "keep"}, func(r *config.Run) { r.Algorithm.Empty = "keep" }, "", "the paper does not say what happens to a hypothesis without updates"},
	{"What matters", "balanced, best round", "group-private", "paper", map[string]any{"k": 2, "nu": 5, "sampling": "balanced", "rounds": 85}, balanced, "", "the same leakage, three times as many rounds; validators unprotected"},
	{"What matters", "balanced, last round", "group-private", "paper", map[string]any{"k": 2, "nu": 5, "sampling": "balanced", "rounds": 85, "return": "last"},
		func(r *config.Run) { balanced(r); r.Algorithm.Stop.Return = "last" }, "", "without looking at validators"},
	{"Sound mode: public radius, fixed rounds, last model", "C = 0.2, 3 epochs", "group-private", "sound", map[string]any{"k": 2, "nu": 5, "C": 0.2, "decay": 1, "epochs": 3}, SoundRadius(0.2, 1, 3, 7, 85), "", ""},
	{"Sound mode: public radius, fixed rounds, last model", "C = 0.3*0.985^t, 3 epochs", "group-private", "sound", map[string]any{"k": 2, "nu": 5, "C": 0.3, "decay": 0.985, "epochs": 3}, SoundRadius(0.3, 0.985, 3, 7, 85), "", ""},
	{"Sound mode: public radius, fixed rounds, last model", "C = 0.8*0.945^t, 10 epochs, 14 clients", "group-private", "sound", map[string]any{"k": 2, "nu": 5, "C": 0.8, "decay": 0.945, "epochs": 10, "clients": 14, "rounds": 42}, SoundRadius(0.8, 0.945, 10, 14, 42), "", ""},
	{"Sound mode: public radius, fixed rounds, last model", "the same, best round", "group-private", "sound", map[string]any{"k": 2, "nu": 5, "C": 0.8, "decay": 0.945, "epochs": 10, "clients": 14, "rounds": 42, "return": "best"},
		func(r *config.Run) { SoundRadius(0.8, 0.945, 10, 14, 42)(r); r.Algorithm.Stop.Return = "best" }, "", "validators unprotected"},
}

func runSynthetic(l *lab.Lab) (study.Study, error) {
	var runs []config.Run
	for _, v := range variants {
		run := config.Default("synthetic", v.kind, v.mode)
		run.Name = "synthetic"
		if v.change != nil {
			v.change(&run)
		}
		runs = append(runs, run)
	}
	cells, err := lab.Grid(l, runs, simulate)
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"100 clients of two groups hold 10 rows each of y = x·theta + u. Seven of them are asked in every round. The paper shows one run of each method; here are many seeds.",
			"Figures are medians with the middle 80 % of seeds, shares have their 95 % interval. A seed comes near both optima if each group's true parameters have a model within 1.0.",
		},
		Caveats: []string{
			"In paper mode the radius is the update's own length: the leakage is heuristic. Sound rows are d-private at the public radius C_t; what they lose at C, between any two updates (2C), and if the choice of hypothesis changes, are rows of their own.",
			"The texts of the papers lack their figures: only prose and the maximum leakage can be compared.",
			"The settings of the sound rows were chosen on other seeds of the same problem; tuning is not charged.",
		},
	}
	courses, err := coursesOf(l, runs[:3])
	if err != nil {
		return s, err
	}
	s.Charts = courseCharts(variants[:3], courses)
	noise, err := laplaceRows()
	if err != nil {
		return s, err
	}
	// What the texts claim stands before what they do not speak of.
	for i, v := range variants {
		if i == 3 {
			s.Rows = slices.Concat(s.Rows, ablationRows(cells[0], cells[1], cells[2], courses[0]), privateRows(cells[2], courses[2]), noise)
			s.Rows = append(s.Rows, riseRow(l.Seeds))
		}
		s.Rows = append(s.Rows, synthRows(v, cells[i])...)
	}
	return s, nil
}

// patienceWhy is what we believe where group-private training does not end near both optima.
const patienceWhy = "We believe that the papers show a run that went well: a patience of 6 rounds, on losses of few noised rounds, stops most runs while the models are still on their way, although nearly all clients choose the model of their own group by then. Tested by the rows on patience and on sampling: with a patience of 30, or with balanced sampling for 85 rounds at the same leakage, nearly all seeds come near both optima."

// mostSeeds is the share of seeds that must come near both optima for what the papers show of
// one run.
const mostSeeds = 0.9

// foundBoth is how many seeds come near both optima.
func foundBoth(cells []cell) (n int) {
	for _, c := range cells {
		if worst(c) <= 1 {
			n++
		}
	}
	return n
}

// shareOf is a share of seeds, with its 95 % interval (Clopper and Pearson).
func shareOf(hits, cases int) lab.Spread {
	return lab.Spread{Middle: float64(hits) / float64(cases), Low: metrics.AtLeast(hits, cases, 0.025), High: metrics.AtMost(hits, cases, 0.025)}
}

func synthRows(v variant, cells []cell) []study.Row {
	row := func(metric, unit string) study.Row {
		return study.Row{Section: v.section, Label: v.label, Metric: metric, Settings: v.settings, Unit: unit, Verdict: study.NoNumber, Note: v.note}
	}
	near := foundBoth(cells)
	loss := lab.Measured(row("validation RMSE", "y"), lab.Quantiles(lab.Pick(cells, validation)))
	found := lab.Measured(row("seeds near both optima", "share"), shareOf(near, len(cells)))
	if v.sentence != "" {
		loss.Note, found.Sentence = "the text lacks the figure", v.sentence
		found.Why = patienceWhy
		found.Note = ""
		found = lab.Share95(found, near, len(cells), mostSeeds)
	}
	out := []study.Row{loss, found}
	if v.kind != "group-private" {
		return out
	}
	claim := map[string]string{"paper": "heuristic", "sound": "metric"}[v.mode]
	leak := lab.Measured(row("maximum leakage", "epsilon at the radius, "+claim), lab.Quantiles(lab.Pick(cells, largest)))
	if v.sentence != "" {
		leak.Paper, leak.Note = lab.Number(2.4), "thesis 001, section 2.5.1, of one run; n/nu = 0.4 a release, times the most frequent client's releases; agrees: within the middle 80 % of seeds"
		leak = lab.Judged(leak, float64(*leak.Low), float64(*leak.High), 2.4)
	}
	out = append(out, leak)
	if v.mode == "sound" {
		out = append(out,
			lab.Measured(row("loss against any update (2C)", "epsilon, metric"), lab.Quantiles(lab.Pick(cells, func(c cell) float64 { return float64(*c.AnyUpdate) }))),
			lab.Measured(row("loss if the hypothesis changes", "epsilon, metric"), lab.Quantiles(lab.Pick(cells, func(c cell) float64 { return float64(*c.Switch) }))))
	}
	return out
}
