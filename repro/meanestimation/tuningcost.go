package meanestimation

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/theory"
)

var tuningCost = lab.Experiment{
	ID: "tuning-cost", Title: "What tuning lambda costs: it can be worse than not tuning",
	Paper: "paper 002, figure 1.7, appendix E",
	Quick: "10 s", Full: "60 s",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 5, lab.Full: 50},
	Launch: runTuningCost,
}

type tuningSettings struct {
	meanSettings
	Trials float64
	Noise  float64
	Tuned  []struct {
		Eta   float64
		Noise *float64
	}
}

// tunedCurve is one of figure 1.7's curves: a noise and what it makes of the error.
type tunedCurve struct {
	name      string
	noise     float64
	published *float64 // the authors' noise
	tuned     *theory.Tuned
	poisson   bool // the number of trials
	at        drawn
}

func runTuningCost(l *lab.Lab) (study.Study, error) {
	var m tuningSettings
	if err := lab.Expected("tuning-cost.json", &m); err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"Every lambda that is tried looks at the data again. Charged by random stopping, a mean of 10 trials needs more noise in each: the lowest point of a tuned curve is then what perfect tuning could reach.",
			"The paper's message: with little spread between silos no tuned curve comes down to the plain average without tuning, with much spread none comes down to training alone, and in between the gain shrinks.",
			"Errors are drawn with the authors' settings (clipped at 1, 500 federations a seed): mean over seeds with one standard deviation between seeds.",
		},
		Caveats: []string{
			fmt.Sprintf("Unit: example, relation: add-remove, claim: proved, epsilon %v, delta %v for every curve but the one without privacy. Not covered: the number of trials, which must stay secret; the score; sizes, sigma and tau.", m.Epsilon, m.Delta),
			"The figure charges the trials alone. A federation must also send, and pay for, a pivot run, and pay for the score: the section on the real bill adds the pivot.",
			"The figure's caption names Poisson as well; the authors' script draws the negative binomial only. Ours has both.",
		},
	}
	for _, tau := range m.Taus {
		curves, err := tuningCurves(l, m, tau)
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, tuningRows(m, tau, curves)...)
		s.Charts = append(s.Charts, tuningChart(tau, curves))
		if tau == m.Taus[0] {
			s.Rows = append(append(noiseRows(m, curves), etaRows(curves)...), s.Rows...)
		}
		bill, err := pivotRows(m, tau)
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, bill...)
		lower, err := lowEtaRows(m, tau, curves)
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, lower...)
		s.Rows = append(s.Rows, naiveRow(m.federation(tau, curves[1].noise), m.Trials))
	}
	return s, nil
}

func tuningCurves(l *lab.Lab, m tuningSettings, tau float64) ([]tunedCurve, error) {
	noise, _, err := m.target().Noise()
	if err != nil {
		return nil, err
	}
	curves := []tunedCurve{{name: "not private"}, {name: "private", noise: noise, published: &m.Noise}}
	base := m.federation(tau, noise)
	for _, t := range m.Tuned {
		tuned, err := theory.Tune(base, m.target(), event.TruncatedNegativeBinomial, t.Eta, m.Trials, false)
		if err != nil {
			return nil, err
		}
		curves = append(curves, tunedCurve{name: fmt.Sprintf("tuned, eta %v", t.Eta), noise: tuned.Noise, published: t.Noise, tuned: &tuned})
	}
	tuned, err := theory.Tune(base, m.target(), event.PoissonTrials, 0, m.Trials, false)
	if err != nil {
		return nil, err
	}
	curves = append(curves, tunedCurve{name: "tuned, Poisson", noise: tuned.Noise, tuned: &tuned, poisson: true})

	grid := append(theory.TuningGrid(), math.Inf(1))
	var simulations []theory.Simulation
	for _, c := range curves {
		one := theory.Simulation{Federation: m.federation(tau, c.noise).Each(), Clip: m.Clip, Lambdas: grid, Repetitions: m.Repetitions}
		if c.noise == 0 {
			one.Clip = 0 // as in the authors' script
		}
		simulations = append(simulations, one)
	}
	all, err := drawAll(l, simulations)
	for i := range all {
		curves[i].at = all[i]
	}
	return curves, err
}

func noiseRows(m tuningSettings, curves []tunedCurve) []study.Row {
	var rows []study.Row
	for _, c := range curves[1:] {
		r := lab.Measured(study.Row{
			Section: "Noise that keeps the target", Label: c.name, Metric: "noise S", Unit: "of the clip", Settings: map[string]any{"trials": m.Trials},
			Verdict: study.NoNumber, Note: "the authors' code was not run at this setting",
		}, lab.Exactly(c.noise))
		if c.published != nil {
			r.Paper, r.Note = lab.Number(*c.published), "the authors' code; ours has a finer list of orders, so it may be up to 3 % less, never more"
			r = lab.Judged(r, *c.published*0.97, *c.published*(1+1e-6))
		}
		rows = append(rows, r)
	}
	return rows
}

// etaRows are what appendix E.2 says of eta, at one mean of trials: curves come in ascending
// order of it.
func etaRows(curves []tunedCurve) []study.Row {
	const section = "Appendix E.2: what eta does"
	var noise, once []float64 // its growth from one eta to the next, and that of the chance of one trial
	var before *tunedCurve
	for i := range curves {
		c := &curves[i]
		if c.tuned == nil || c.poisson {
			continue
		}
		if before != nil {
			noise = append(noise, c.noise/before.noise)
			once = append(once, c.tuned.Trials.Probability(1)/before.tuned.Trials.Probability(1))
		}
		before = c
	}
	claim := func(label, metric, sentence string, steps []float64, holds bool) study.Row {
		return lab.Claim(study.Row{Section: section, Label: label, Metric: metric, Sentence: sentence, Note: fmt.Sprintf("nothing is random: agrees if so in all of the %d steps of eta", len(steps))},
			lab.Spread{Middle: lab.MeanAndDeviation(steps).Middle, Low: slices.Min(steps), High: slices.Max(steps)}, holds)
	}
	return []study.Row{
		claim("noise from one eta to the next", "ratio", "E.2: a smaller eta gives a tighter privacy guarantee, that is a smaller cost of tuning", noise, slices.Min(noise) > 1),
		claim("chance of a single trial from one eta to the next", "ratio", "E.2: the number of trials is more concentrated around 1 with a smaller eta", once, slices.Max(once) < 1),
	}
}

// lowEta is below the figure's smallest, which appendix E.2 leaves out for its utility.
const lowEta = -0.9

// veryPoorly is by how much the expected error must grow that the text calls so: a tenth.
const veryPoorly = 1.1

// lowEtaRows are that sentence, in closed form: less noise, and a worse lambda in the end, when
// trials take lambdas at random.
func lowEtaRows(m tuningSettings, tau float64, curves []tunedCurve) ([]study.Row, error) {
	low, err := theory.Tune(m.federation(tau, curves[1].noise), m.target(), event.TruncatedNegativeBinomial, lowEta, m.Trials, false)
	if err != nil {
		return nil, err
	}
	least := curves[2].tuned // of the figure's smallest eta
	claim := func(label, rule, sentence, why string, ratio float64, holds bool) study.Row {
		return lab.Claim(study.Row{Section: "Appendix E.2: what eta does", Label: fmt.Sprintf("tau %v: eta %v over %v, %s", tau, lowEta, m.Tuned[0].Eta, label), Metric: "ratio", Sentence: sentence, Note: "closed form, nothing is random: agrees if " + rule, Why: why}, lab.Exactly(ratio), holds)
	}
	noise, utility := low.Noise/least.Noise, low.Expected/least.Expected
	var rows []study.Row
	if tau == m.Taus[0] { // noise knows no tau
		rows = append(rows, claim("noise", "below 1", "E.2: an eta below -0.5 would give an even smaller privacy overhead", "", noise, noise < 1))
	}
	return append(rows,
		claim("expected error, trials take lambdas at random", "above 1.1", "E.2: an eta below -0.5 will perform very poorly utility-wise",
			fmt.Sprintf("We believe that the text looks at the number of trials alone: %.0f of 100 draws have a single one at this eta, but with %.2f of the noise. Tested by the closed form of both, and at eta -0.99, where 99 of 100 have a single one: the expected errors are 0.0048, 0.0065 and 0.0164 at tau 0.03, 0.08 and 0.2, beside 0.0056, 0.0079 and 0.0163 at eta -0.5.", 100*low.Trials.Probability(1), noise), utility, utility > veryPoorly)), nil
}

// naiveRow is section 1.7's sentence on trying a fixed number of lambdas: all trials are
// charged, so that each has the noise of all together, times the root of their number.
func naiveRow(f theory.Equal, trials float64) study.Row {
	untuned := min(f.LocalError(), f.AverageError())
	f.Noise *= math.Sqrt(trials)
	ratio := f.BestError() / untuned
	return lab.Claim(study.Row{
		Section: "Naive tuning: every trial is charged", Label: fmt.Sprintf("tau %v, %v trials: best lambda over no tuning", f.Spread, trials), Metric: "ratio",
		Sentence: "section 1.7: naive tuning obliterates the utility advantage over local training and FedAvg",
		Note:     "closed form, nothing is random: agrees if above 1",
		Why:      "We believe that at this spread the advantage is larger than the trials' noise. Tested by the closed form.",
	}, lab.Exactly(ratio), ratio > 1)
}

// tuningRows states the prose of section 1.7 and appendix E.2 as rows that can be
// false.
func tuningRows(m tuningSettings, tau float64, curves []tunedCurve) []study.Row {
	private := curves[1].at
	alone, average := private.at(0), private.at(len(private.lambdas)-1)
	section := fmt.Sprintf("Figure 1.7, tau %v", tau)
	row := func(label, metric, unit string, s lab.Spread) study.Row {
		return lab.Measured(study.Row{Section: section, Label: label, Metric: metric, Unit: unit, Settings: map[string]any{"tau": tau}, Verdict: study.NoNumber, Note: "the text lacks the figure"}, s)
	}
	_, free := private.lowest()
	end, name := 0, "training alone"
	if average.Middle < alone.Middle {
		end, name = len(private.lambdas)-1, "the plain average"
	}
	rows := []study.Row{
		row("private, training alone", "squared error", "squared", alone),
		row("private, plain average", "squared error", "squared", average),
		row("private, best lambda, tuning not charged", "squared error", "squared", free),
	}
	for _, c := range curves[2:] {
		_, lowest := c.at.lowest()
		rows = append(rows, row(c.name+": best lambda", "squared error", "squared", lowest))
		rows = append(rows, tunedRow(section, name, tau == m.Taus[1], c, private, end))
		beyond := row(c.name+": expected, trials take lambdas at random", "squared error", "squared", lab.Exactly(c.tuned.Expected))
		beyond.Note = "not in the paper: closed form, choice among the trials free and perfect, so a lower bound"
		rows = append(rows, beyond)
	}
	return rows
}

// tunedRow is appendix E.2's sentence on one tuned curve, seed by seed: with little or much
// spread tuning is worse than none, in between less than half of what free tuning gains is
// left, which is how we read "significantly diminish".
func tunedRow(section, name string, between bool, c tunedCurve, private drawn, end int) study.Row {
	r := study.Row{Section: section, Metric: "ratio", Why: "We believe that this shape of the number of trials is cheap enough at this spread. Tested by the noise that it needs, in the first section."}
	tuned, untuned := c.at.each(c.at.place()), private.each(end)
	if !between {
		r.Label, r.Sentence = c.name+": best lambda over "+name+" untuned", "appendix E.2: tuning is worse than none"
		return lab.Times(r, tuned, untuned, 1)
	}
	free, left := private.each(private.place()), make([]float64, len(untuned))
	for i := range left {
		left[i] = (untuned[i] - tuned[i]) / (untuned[i] - free[i])
	}
	r.Label, r.Sentence = c.name+": gain over "+name+", of that of free tuning", "appendix E.2: tuning would significantly diminish the utility improvement"
	r.Note = "agrees: the whole 95 % interval over seeds below a half"
	return lab.AtMost(r, left, 0.5)
}

// pivotRows add what figure 1.7 leaves out.
func pivotRows(m tuningSettings, tau float64) ([]study.Row, error) {
	noise, _, err := m.target().Noise()
	if err != nil {
		return nil, err
	}
	var rows []study.Row
	for _, t := range m.Tuned {
		tuned, err := theory.Tune(m.federation(tau, noise), m.target(), event.TruncatedNegativeBinomial, t.Eta, m.Trials, true)
		if err != nil {
			return nil, err
		}
		rows = append(rows, lab.Measured(study.Row{
			Section: "The real bill: the pivot is charged too", Label: fmt.Sprintf("tau %v, eta %v: best lambda over no tuning", tau, t.Eta), Metric: "ratio",
			Settings: map[string]any{"tau": tau, "eta": t.Eta, "noise": tuned.Noise}, Verdict: study.NoNumber, Note: "closed form; above 1: tuning is worse than none",
		}, lab.Exactly(tuned.Best/tuned.Untuned)))
	}
	return rows, nil
}

func tuningChart(tau float64, curves []tunedCurve) study.Chart {
	c := study.Chart{
		Title:  fmt.Sprintf("Figure 1.7: error by lambda, tau %v", tau),
		XTitle: "lambda", YTitle: "squared error at the silo's centre", LogX: true, LogY: true,
		Note: "mean and one standard deviation over seeds; compare the lowest points of tuned curves with the ends of the private one",
	}
	for _, curve := range curves {
		if curve.name == "tuned, eta 1" && len(curves) > 8 {
			c.Note += "; eta 1, between 0.5 and 2, is in the rows alone: the page has eight colours"
			continue
		}
		c.Series = append(c.Series, thinned(curve.at.series(curve.name)))
	}
	return c
}

// thinned keeps every fourth point of a curve of a hundred.
func thinned(s study.Series) study.Series {
	var kept []study.Point
	for i, p := range s.Points {
		if i%4 == 0 || i == len(s.Points)-1 {
			kept = append(kept, p)
		}
	}
	s.Points = kept
	return s
}
