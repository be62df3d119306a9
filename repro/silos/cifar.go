package silos

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// cifarPart is how much of heterogeneous CIFAR-10 is run at a scale: silos with five
// classes each share the stored pictures, which are fewer than the paper's.
type cifarPart struct {
	silos, limit, rounds int
	epsilons, lambdas    []float64
}

func cifarPartAt(l *lab.Lab) cifarPart {
	switch l.Scale {
	case lab.Smoke:
		return cifarPart{}
	case lab.Quick:
		return cifarPart{4, 100, 5, []float64{8}, []float64{0.1}}
	}
	return cifarPart{30, 0, 50, []float64{0, 8}, []float64{0.01, 0.1, 1}}
}

// few runs f with three seeds at most: a run takes minutes.
func few[T any](l *lab.Lab, f func() (T, error)) (T, error) {
	all := l.Seeds
	defer func() { l.Seeds = all }()
	l.Seeds = min(l.Seeds, 3)
	return f()
}

// adjust makes a run as small as the scale wants it.
func (p cifarPart) adjust(r *config.Run) {
	r.Data.Silos, r.Data.TrainLimit = p.silos, p.limit
	r.Algorithm.Rounds, r.Algorithm.Stop.Every, r.Algorithm.Local.Step = p.rounds, p.rounds, 0.1
}

func (p cifarPart) run(method string, epsilon float64) config.Run {
	r := methodRun("cifar10-silos", method, epsilon)
	p.adjust(&r)
	return r
}

// note says what a row of CIFAR-10 is worth.
func (p cifarPart) note() string {
	if p.limit > 0 {
		return fmt.Sprintf("%d silos of %d pictures and %d rounds only show that it runs", p.silos, p.limit, p.rounds)
	}
	return "the text lacks the figure; the stored part has 25,000 of 60,000 pictures, so silos are smaller than the paper's, and rounds are 50 instead of 200"
}

// cifarRows are figure 1.3's on CIFAR-10.
func cifarRows(l *lab.Lab) (rows []study.Row, err error) {
	p := cifarPartAt(l)
	outcomes, err := few(l, func() ([][]outcome, error) {
		return contest(l, p.epsilons, false, func(epsilon float64) []contender {
			return []contender{
				alone("local", p.run("local", epsilon)), alone("FedAvg", p.run("fedavg", epsilon)),
				overLambdas("MR-MTL", p.run("mr-mtl", epsilon), p.lambdas),
			}
		})
	})
	for i, row := range outcomes {
		rows = append(rows, figureRows(study.Row{
			Section: "Figure 1.3, heterogeneous CIFAR-10, the stored part", Label: epsilonLabel(p.epsilons[i]) + ": ", Metric: "test accuracy", Unit: "share",
			Settings: map[string]any{"epsilon": p.epsilons[i], "setting": "", "silos": p.silos, "rounds": p.rounds},
		}, row, func(outcome) string { return p.note() })...)
		rows = append(rows, apart(mtlClaim("Figure 1.3, heterogeneous CIFAR-10, the stored part", epsilonLabel(p.epsilons[i])+": ", row), p.note()))
	}
	return rows, err
}

// cifarSpectra are figure G.4.
func cifarSpectra(l *lab.Lab) (rows []study.Row, charts []study.Chart, err error) {
	p := cifarPartAt(l)
	parts, err := few(l, func() ([]spectrum, error) {
		return spectra(l, "cifar10-silos", p.epsilons, p.lambdas, false, p.adjust)
	})
	for _, sp := range parts {
		for _, r := range spectrumRows("Heterogeneous CIFAR-10, the stored part", sp) {
			if r.Verdict == study.NoNumber || p.limit > 0 {
				r = unjudged(r, p.note())
			}
			rows = append(rows, r)
		}
		if len(p.lambdas) > 1 {
			charts = append(charts, spectrumChart("Figure G.4: the stored part of heterogeneous CIFAR-10, "+epsilonLabel(sp.epsilon), "test accuracy", sp))
		}
	}
	return rows, charts, err
}
