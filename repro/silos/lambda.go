package silos

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var spectrumOfLambda = lab.Experiment{
	ID: "silo-lambda", Title: "Silos: how much to personalise, with and without privacy",
	Paper: "paper 002, figures 1.5, G.2, G.3 and G.4",
	Needs: []string{"school", "vehicle", "cifar10"}, Quick: "100 s", Full: "5 h",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 2, lab.Full: 10},
	Launch: runLambda,
}

// lambdaCurve is one method's figure over lambda, and its two ends.
type lambdaCurve struct {
	name    string
	lambdas []float64
	cells   [][]cell
	lower   bool
}

func (c lambdaCurve) best() (lambda float64, at int) {
	at = bestOf(c.cells, c.lower)
	return c.lambdas[at], at
}

func (c lambdaCurve) series() study.Series {
	s := study.Series{Name: c.name}
	for i, l := range c.lambdas {
		if math.IsInf(l, 1) {
			continue
		}
		s.Points = append(s.Points, lab.MeanAndDeviation(values(c.cells[i])).At(l))
	}
	return s
}

// spectrum is everything that one data set shows at one epsilon.
type spectrum struct {
	epsilon       float64
	mtl, server   lambdaCurve
	ditto         lambdaCurve
	local, fedavg outcome
}

func spectra(l *lab.Lab, kind string, epsilons, lambdas []float64, lower bool, adjust func(*config.Run)) ([]spectrum, error) {
	var runs []config.Run
	at := func(method string, epsilon float64) config.Run {
		r := methodRun(kind, method, epsilon)
		adjust(&r)
		return r
	}
	for _, epsilon := range epsilons {
		runs = append(runs, at("local", epsilon), at("fedavg", epsilon))
		for _, lambda := range lambdas {
			server := withLambda(at("mr-mtl", epsilon), lambda)
			server.Algorithm.Prox = "server"
			runs = append(runs, withLambda(at("mr-mtl", epsilon), lambda), withLambda(at("ditto", epsilon), lambda), server)
		}
		endless := at("mr-mtl", epsilon)
		endless.Algorithm.Lambda, endless.Algorithm.Prox = "inf", "server"
		runs = append(runs, endless)
	}
	cells, err := lab.Grid(l, runs, simulate)
	if err != nil {
		return nil, err
	}
	var out []spectrum
	for i, next := 0, 0; i < len(epsilons); i++ {
		take := func() []cell { next++; return cells[next-1] }
		s := spectrum{epsilon: epsilons[i], local: outcome{name: "local", cells: take()}, fedavg: outcome{name: "FedAvg", cells: take()}}
		s.mtl = lambdaCurve{name: "MR-MTL", lambdas: lambdas, lower: lower}
		s.ditto = lambdaCurve{name: "Ditto", lambdas: lambdas, lower: lower}
		s.server = lambdaCurve{name: "MR-MTL, drawn after the round (ours)", lambdas: append(append([]float64{}, lambdas...), math.Inf(1)), lower: lower}
		for range lambdas {
			s.mtl.cells, s.ditto.cells, s.server.cells = append(s.mtl.cells, take()), append(s.ditto.cells, take()), append(s.server.cells, take())
		}
		s.server.cells = append(s.server.cells, take())
		out = append(out, s)
	}
	return out, nil
}

func runLambda(l *lab.Lab) (study.Study, error) {
	epsilons, lambdas, rounds := []float64{0, 1, 2, 3, 4, 6, 8}, []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}, 201
	vehicle := []float64{0.1, 0.5, 0.9}
	switch l.Scale {
	case lab.Smoke:
		epsilons, lambdas, rounds, vehicle = []float64{6}, []float64{1}, 5, nil
	case lab.Quick:
		epsilons, lambdas, vehicle = []float64{0, 1, 3, 6}, []float64{0.1, 0.3, 1, 3, 10, 30}, nil
	}
	forRounds := func(rounds int) func(*config.Run) { return func(r *config.Run) { r.Algorithm.Rounds = rounds } }
	all, err := spectra(l, "school", epsilons, lambdas, true, forRounds(rounds))
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"MR-MTL pulls every silo's model to the mean of all with strength lambda: 0 is training alone, and larger values share more. Figure G.3 is School; figure 1.5 and G.2 are Vehicle, G.4 is CIFAR-10.",
			"The paper's claims: under privacy an interior lambda beats both ends; its best value falls as epsilon grows; Ditto is alike but worse for its extra passes; at high privacy MR-MTL may never reach FedAvg.",
			"Beyond the paper: drawing models to the mean after the round (prox: server) is stable for every lambda, and at infinity it is FedAvg.",
		},
		Caveats: caveats("Steps are 0.01, for CIFAR-10 0.1. Vehicle is the stored part: its rows cannot be compared. Of CIFAR-10 (G.4) 25,000 pictures of 60,000 are stored."),
	}
	for _, sp := range all {
		s.Rows = append(s.Rows, spectrumRows("School", sp)...)
		s.Rows = append(s.Rows, epsilonRows("What the budgets are", sp.local.cells, sp.epsilon)...)
		s.Charts = append(s.Charts, spectrumChart("Figure G.3: School, "+epsilonLabel(sp.epsilon), "test MSE, lower is better", sp))
	}
	s.Rows = append(s.Rows, fallingRow(all))
	parts, err := spectra(l, "vehicle", vehicle, lambdas, false, forRounds(401))
	if err != nil {
		return s, err
	}
	for _, sp := range parts {
		for _, r := range spectrumRows("Vehicle, the stored part", sp) {
			r.Verdict, r.Note = study.NoFigure, sp.local.short()
			s.Rows = append(s.Rows, r)
		}
		s.Charts = append(s.Charts, spectrumChart("Figures 1.5 and G.2: the stored part of Vehicle, "+epsilonLabel(sp.epsilon), "test accuracy", sp))
	}
	rows, charts, err := cifarSpectra(l)
	s.Rows, s.Charts = append(s.Rows, rows...), append(s.Charts, charts...)
	return s, err
}

func epsilonLabel(epsilon float64) string {
	if epsilon == 0 {
		return "no privacy"
	}
	return fmt.Sprintf("epsilon %v", epsilon)
}

func spectrumRows(what string, sp spectrum) []study.Row {
	section := what + ", " + epsilonLabel(sp.epsilon)
	metric := "test MSE"
	if !sp.mtl.lower {
		metric = "test accuracy"
	}
	row := func(label string, s lab.Spread) study.Row {
		return lab.Measured(study.Row{Section: section, Label: label, Metric: metric, Settings: map[string]any{"epsilon": sp.epsilon}, Verdict: study.NoFigure, Note: "the text lacks the figure"}, s)
	}
	at := func(c lambdaCurve) (string, lab.Spread) {
		lambda, i := c.best()
		label := fmt.Sprint(lambda)
		if math.IsInf(lambda, 1) {
			label = "infinite"
		}
		return fmt.Sprintf("%s, best lambda %s", c.name, label), lab.MeanAndDeviation(values(c.cells[i]))
	}
	rows := []study.Row{row("local", sp.local.spread()), row("FedAvg", sp.fedavg.spread())}
	for _, c := range []lambdaCurve{sp.mtl, sp.ditto, sp.server} {
		rows = append(rows, row(at(c)))
	}
	endless := outcome{cells: sp.server.cells[len(sp.server.cells)-1]}
	rows = append(rows, row("MR-MTL, drawn after the round, lambda infinite", endless.spread()))
	_, i := sp.mtl.best()
	mtl := outcome{cells: sp.mtl.cells[i]}
	_, j := sp.ditto.best()
	ends := math.Min(sp.local.spread().Middle, sp.fedavg.spread().Middle)
	if !sp.mtl.lower {
		ends = math.Max(sp.local.spread().Middle, sp.fedavg.spread().Middle)
	}
	ratio := mtl.spread().Middle / ends
	beats, side := ratio < 1, "below"
	if !sp.mtl.lower {
		beats, side = ratio > 1, "above"
	}
	claim := claimRow(section, "best MR-MTL over the better end", "ratio", "", lab.Exactly(ratio), beats, "agrees: "+side+" 1 (figure 1.5: beats both ends)")
	if sp.epsilon > 0 && sp.epsilon < 3 {
		claim.Verdict, claim.Note = study.NoFigure, "high privacy: MR-MTL may never reach FedAvg (G.2)"
	}
	ditto := paired(outcome{cells: sp.ditto.cells[j]}, mtl)
	pays, unit, side := ditto.Middle > 0, "squared", "above"
	if !sp.mtl.lower {
		pays, unit, side = ditto.Middle < 0, "share", "below"
	}
	worse := claimRow(section, "Ditto minus MR-MTL, both at their best lambda", "difference", unit, ditto, pays, "agrees: "+side+" 0, Ditto pays for its extra pass (figure 1.5)")
	if sp.epsilon == 0 {
		worse.Verdict, worse.Note = study.NoFigure, "without privacy there is nothing to pay"
	}
	same := paired(endless, sp.fedavg)
	beyond := row("lambda infinite minus FedAvg, drawn after the round", same)
	beyond.Metric, beyond.Note = "difference", "ours, not the paper's: 0 means that this knob ends at FedAvg"
	return append(rows, claim, worse, beyond)
}

// fallingRow is G.2's first observation.
func fallingRow(all []spectrum) study.Row {
	last, falls := math.Inf(1), true
	var text string
	for _, sp := range all {
		if sp.epsilon == 0 {
			continue
		}
		lambda, _ := sp.mtl.best()
		falls = falls && lambda <= last
		last = lambda
		text += fmt.Sprintf(" %v at epsilon %v;", lambda, sp.epsilon)
	}
	return claimRow("Figure G.3: what the text claims", "best lambda falls as epsilon grows", "lambda at the largest epsilon", "", lab.Exactly(last), falls, "best lambda:"+text)
}

func spectrumChart(title, y string, sp spectrum) study.Chart {
	c := study.Chart{
		Title: title, XTitle: "lambda", YTitle: y, LogX: true, LogY: sp.mtl.lower, Note: "mean and one standard deviation over seeds; the ends are drawn across",
		Series: []study.Series{sp.mtl.series(), sp.ditto.series(), sp.server.series()},
	}
	for _, o := range []outcome{sp.local, sp.fedavg} {
		s := study.Series{Name: o.name}
		m := o.spread()
		for _, l := range []float64{sp.mtl.lambdas[0], sp.mtl.lambdas[len(sp.mtl.lambdas)-1]} {
			s.Points = append(s.Points, m.At(l))
		}
		c.Series = append(c.Series, s)
	}
	return c
}
