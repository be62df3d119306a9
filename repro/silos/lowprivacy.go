package silos

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var lowPrivacy = lab.Experiment{
	ID: "silo-low-privacy", Title: "Silos: large budgets favour models of one's own",
	Paper: "paper 002, figure G.6",
	Needs: []string{"school", "vehicle"}, Quick: "60 s", Full: "3 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 10},
	Launch: apartly(runLowPrivacy),
}

func runLowPrivacy(l *lab.Lab) (study.Study, error) {
	epsilons, vehicle, lambdas, rounds := []float64{6, 10, 20, 30, 50, 100}, []float64{1, 2, 4, 6, 8, 10}, []float64{0.01, 0.03, 0.1, 0.3, 1}, 201
	switch l.Scale {
	case lab.Smoke:
		epsilons, vehicle, lambdas, rounds = []float64{20}, nil, []float64{0.1}, 6
	case lab.Quick:
		epsilons, vehicle, lambdas = []float64{6, 20, 100}, []float64{1, 10}, []float64{0.1, 0.3, 1}
	}
	on := func(kind string) func(epsilon float64) []contender {
		return func(epsilon float64) []contender {
			at := func(method string) config.Run { return withRounds(methodRun(kind, method, epsilon), rounds) }
			return []contender{alone("local", at("local")), alone("FedAvg", at("fedavg")), alone("IFCA (10 %)", at("ifca")), alone("fine-tuning", at("finetune")), overLambdas("MR-MTL", at("mr-mtl"), lambdas)}
		}
	}
	outcomes, err := contest(l, epsilons, true, on("school"))
	if err != nil {
		return study.Study{}, err
	}
	parts, err := contest(l, vehicle, false, on("vehicle"))
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"With much privacy budget the need to average noise away is gone. The paper's claims, on Vehicle at epsilon 1 to 10: methods that give every silo its own model do better than shared models (FedAvg, IFCA), and MR-MTL stays competitive with a small lambda.",
			"Of Vehicle a small part is stored; the same claims are put to School at epsilons that are large for its small silos.",
		},
		Caveats: caveats("Steps are 0.01.", "Epsilons of 20 and more promise next to nothing: they stand here for weak privacy, as in the paper's figure."),
	}
	for i, e := range epsilons {
		section := fmt.Sprintf("School, epsilon %v", e)
		s.Rows = append(s.Rows, plainRows(section, "test MSE", e, outcomes[i], "the paper's figure is of Vehicle")...)
		s.Rows = append(s.Rows, looseClaims(section, e >= 20, true, outcomes[i])...)
	}
	s.Rows = append(s.Rows, looseTrend("School: what the text claims across budgets", true, epsilons, lambdas, outcomes)...)
	s.Rows = append(s.Rows, budgetRows("What the budgets are, School", epsilons, outcomes)...)
	for i, e := range vehicle {
		s.Rows = append(s.Rows, plainRows(fmt.Sprintf("Figure G.6, Vehicle, the stored part, epsilon %v", e), "test accuracy", e, parts[i], parts[i][0].short())...)
		for _, r := range looseClaims(fmt.Sprintf("Figure G.6, Vehicle, the stored part, epsilon %v", e), true, false, parts[i]) {
			s.Rows = append(s.Rows, untold(r, parts[i][0].short()))
		}
	}
	for _, r := range looseTrend("Figure G.6, Vehicle, the stored part: what the text claims across budgets", false, vehicle, lambdas, parts) {
		s.Rows = append(s.Rows, untold(r, parts[0][0].short()))
	}
	s.Charts = append(s.Charts, tradeoffChart("Figure G.6's claim on School", "test MSE, lower is better", epsilons, outcomes))
	if len(parts) > 0 {
		s.Charts = append(s.Charts, tradeoffChart("Figure G.6: the stored part of Vehicle", "test accuracy", vehicle, parts))
	}
	return s, nil
}

// plainRows are the figures of one epsilon.
func plainRows(section, metric string, epsilon float64, row []outcome, note string) []study.Row {
	return figureRows(study.Row{Section: section, Metric: metric, Settings: map[string]any{"epsilon": epsilon, "setting": ""}}, row, plainly(note))
}

// looseClaims are G.4's sentences at one epsilon; loose says that it is one of those at
// which the text expects models of one's own ahead.
func looseClaims(section string, loose, lower bool, row []outcome) (rows []study.Row) {
	local, mtl, shared := named(row, "local"), named(row, "MR-MTL"), bestNamed(lower, row, "FedAvg", "IFCA (10 %)")
	if loose {
		for _, own := range []outcome{local, mtl, named(row, "fine-tuning")} {
			rows = append(rows, effect(gain(section, own.name+" over "+shared.name+", the better shared model", "G.4, of Vehicle: as privacy loosens, models of one's own tend to do better than shared ones", fewSeeds), gains(lower, own, shared), 0))
		}
	}
	competitive := gain(section, "MR-MTL over local", "G.4, of Vehicle: MR-MTL remains competitive, as it can use a smaller lambda", fewSeeds)
	competitive.Note = "agrees: the whole 95 % interval over seeds above -0.01"
	return append(rows, effect(competitive, gains(lower, mtl, local), -nearly))
}

// looseTrend is what G.4 and figure G.6's caption say across budgets, from the smallest epsilon
// to the largest.
func looseTrend(section string, lower bool, epsilons, lambdas []float64, outcomes [][]outcome) []study.Row {
	last := len(outcomes) - 1
	if last < 1 {
		return nil
	}
	strict, loose := outcomes[0], outcomes[last]
	between := fmt.Sprintf("epsilon %v less epsilon %v", epsilons[last], epsilons[0])
	own := func(row []outcome) []float64 {
		return gains(lower, named(row, "local"), bestNamed(lower, row, "FedAvg", "IFCA (10 %)"))
	}
	at := func(i int) []float64 {
		return gains(lower, outcome{cells: named(loose, "MR-MTL").all[i]}, named(loose, "local"))
	}
	why := fewSeeds
	if len(lambdas) > 1 {
		why = fmt.Sprintf("We believe that the smallest lambda of this scale still shares something. Tested by the next one, %v, whose models are apart from training alone by %.2g of its figure instead of %.2g.", lambdas[1], lab.Interval(at(1)).Middle, lab.Interval(at(0)).Middle)
	}
	recovers := gain(section, fmt.Sprintf("epsilon %v: MR-MTL with lambda %v over local", epsilons[last], lambdas[0]), "figure G.6, of Vehicle: MR-MTL can recover local training by using a small lambda", why)
	rows := []study.Row{
		effect(gain(section, "local over the better shared model: "+between, "figure G.6, of Vehicle: as privacy becomes weaker, the need for federation diminishes and personalization methods perform better", fewSeeds), less(own(loose), own(strict)), 0),
		lab.Within(recovers, at(0), -nearly, nearly),
	}
	if len(lambdas) < 2 {
		return rows
	}
	powers := func(row []outcome) []float64 { return powersOf(lambdas, named(row, "MR-MTL"), lower) }
	return append(rows, effect(study.Row{Section: section, Label: fmt.Sprintf("best lambda: epsilon %v less epsilon %v", epsilons[0], epsilons[last]), Metric: "powers of ten", Unit: "powers of ten",
		Sentence: "G.4, of Vehicle: MR-MTL remains competitive, as it can use a smaller lambda", Why: fewSeeds}, less(powers(strict), powers(loose)), 0))
}
