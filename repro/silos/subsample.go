package silos

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var subsample = lab.Experiment{
	ID: "silo-subsample", Title: "Silos: with less data each, more is gained by sharing",
	Paper: "paper 002, figure G.7",
	Needs: []string{"school"}, Quick: "60 s", Full: "6 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 10},
	Launch: runSubsample,
}

func runSubsample(l *lab.Lab) (study.Study, error) {
	tests, epsilons, lambdas, rounds := []float64{0.2, 0.5, 0.8}, []float64{1, 2, 3, 4, 6, 8, 10}, []float64{0.1, 0.3, 1, 3, 10}, 201
	switch l.Scale {
	case lab.Smoke:
		tests, epsilons, lambdas, rounds = []float64{0.8}, []float64{6}, []float64{1}, 6
	case lab.Quick:
		epsilons, lambdas = []float64{3, 6, 10}, []float64{1, 3, 10}
	}
	outcomes := make([][][]outcome, len(tests)) // by test share and epsilon
	for i, test := range tests {
		var err error
		outcomes[i], err = contest(l, epsilons, true, func(epsilon float64) []contender {
			at := func(method string) config.Run {
				r := withRounds(methodRun("school", method, epsilon), rounds)
				r.Data.TestShare = test
				return r
			}
			return []contender{
				alone("local", at("local")), alone("FedAvg", at("fedavg")), alone("fine-tuning", at("finetune")), overLambdas("MR-MTL", at("mr-mtl"), lambdas),
			}
		})
		if err != nil {
			return study.Study{}, err
		}
	}
	s := study.Study{
		Intro: []string{
			"School again, with 80, 50 and 20 % of every school's pupils for training. The paper's claims: with less data FedAvg gains on training alone, the epsilon at which training alone overtakes it grows or is never reached, and MR-MTL, whose lambda cannot grow at will, may no longer be best.",
		},
		Caveats: caveats("Steps are 0.01."),
	}
	for i, test := range tests {
		section := fmt.Sprintf("Figure G.7: %.0f %% for training", 100*(1-test))
		for j, epsilon := range epsilons {
			s.Rows = append(s.Rows, figureRows(study.Row{
				Section: section, Label: fmt.Sprintf("epsilon %v: ", epsilon), Metric: "test MSE", Unit: "squared",
				Settings: map[string]any{"epsilon": epsilon, "test_share": test, "setting": ""},
			}, outcomes[i][j], plainly("the text lacks the figure"))...)
		}
		s.Charts = append(s.Charts, tradeoffChart(section, "test MSE, lower is better", epsilons, outcomes[i]))
	}
	s.Rows = append(s.Rows, budgetRows("What the budgets are, at the first share", epsilons, outcomes[0])...)
	s.Rows = append(s.Rows, crossingRows(tests, epsilons, lambdas, outcomes)...)
	return s, nil
}

// crossingRows state what G.4 observes, from the largest share for training to the smallest.
func crossingRows(tests, epsilons, lambdas []float64, outcomes [][][]outcome) []study.Row {
	const section = "Figure G.7: what the text claims"
	over := func(of [][]outcome, a, b string) []float64 { // gains, mean over epsilons
		var lists [][]float64
		for _, row := range of {
			lists = append(lists, gains(true, named(row, a), named(row, b)))
		}
		return meanOver(lists...)
	}
	var rows []study.Row
	for i, test := range tests {
		label := fmt.Sprintf("%.0f %% for training, all epsilons together: ", 100*(1-test))
		rows = append(rows, effect(gain(section, label+"fine-tuning over local", "G.1: local fine-tuning was observed to outperform local training in figure G.7", fewSeeds), over(outcomes[i], "fine-tuning", "local"), 0))
	}
	last := len(tests) - 1
	if last == 0 {
		return rows
	}
	label := fmt.Sprintf("from %.0f to %.0f %% for training: ", 100*(1-tests[0]), 100*(1-tests[last]))
	shift := study.Row{Section: section, Label: label + "epsilon from which local is better", Metric: "powers of two", Unit: "powers of two",
		Sentence: "G.4: the cross-over point between local training and FedAvg shifts to larger epsilon, or there may be none", Why: fewSeeds,
		Note: "agrees: the whole 95 % interval over seeds above 0; where local training is never better, twice the largest epsilon stands for it"}
	before, after := crossings(epsilons, outcomes[0]), crossings(epsilons, outcomes[last])
	rows = append(rows,
		effect(gain(section, label+"FedAvg's gain over local, all epsilons together", "G.4: with less local training data FedAvg performs better", fewSeeds),
			less(over(outcomes[last], "FedAvg", "local"), over(outcomes[0], "FedAvg", "local")), 0),
		effect(shift, less(after, before), 0),
		effect(gain(section, fmt.Sprintf("%.0f %% for training, all epsilons together: FedAvg over MR-MTL", 100*(1-tests[last])), "G.4, figure G.7: with little data FedAvg outperforms personalization, and MR-MTL may no longer provide an optimal point", fewSeeds),
			over(outcomes[last], "FedAvg", "MR-MTL"), 0))
	for _, own := range []string{"local", "fine-tuning"} {
		rows = append(rows, effect(gain(section, fmt.Sprintf("%.0f %% for training, all epsilons together: FedAvg over %s", 100*(1-tests[last]), own), "figure G.7: with as little as 20 % for training FedAvg outperforms personalization", fewSeeds),
			over(outcomes[last], "FedAvg", own), 0))
	}
	powers := func(of [][]outcome) []float64 {
		var lists [][]float64
		for _, row := range of {
			lists = append(lists, powersOf(lambdas, named(row, "MR-MTL"), true))
		}
		return meanOver(lists...)
	}
	return append(rows, effect(study.Row{Section: section, Label: label + "best lambda, mean over epsilons", Metric: "powers of ten", Unit: "powers of ten",
		Sentence: "G.4: small local datasets necessitate a larger lambda", Why: fewSeeds}, less(powers(outcomes[last]), powers(outcomes[0])), 0))
}

// crossings are the epsilons from which training alone is better than FedAvg, seed by seed,
// as powers of two; twice the largest if it never is.
func crossings(epsilons []float64, of [][]outcome) []float64 {
	out := make([]float64, len(named(of[0], "local").cells))
	for seed := range out {
		from := 2 * epsilons[len(epsilons)-1]
		for j := len(epsilons) - 1; j >= 0; j-- {
			if figure(named(of[j], "local").cells[seed]) >= figure(named(of[j], "FedAvg").cells[seed]) {
				break
			}
			from = epsilons[j]
		}
		out[seed] = math.Log2(from)
	}
	return out
}
