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
	Needs: []string{"school"}, Quick: "90 s", Full: "15 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 2, lab.Full: 10},
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
	s.Rows = append(s.Rows, crossingRows(tests, epsilons, outcomes)...)
	return s, nil
}

// crossingRows state the figure's two claims.
func crossingRows(tests, epsilons []float64, outcomes [][][]outcome) []study.Row {
	const section = "Figure G.7: what the text claims"
	var rows []study.Row
	crossing := make([]float64, len(tests))
	advantage := make([]float64, len(tests))
	for i, part := range outcomes {
		crossing[i] = math.Inf(1)
		for j := len(epsilons) - 1; j >= 0; j-- {
			if named(part[j], "local").spread().Middle < named(part[j], "FedAvg").spread().Middle {
				crossing[i] = epsilons[j]
			}
		}
		last := part[len(part)-1]
		advantage[i] = named(last, "local").spread().Middle / named(last, "FedAvg").spread().Middle
	}
	for i := 1; i < len(tests); i++ {
		label := fmt.Sprintf("from %.0f to %.0f %% for training", 100*(1-tests[i-1]), 100*(1-tests[i]))
		rows = append(rows,
			claimRow(section, label, "local over FedAvg, largest epsilon", "ratio", lab.Exactly(advantage[i]), advantage[i] > advantage[i-1],
				"G.4: with less local training data FedAvg performs better", fmt.Sprintf("agrees: more than the %.3f before", advantage[i-1])),
			claimRow(section, label, "epsilon from which local is better", "epsilon", lab.Exactly(crossing[i]), crossing[i] >= crossing[i-1],
				"G.4: the cross-over point between local training and FedAvg shifts to larger epsilon", fmt.Sprintf("agrees: not below the %v before; inf: never, within what was tried", crossing[i-1])))
	}
	return rows
}
