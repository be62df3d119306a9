package silos

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var finetune = lab.Experiment{
	ID: "silo-finetune", Title: "Silos: fine-tuning after averaging loses what averaging gained",
	Paper: "paper 002, figures 1.2 and G.1",
	Needs: []string{"school", "vehicle"}, Quick: "60 s", Full: "1 min",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 3, lab.Full: 10},
	Launch: apartly(runFinetune),
}

// finetuning is one data set at one epsilon: both ends, and fine-tuning from
// several shares of the rounds on.
type finetuning struct {
	epsilon       float64
	all           []outcome
	local, fedavg outcome
	shares        []float64
	tuned         []outcome
}

func finetunings(l *lab.Lab, kind string, epsilons, shares []float64, rounds int) ([]finetuning, error) {
	rows, err := contest(l, epsilons, true, func(epsilon float64) []contender {
		at := func(method string) config.Run { return withRounds(methodRun(kind, method, epsilon), rounds) }
		out := []contender{alone("local", at("local")), alone("FedAvg", at("fedavg"))}
		for _, share := range shares {
			r := at("finetune")
			r.Algorithm.FederatedShare = share
			out = append(out, alone(fmt.Sprintf("fine-tuned from %.0f %%", 100*share), r))
		}
		return out
	})
	var out []finetuning
	for i, row := range rows {
		out = append(out, finetuning{epsilons[i], row, row[0], row[1], shares, row[2:]})
	}
	return out, err
}

func runFinetune(l *lab.Lab) (study.Study, error) {
	epsilons, vehicle, shares, rounds := []float64{0, 1, 2, 3, 6}, []float64{0, 0.5, 1, 2}, []float64{0.25, 0.5, 0.75}, 201
	switch l.Scale {
	case lab.Smoke:
		epsilons, vehicle, shares, rounds = []float64{0, 3}, nil, []float64{0.5}, 6
	case lab.Quick:
		epsilons, vehicle = []float64{0, 1, 3}, []float64{0, 0.5}
	}
	school, err := finetunings(l, "school", epsilons, shares, rounds)
	if err != nil {
		return study.Study{}, err
	}
	stored, err := finetunings(l, "vehicle", vehicle, shares, rounds)
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"All silos train one model together for a share of the rounds; then each goes on alone. The paper shows Vehicle: without privacy fine-tuning helps; under privacy, as soon as it begins, the noise is no longer averaged out, and its utility falls to that of training alone.",
			"Figures 1.2 and G.1 are of Vehicle, of which a small part is stored; the same claims are put to School.",
		},
		Caveats: caveats("Steps are 0.01, as in the paper's figures 1.2 and G.1."),
	}
	for _, f := range school {
		s.Rows = append(s.Rows, f.rows("School, "+epsilonLabel(f.epsilon), "test MSE", true, school[0])...)
		s.Charts = append(s.Charts, f.chart("School, "+epsilonLabel(f.epsilon), "test MSE, lower is better", true))
	}
	for _, f := range stored {
		for _, r := range f.rows("Vehicle, the stored part, "+epsilonLabel(f.epsilon), "test accuracy", false, stored[0]) {
			s.Rows = append(s.Rows, untold(r, f.local.short()))
		}
		s.Charts = append(s.Charts, f.chart("Figures 1.2 and G.1: the stored part of Vehicle, "+epsilonLabel(f.epsilon), "test accuracy", false))
	}
	for _, f := range school {
		s.Rows = append(s.Rows, epsilonRows("What the budgets are, School", f.local.cells, f.epsilon)...)
	}
	return s, nil
}

// rows are the figures and what the text claims of them; free is the same without
// privacy.
func (f finetuning) rows(section, metric string, lower bool, free finetuning) []study.Row {
	rows := figureRows(study.Row{Section: section, Metric: metric, Settings: map[string]any{"epsilon": f.epsilon}}, f.all, plainly("the text lacks the figure"))
	sign := 1.0
	if !lower {
		sign = -1
	}
	const cancels = "figure 1.2, of Vehicle: FedAvg can cancel out noise and outperform local training even when the latter works better without privacy"
	if f.epsilon == 0 {
		rows = append(rows, effect(gain(section, "local over FedAvg", cancels, fewSeeds), gains(lower, f.local, f.fedavg), 0))
		for _, o := range f.tuned {
			rows = append(rows, lab.Measured(study.Row{
				Section: section, Label: o.name + " minus FedAvg", Metric: "difference", Verdict: study.NoNumber,
				Note: "whether fine-tuning helps without privacy; the text expects it and does not say so",
			}, paired(o, f.fedavg)))
		}
		return rows
	}
	rows = append(rows,
		effect(gain(section, "FedAvg over local", cancels, fewSeeds), gains(lower, f.fedavg, f.local), 0),
		effect(study.Row{Section: section, Label: "what privacy costs: local less FedAvg", Metric: "difference",
			Sentence: "section 1.5, figure 1.2: the utility cost from privacy can be significantly smaller for FedAvg than for local training, at an identical budget", Why: fewSeeds}, f.costlier(free, sign), 0))
	for i, o := range f.tuned {
		wider := f.widening(i, free)
		for j := range wider {
			wider[j] *= sign
		}
		widens := effect(study.Row{Section: section, Label: o.name + ": what privacy costs, end minus where it began", Metric: "difference",
			Sentence: "G.1, of Vehicle: as soon as fine-tuning begins, the gap to the same run without privacy can quickly widen", Why: fewSeeds}, wider, 0)
		if widens.Why == opposite {
			widens.Why = f.onItsWay(i, free, sign, wider)
		}
		rows = append(rows, widens,
			effect(study.Row{Section: section, Label: o.name + ": distance from FedAvg less that from local", Metric: "difference",
				Sentence: "G.1, of Vehicle: the utility of fine-tuning under privacy can roughly reduce to that of local training",
				Why:      f.lateOrAhead(o, lower),
				Note:     "agrees: the whole 95 % interval over seeds above 0, so that it ends nearer to local training than to FedAvg"}, f.nearer(o), 0),
			effect(gain(section, o.name+": gain over FedAvg, without privacy less with it", "figure 1.2, section 1.4: local fine-tuning may not improve utility as expected", fewSeeds),
				less(gains(lower, free.tuned[i], free.fedavg), gains(lower, o, f.fedavg)), 0))
	}
	return rows
}

// costlier is how much more privacy costs training alone than FedAvg, seed by seed; sign is 1
// where lower is better, -1 otherwise.
func (f finetuning) costlier(free finetuning, sign float64) []float64 {
	costs := less(lab.Differences(f.local.cells, free.local.cells, figure), lab.Differences(f.fedavg.cells, free.fedavg.cells, figure))
	for i := range costs {
		costs[i] *= sign
	}
	return costs
}

// nearer is how much nearer a fine-tuned run ends to training alone than to FedAvg, seed by
// seed.
func (f finetuning) nearer(o outcome) []float64 {
	out := make([]float64, len(o.cells))
	for i, c := range o.cells {
		at := func(other outcome) float64 { return math.Abs(figure(c) - figure(other.cells[i])) }
		out[i] = at(f.fedavg) - at(f.local)
	}
	return out
}

// lateOrAhead is what we believe where fine-tuning does not become training alone.
func (f finetuning) lateOrAhead(o outcome, lower bool) string {
	ahead := min(lab.Interval(gains(lower, o, f.local)).Low, lab.Interval(gains(lower, o, f.fedavg)).Low) > 0
	if ahead {
		return "We believe that at this epsilon the noise is small enough for fine-tuning to pay, which the text does not preclude. Tested by both ends: fine-tuning is better than either by the whole 95 % interval over seeds."
	}
	return "We believe that fine-tuning that begins late has not had the rounds to become training alone, and that at large epsilons the ends are too near one another to tell. Tested by the share from which it begins: at epsilon 1 the one that begins first ends nearer to local training, the last one nearer to FedAvg."
}

// onItsWay is what we believe where the gap falls instead of widening: it was not fine-tuning's.
// FedAvg itself shows it, without fine-tuning over the same rounds.
func (f finetuning) onItsWay(i int, free finetuning, sign float64, wider []float64) string {
	plain := f.changes(i, f.fedavg, free.fedavg)
	for j := range plain {
		plain[j] *= sign
	}
	own, beyond := lab.Interval(plain), lab.Interval(less(wider, plain))
	if own.High >= 0 || beyond.Low <= 0 {
		return opposite
	}
	return fmt.Sprintf("We believe that most of the gap where fine-tuning begins is not noise: clipped steps are shorter, and the common model is still on its way. Tested by FedAvg's own gap, which falls by %.2g over the same rounds; beside that, fine-tuning widens it by %.2g (95 %% interval from %.2g to %.2g).", -own.Middle, beyond.Middle, beyond.Low, beyond.High)
}

// widening is by how much the gap between a fine-tuned run and the same one without
// privacy grows from the last averaged round to the end.
func (f finetuning) widening(i int, free finetuning) []float64 {
	return f.changes(i, f.tuned[i], free.tuned[i])
}

// changes are by how much the gap between two outcomes grows from where the i-th fine-tuning
// begins to the end.
func (f finetuning) changes(i int, private, free outcome) []float64 {
	change := func(c cell) float64 {
		at := 0
		for at+1 < len(c.Rounds) && float64(c.Rounds[at+1]) <= f.shares[i]*float64(c.Rounds[len(c.Rounds)-1]) {
			at++
		}
		return float64(c.Curve[len(c.Curve)-1] - c.Curve[at])
	}
	return lab.Differences(private.cells, free.cells, change)
}

// chart is the figure over the rounds; errors, which fall by much at first, have an axis of
// powers.
func (f finetuning) chart(title, y string, lower bool) study.Chart {
	c := study.Chart{Title: title, XTitle: "round", YTitle: y, LogY: lower, Note: "mean and one standard deviation over seeds"}
	for _, o := range f.all {
		c.Series = append(c.Series, o.curve())
	}
	return c
}
