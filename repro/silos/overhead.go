package silos

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var overhead = lab.Experiment{
	ID: "silo-overhead", Title: "Silos: what choosing clusters and extra passes cost",
	Paper: "paper 002, figure 1.4",
	Needs: []string{"school"}, Quick: "60 s", Full: "5 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 10},
	Launch: runOverhead,
}

func runOverhead(l *lab.Lab) (study.Study, error) {
	epsilons, rounds := []float64{1, 2, 3, 4, 6, 8, 10}, 201
	switch l.Scale {
	case lab.Smoke:
		epsilons, rounds = []float64{6}, 6
	case lab.Quick:
		epsilons = []float64{1, 3, 6, 10}
	}
	outcomes, err := contest(l, epsilons, true, func(epsilon float64) []contender {
		at := func(method string) config.Run { return withRounds(methodRun("school", method, epsilon), rounds) }
		always := at("ifca")
		always.Algorithm.Selection.Share = 1
		return []contender{
			alone("local", at("local")), alone("FedAvg", at("fedavg")),
			alone("IFCA, choosing in 10 % of rounds", at("ifca")), alone("IFCA, choosing in every round", always),
			alone("Ditto", at("ditto")), alone("MR-MTL", at("mr-mtl")),
		}
	})
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"Under one budget, whatever looks at the data once more leaves less for training. IFCA chooses its cluster privately: in every round, or in the first tenth of them. Ditto trains twice in every round.",
			"The paper's claims: choosing in every round costs too much; Ditto is like MR-MTL but worse for its second pass. Its figure is of Vehicle, of which a small part is stored; here it is School, lambda 1, three clusters.",
		},
		Caveats: caveats("A choice takes 3 % of epsilon in the round that makes it (exponential mechanism on losses clipped to 0.1); the training's noise makes up for it."),
	}
	for i, epsilon := range epsilons {
		section := fmt.Sprintf("Figure 1.4, epsilon %v", epsilon)
		figures := figureRows(study.Row{Section: section, Metric: "test MSE", Unit: "squared", Settings: map[string]any{"epsilon": epsilon}}, outcomes[i], plainly("the paper's figure is of Vehicle"))
		for j, o := range outcomes[i] {
			noise := figures[j]
			noise.Metric, noise.Unit, noise.Note = "noise S, median silo", "of the clip", ""
			spread := lab.MeanAndDeviation(lab.Pick(o.cells, func(c cell) float64 { return float64(c.Noise) }))
			s.Rows = append(s.Rows, figures[j], lab.Measured(noise, spread))
		}
		row := func(name string) outcome { return named(outcomes[i], name) }
		choosing := paired(row("IFCA, choosing in every round"), row("IFCA, choosing in 10 % of rounds"))
		ditto := paired(row("Ditto"), row("MR-MTL"))
		s.Rows = append(s.Rows,
			claimRow(section, "IFCA: every round minus 10 % of rounds", "difference", "squared", choosing, choosing.Middle > 0, "section 1.4, of Vehicle: the cost of choosing in every round can be prohibitive", "agrees: above 0"),
			claimRow(section, "Ditto minus MR-MTL", "difference", "squared", ditto, ditto.Middle > 0, "section 1.4, of Vehicle: Ditto's privacy overhead makes it less competitive", "agrees: above 0"))
	}
	s.Rows = append(s.Rows, budgetRows("What the budgets are", epsilons, outcomes)...)
	s.Charts = append(s.Charts, withZoom(tradeoffChart("Figure 1.4, on School", "test MSE, lower is better", epsilons, outcomes))...)
	return s, nil
}
