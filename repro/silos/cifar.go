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
func few(l *lab.Lab, f func() error) error {
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
func cifarRows(l *lab.Lab) ([]study.Row, error) {
	p := cifarPartAt(l)
	var rows [][]contender
	for _, epsilon := range p.epsilons {
		rows = append(rows, []contender{
			alone("local", p.run("local", epsilon)), alone("FedAvg", p.run("fedavg", epsilon)),
			overLambdas("MR-MTL", p.run("mr-mtl", epsilon), p.lambdas),
		})
	}
	var outcomes [][]outcome
	err := few(l, func() (err error) { outcomes, err = contest(l, rows, false); return err })
	if err != nil {
		return nil, err
	}
	var out []study.Row
	for i, epsilon := range p.epsilons {
		for _, o := range outcomes[i] {
			out = append(out, lab.Measured(study.Row{
				Section: "Figure 1.3, heterogeneous CIFAR-10, the stored part", Label: fmt.Sprintf("%s: %s", epsilonLabel(epsilon), o.name),
				Metric: "test accuracy", Unit: "share", Verdict: study.NoFigure,
				Settings: map[string]any{"epsilon": epsilon, "setting": o.label, "silos": p.silos, "rounds": p.rounds}, Note: p.note(),
			}, o.spread()))
		}
	}
	return out, nil
}

// cifarSpectra are figure G.4.
func cifarSpectra(l *lab.Lab) (rows []study.Row, charts []study.Chart, err error) {
	p := cifarPartAt(l)
	var parts []spectrum
	err = few(l, func() (err error) {
		parts, err = spectra(l, "cifar10-silos", p.epsilons, p.lambdas, false, p.adjust)
		return err
	})
	for _, sp := range parts {
		for _, r := range spectrumRows("Heterogeneous CIFAR-10, the stored part", sp) {
			if r.Verdict == study.NoFigure || p.limit > 0 {
				r.Verdict, r.Note = study.NoFigure, p.note()
			}
			rows = append(rows, r)
		}
		if len(p.lambdas) > 1 {
			charts = append(charts, spectrumChart("Figure G.4: the stored part of heterogeneous CIFAR-10, "+epsilonLabel(sp.epsilon), "test accuracy", sp))
		}
	}
	return rows, charts, err
}
