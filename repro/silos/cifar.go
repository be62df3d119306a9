package silos

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// cifarPart is one way to run heterogeneous CIFAR-10: silos with five classes each share
// the stored pictures, which are fewer than the paper's.
type cifarPart struct {
	name              string // of the model
	linear            bool   // instead of the paper's network
	silos, rounds     int
	step              float64
	epsilons, lambdas []float64
}

const cifarCaveat = "Of CIFAR-10 25,000 pictures of 60,000 are stored: 30 silos of 5 classes have 0.4 of the paper's pictures. A linear model on pixels stands in for the paper's network, which full scale trains too, both for 50 rounds instead of 200: nothing is judged on them."

// cifarParts are those of a scale. A run of the network takes minutes, one of the linear
// model seconds.
func cifarParts(l *lab.Lab) []cifarPart {
	switch l.Scale {
	case lab.Smoke:
		return nil
	case lab.Quick:
		return []cifarPart{{"linear model", true, 30, 20, 0.03, []float64{1, 4}, []float64{0.1, 1}}}
	}
	return []cifarPart{
		{"linear model", true, 30, 50, 0.03, []float64{0, 1, 2, 4, 8}, []float64{0.01, 0.1, 1, 10}},
		{"the paper's network", false, 30, 50, 0.1, []float64{8}, []float64{0.01, 0.1, 1}},
	}
}

// few runs f with three seeds at most: a run takes minutes.
func few[T any](l *lab.Lab, f func() (T, error)) (T, error) {
	all := l.Seeds
	defer func() { l.Seeds = all }()
	l.Seeds = min(l.Seeds, 3)
	return f()
}

// adjust makes a run as the part wants it.
func (p cifarPart) adjust(r *config.Run) {
	r.Data.Silos, r.Algorithm.Rounds, r.Algorithm.Stop.Every, r.Algorithm.Local.Step = p.silos, p.rounds, p.rounds, p.step
	if p.linear {
		r.Model = config.Model{Kind: "network", Layers: []config.Layer{{Kind: "flatten"}, {Kind: "linear", Units: 10}}}
	}
}

func (p cifarPart) run(method string, epsilon float64) config.Run {
	r := methodRun("cifar10-silos", method, epsilon)
	p.adjust(&r)
	return r
}

func (p cifarPart) section(figure string) string {
	return fmt.Sprintf("%s, heterogeneous CIFAR-10, the stored part, %s", figure, p.name)
}

// note says what a row of CIFAR-10 is worth.
func (p cifarPart) note() string {
	return fmt.Sprintf("of 0.4 of the paper's pictures, %s, %d rounds instead of 200", p.name, p.rounds)
}

// cifarContenders are figure 1.3's methods on CIFAR-10.
func (p cifarPart) contenders(epsilon float64) []contender {
	return []contender{
		alone("local", p.run("local", epsilon)), alone("FedAvg", p.run("fedavg", epsilon)), alone("fine-tuning", p.run("finetune", epsilon)),
		overLambdas("Ditto", p.run("ditto", epsilon), p.lambdas), overLambdas("MR-MTL", p.run("mr-mtl", epsilon), p.lambdas),
	}
}

// cifarRows are figure 1.3 on CIFAR-10.
func cifarRows(l *lab.Lab) (rows []study.Row, charts []study.Chart, err error) {
	for _, p := range cifarParts(l) {
		outcomes, err := few(l, func() ([][]outcome, error) { return contest(l, p.epsilons, false, p.contenders) })
		if err != nil {
			return nil, nil, err
		}
		for i, row := range outcomes {
			section := p.section("Figure 1.3") + ", " + epsilonLabel(p.epsilons[i])
			rows = append(rows, figureRows(study.Row{
				Section: section, Metric: "test accuracy", Unit: "share",
				Settings: map[string]any{"epsilon": p.epsilons[i], "setting": "", "silos": p.silos, "rounds": p.rounds},
			}, row, func(outcome) string { return p.note() })...)
			claims := tradeoffClaims(section, p.epsilons[i], highPrivacy["cifar10-silos"], false, row, "fine-tuning", "Ditto")
			if p.epsilons[i] > 0 {
				claims = append(claims, effect(gain(section, "fine-tuning over local", "G.1: local fine-tuning was observed to outperform local training in figure 1.3 (d)", fewSeeds), gains(false, named(row, "fine-tuning"), named(row, "local")), 0))
			}
			for _, r := range claims {
				rows = append(rows, untold(r, p.note()))
			}
		}
		if len(p.epsilons) > 1 {
			charts = append(charts, tradeoffChart("Figure 1.3: the stored part of heterogeneous CIFAR-10, "+p.name, "test accuracy", p.epsilons, outcomes))
		}
	}
	return rows, charts, nil
}

// cifarSpectra are figure G.4.
func cifarSpectra(l *lab.Lab) (rows []study.Row, charts []study.Chart, err error) {
	for _, p := range cifarParts(l) {
		parts, err := few(l, func() ([]spectrum, error) { return spectra(l, "cifar10-silos", p.epsilons, p.lambdas, false, p.adjust) })
		if err != nil {
			return nil, nil, err
		}
		var told []study.Row
		for _, sp := range parts {
			told = append(told, spectrumRows(p.section("Figure G.4"), sp)...)
			charts = append(charts, spectrumChart(fmt.Sprintf("Figure G.4: the stored part of CIFAR-10, %s, %s", p.name, epsilonLabel(sp.epsilon)), "test accuracy", sp, withoutPrivacy(parts)))
		}
		for _, sp := range parts {
			if sp.epsilon > 0 {
				told = append(told, dittosLambda(p.section("Figure G.4"), sp))
			}
		}
		told = append(told, spectraRows(p.section("Figure G.4")+": what the text claims across budgets", parts)...)
		for _, r := range told {
			rows = append(rows, untold(r, p.note()))
		}
	}
	return rows, charts, nil
}

// dittosLambda is G.2's sentence on CIFAR-10 alone.
func dittosLambda(section string, sp spectrum) study.Row {
	return effect(study.Row{Section: section + ", " + epsilonLabel(sp.epsilon), Label: "best lambda, Ditto's less MR-MTL's", Metric: "powers of ten", Unit: "powers of ten",
		Sentence: "G.2, of CIFAR-10: Ditto has a larger optimal lambda under privacy", Why: fewSeeds}, less(sp.powersOf(sp.ditto), sp.powersOf(sp.mtl)), 0)
}
