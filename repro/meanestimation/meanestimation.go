// Package meanestimation reproduces the theory of paper 002: how much to personalise, and what tuning it costs.
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

// Experiments are listed in this order.
var Experiments = []lab.Experiment{meanEstimation, tuningCost}

var meanEstimation = lab.Experiment{
	ID: "mean-estimation", Title: "Mean estimation: how much to personalise, in theory and drawn",
	Paper: "paper 002, section 1.6, appendix D",
	Quick: "10 s", Full: "60 s",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 10, lab.Full: 100},
	Launch: runMeanEstimation,
}

// meanSettings are those of the authors' script.
type meanSettings struct {
	Source               string
	Silos, Examples      int
	Sigma                float64
	Taus                 []float64
	Epsilon, Delta, Clip float64
	Repetitions          int
}

func (m meanSettings) target() theory.Target {
	return theory.Target{Clip: m.Clip, Epsilon: m.Epsilon, Delta: m.Delta, Relation: event.AddRemove, Calibration: theory.ByRDP}
}

func (m meanSettings) federation(tau, noise float64) theory.Equal {
	return theory.Equal{Silos: m.Silos, Examples: m.Examples, Deviation: m.Sigma, Spread: tau, Noise: noise * m.Clip}
}

// drawn is a simulated curve, pooled over seeds.
type drawn struct {
	lambdas []float64
	seeds   [][]theory.Point // by lambda, in seed order
}

// at is the mean error at a lambda, over the seeds.
func (d drawn) at(i int) lab.Spread {
	return lab.MeanAndDeviation(lab.Pick(d.seeds[i], func(p theory.Point) float64 { return p.Error }))
}

// lowest is the lambda with the least mean error, and that error.
func (d drawn) lowest() (lambda float64, s lab.Spread) {
	s.Middle = math.Inf(1)
	for i := range d.lambdas {
		if at := d.at(i); at.Middle < s.Middle {
			lambda, s = d.lambdas[i], at
		}
	}
	return lambda, s
}

// each is the error at one place of the lambdas, seed by seed.
func (d drawn) each(i int) []float64 {
	return lab.Pick(d.seeds[i], func(p theory.Point) float64 { return p.Error })
}

// place is where the mean error is least.
func (d drawn) place() int {
	lambda, _ := d.lowest()
	return slices.Index(d.lambdas, lambda)
}

// finite are the lambdas that have a place on an axis: the last one may be infinity.
func (d drawn) finite() []float64 {
	return slices.DeleteFunc(slices.Clone(d.lambdas), func(l float64) bool { return math.IsInf(l, 1) })
}

func (d drawn) series(name string) study.Series { return lab.Curve(name, d.finite(), d.at) }

// drawAll makes every simulation with every seed and pools them.
func drawAll(l *lab.Lab, simulations []theory.Simulation) ([]drawn, error) {
	out := make([]drawn, len(simulations))
	var jobs []func() error
	for i, s := range simulations {
		if l.Scale == lab.Smoke {
			s.Repetitions = min(s.Repetitions, 60)
		}
		out[i] = drawn{lambdas: s.Lambdas, seeds: make([][]theory.Point, len(s.Lambdas))}
		for j := range out[i].seeds {
			out[i].seeds[j] = make([]theory.Point, l.Seeds)
		}
		for seed := range l.Seeds {
			jobs = append(jobs, func() error {
				one := s
				one.Seed = uint64(seed + 1)
				points, err := one.Run()
				for j, p := range points {
					out[i].seeds[j][seed] = p
				}
				return err
			})
		}
	}
	return out, l.All(jobs)
}

func runMeanEstimation(l *lab.Lab) (study.Study, error) {
	var m meanSettings
	if err := lab.Expected("mean-estimation.json", &m); err != nil {
		return study.Study{}, err
	}
	noise, _, err := m.target().Noise()
	if err != nil {
		return study.Study{}, err
	}
	lambdas := theory.Range(1e-3, 1e2, 26)
	var federations []theory.Equal
	var simulations []theory.Simulation
	for _, tau := range m.Taus {
		for _, s := range []float64{0, noise} {
			f := m.federation(tau, s)
			federations = append(federations, f)
			simulations = append(simulations, theory.Simulation{Federation: f.Each(), Lambdas: lambdas, Repetitions: m.Repetitions})
		}
	}
	different := differentSilos(noise)
	simulations = append(simulations, theory.Simulation{Federation: different, Lambdas: lambdas, Repetitions: 4 * m.Repetitions},
		theory.Simulation{Federation: federations[3].Each(), Clip: m.Clip, Lambdas: lambdas, Repetitions: m.Repetitions})
	curves, err := drawAll(l, simulations)
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"Silos hold examples around centres of their own, and add noise to their sums for example-level privacy. Each estimates its centre as a mix of its own estimate and everyone's average; lambda sets the mix.",
			"The paper column is the closed form; measured is drawn, every example by itself: the mean over seeds with its 95 % interval. A row agrees if the closed form lies within. Intervals hold for all such comparisons of the study at once (Bonferroni), so that chance alone makes one differ in 1 of 20 studies at most.",
		},
		Caveats: []string{
			fmt.Sprintf("Unit: example, relation: add-remove, claim: proved, epsilon %v, delta %v; noise S = %.4f by the Rényi accountant. Sizes, sigma and tau count as public; tuning lambda is not charged here.", m.Epsilon, m.Delta, noise),
			"The formulas assume that the clip touches nothing (assumption D.3.2); the last section shows what clipping at 1 does.",
		},
	}
	all := family((len(federations)+differentKinds)*len(curves[0].lambdas) + 2*len(federations) + len(m.Taus))
	for i, f := range federations {
		s.Rows = append(s.Rows, meanRows(all, f, curves[i])...)
	}
	for i := 0; i < len(federations); i += 2 {
		s.Rows = append(s.Rows, privacyGapRow(all, federations[i+1], curves[i], curves[i+1]))
		s.Charts = append(s.Charts, meanChart(federations[i], federations[i+1], curves[i], curves[i+1]))
	}
	s.Rows = append(s.Rows, behaviourRows(federations, curves)...)
	s.Rows = append(s.Rows, differentRows(all, different, curves[len(curves)-2])...)
	clipped := curves[len(curves)-1]
	_, best := clipped.lowest()
	s.Rows = append(s.Rows, lab.Measured(study.Row{
		Section: "Clipping", Label: fmt.Sprintf("tau %v, clip %v: least error", federations[3].Spread, m.Clip), Metric: "squared error", Unit: "squared",
		Paper: lab.Number(federations[3].BestError()), Verdict: study.Incomparable, Note: "examples lie within 2.5 sigma of 0; the closed form has no clipping",
	}, best))
	return s, nil
}

func privateOrNot(f theory.Equal) string {
	if f.Noise == 0 {
		return "no privacy"
	}
	return "private"
}

// shown are the lambdas that the table shows; the chart has all.
func shown(i, count int) bool { return i == 0 || i == count-1 || i%5 == 1 }

func meanRows(all family, f theory.Equal, d drawn) []study.Row {
	section := fmt.Sprintf("Lemma 1.6.7: tau %v, %s", f.Spread, privateOrNot(f))
	row := func(label, metric, unit string) study.Row {
		return study.Row{Section: section, Label: label, Metric: metric, Unit: unit, Settings: map[string]any{"K": f.Silos, "n": f.Examples, "sigma": f.Deviation, "tau": f.Spread}}
	}
	var rows []study.Row
	for i, lambda := range d.lambdas {
		if shown(i, len(d.lambdas)) {
			rows = append(rows, all.held(row(lambdaLabel(lambda), "squared error", "squared"), d.each(i), f.Error(lambda)))
		}
	}
	curve := row("farthest from the closed form over all lambdas", "distance, over half of the interval", "at most 1")
	curve.Sentence = "lemma 1.6.7: the error at every lambda"
	least := row("lambda with the least error", "lambda", "")
	least.Note = "theorem 1.6.3"
	rows = append(rows, all.heldAll(curve, d.lambdas, d.each, f.Error), heldLambda(least, bestPowers(d), d.lambdas, f.BestLambda()))
	best := nearest(d.lambdas, f.BestLambda())
	for _, end := range []struct {
		at             int
		name, sentence string
	}{{0, "training alone", "proposition 1.6.5"}, {len(d.lambdas) - 1, "the plain average", "proposition 1.6.6"}} {
		r := row(fmt.Sprintf("what %s loses to lambda %.3g", end.name, d.lambdas[best]), "squared error", "squared")
		r.Note = end.sentence + ", at the lambda of the grid that is nearest to the best one"
		rows = append(rows, all.held(r, minus(d.each(end.at), d.each(best)), f.Error(d.lambdas[end.at])-f.Error(d.lambdas[best])))
	}
	return rows
}

func lambdaLabel(lambda float64) string {
	switch {
	case lambda == 0:
		return "lambda 0: training alone"
	case math.IsInf(lambda, 1):
		return "lambda infinite: plain average"
	}
	return fmt.Sprintf("lambda %.3g", lambda)
}

// privacyGapRow is theorem 1.6.8: averaging divides the noise's part by up to K. A ratio of
// small differences has no good interval, so that one part less K times the other is held
// against 0.
func privacyGapRow(all family, private theory.Equal, without, with drawn) study.Row {
	last, silos := len(with.lambdas)-1, float64(private.Silos)
	alone, average := minus(with.each(0), without.each(0)), minus(with.each(last), without.each(last))
	less, of := make([]float64, len(alone)), lab.MeanAndDeviation(alone).Middle
	for seed := range less {
		less[seed] = (alone[seed] - silos*average[seed]) / of
	}
	return all.held(study.Row{
		Section: "Theorem 1.6.8: what privacy costs", Label: fmt.Sprintf("tau %v: what it costs alone, less K times what it costs the average", private.Spread), Metric: "share of the first", Unit: "share",
		Note: fmt.Sprintf("alone over average %.3g, K %d; a small difference of large errors when tau is large: wide interval", of/lab.MeanAndDeviation(average).Middle, private.Silos),
	}, less, 0)
}

// differentSilos are of three kinds: small with much noise, middling, and large
// with little.
func differentSilos(noise float64) theory.Different {
	f := theory.Different{Spread: 0.08}
	for range 4 {
		f.Silos = append(f.Silos, theory.Silo{Examples: 60, Deviation: 0.4, Noise: noise},
			theory.Silo{Examples: 200, Deviation: 0.4, Noise: noise}, theory.Silo{Examples: 1000, Deviation: 0.4, Noise: noise / 4})
	}
	return f
}

// differentKinds is how many kinds of silos there are; the first of each stands for all.
const differentKinds = 3

func differentRows(all family, f theory.Different, d drawn) []study.Row {
	const section = "Appendix D.5: silos that differ"
	var rows []study.Row
	var powers [][]float64
	for k := range differentKinds {
		each := func(i int) []float64 { return d.silo(i, k) }
		label := fmt.Sprintf("a silo of %d examples, noise %.3g", f.Silos[k].Examples, f.Silos[k].Noise)
		powers = append(powers, leastPowers(d.lambdas, each))
		rows = append(rows,
			heldLambda(study.Row{Section: section, Label: label, Metric: "best lambda", Note: "theorem D.5.2"}, powers[k], d.lambdas, f.BestLambda(k)),
			all.heldAll(study.Row{Section: section, Label: label, Metric: "distance, over half of the interval", Unit: "at most 1", Sentence: "appendix D.5: the error at every lambda", Note: "farthest from the closed form over all lambdas"},
				d.lambdas, each, func(lambda float64) float64 { return f.Error(k, lambda) }))
	}
	return append(rows, ownLambdaRows(section, f, d, powers)...)
}

func meanChart(free, private theory.Equal, without, with drawn) study.Chart {
	c := study.Chart{
		Title:  fmt.Sprintf("Error by lambda, tau %v", free.Spread),
		XTitle: "lambda", YTitle: "squared error at the silo's centre", LogX: true, LogY: true,
		Note:   "drawn: mean and one standard deviation over seeds; lambda infinite is left out",
		Series: []study.Series{without.series("no privacy"), with.series("private")},
	}
	for _, f := range []theory.Equal{free, private} {
		s := lab.Curve("closed form, "+privateOrNot(f), with.finite(), func(i int) lab.Spread { return lab.Exactly(f.Error(with.lambdas[i])) })
		s.Paper, s.Of = true, privateOrNot(f)
		c.Series = append(c.Series, s)
	}
	return c
}
