package clipping

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

var split = lab.Experiment{
	ID: "clipping-split", Title: "What it costs to learn the clip: two noises for the price of one",
	Paper: "thesis 001, proposition 1, figure 3.2 and the budgets of section 3.7", Quick: "a second", Full: "a second",
	Seeds:  map[string]int{lab.Smoke: 1, lab.Quick: 1, lab.Full: 1},
	Launch: runSplit,
}

// rule is the thesis's rule of thumb: nu_g is 1 % above nu.
const rule = 1.01

// countNoise is nu_q over nu where nu_g is so many times nu, by proposition 1.
func countNoise(gradient float64) float64 { return 1 / math.Sqrt(1-1/(gradient*gradient)) }

func runSplit(*lab.Lab) (study.Study, error) {
	s := study.Study{
		Intro: []string{
			"Online releases two sums over the same batch: the clipped gradients with noise nu_g, and q, the sum of the unit vectors of what was clipped, with nu_q. Proposition 1: together they cost as much as one sum with noise nu, if 1/nu^2 = 1/nu_g^2 + 1/nu_q^2.",
			"The thesis gives q what is left when nu_g is 1 % above nu. Everything here is closed form, or the accountant's.",
		},
		Caveats: []string{
			fmt.Sprintf("Unit: example, relation: add-remove, claim: proved for Poisson batches; 60,000 examples, batches of %d, %d steps a run, delta %v (the thesis states none), the Rényi accountant.", batch, digits.steps(), delta),
			"Line 13 of algorithm 3 noises q with nu_g: equation 3.17 and proposition 1 need nu_q, and so does the guarantee. The rows on it say what it would cost.",
		},
	}
	s.Rows = append(s.Rows, lab.Judged(lab.Measured(study.Row{
		Section: "Proposition 1", Label: "nu_q over nu where nu_g is 1 % above nu", Metric: "ratio", Paper: lab.Number(7.124), Note: "agrees: the same four digits",
	}, lab.Exactly(countNoise(rule))), 7.1235, 7.1245))
	chart := study.Chart{
		Title: "Figure 3.2: noise of gradients by noise of q", XTitle: "nu_q", YTitle: "nu_g", LogX: true, LogY: true,
		Note: "5 runs share the budget; marks: the 1 % rule",
	}
	marks := study.Series{Name: "the 1 % rule", Loose: true}
	for _, epsilon := range digits.epsilons {
		nu, err := noiseFor(epsilon, runsOf(online, 5), digits.steps(), mnistSize)
		if err != nil {
			return study.Study{}, err
		}
		rows, err := splitRows(epsilon, nu)
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, rows...)
		marks.Points = append(marks.Points, lab.Exactly(rule*nu).At(countNoise(rule)*nu))
		curve, err := frontier(nu)
		if err != nil {
			return study.Study{}, err
		}
		curve.Name = fmt.Sprintf("epsilon %v", epsilon)
		chart.Series = append(chart.Series, curve)
	}
	chart.Series = append(chart.Series, marks)
	s.Charts = append(s.Charts, chart)
	budgets, err := budgetRows()
	s.Rows = append(s.Rows, budgets...)
	return s, err
}

// mnistSize is MNIST's public number of pictures.
const mnistSize = 60000

// marginal is the share of epsilon that may be called a minimal burden.
const marginal = 0.05

// splitRows hold proposition 1 against the accountant at one nu.
func splitRows(epsilon, nu float64) ([]study.Row, error) {
	section := fmt.Sprintf("Figure 3.2: epsilon %v over 5 runs, nu %.4f", epsilon, nu)
	nuQ := countNoise(rule) * nu
	nuG, err := account.SplitJointNoise(nu, nuQ)
	if err != nil {
		return nil, err
	}
	joint, err := account.JointNoise(nuG, nuQ)
	if err != nil {
		return nil, err
	}
	printed, err := account.JointNoise(nuG, nuG) // line 13
	if err != nil {
		return nil, err
	}
	cost, err := costOf(printed, runsOf(online, 5))
	if err != nil {
		return nil, err
	}
	alone, err := costOf(nuG, runsOf(online, 5))
	if err != nil {
		return nil, err
	}
	none := func(label, note string, v float64) study.Row {
		return lab.Measured(study.Row{Section: section, Label: label, Metric: label, Verdict: study.NoNumber, Note: note}, lab.Exactly(v))
	}
	return []study.Row{
		none("nu_g", "the text lacks the figure", nuG), none("nu_q", "the text lacks the figure", nuQ),
		lab.Claim(study.Row{
			Section: section, Label: "both together, over nu", Metric: "ratio", Sentence: "proposition 1: equivalent to a single Gaussian mechanism with noise multiplier nu", Note: "agrees: 1 to nine digits",
		}, lab.Exactly(joint/nu), math.Abs(joint/nu-1) < 1e-9),
		costOfQ(section, epsilon, alone),
		none("epsilon of line 13 as printed", fmt.Sprintf("q with nu_g instead of nu_q: both together are one sum with %.4f; claimed: epsilon %v; example, add-remove", printed, epsilon), cost),
	}, nil
}

// costOfQ is what q takes of epsilon, where the gradients alone would cost so much.
func costOfQ(section string, epsilon, alone float64) study.Row {
	return lab.Claim(study.Row{
		Section: section, Label: "epsilon that q costs", Metric: "share of epsilon", Sentence: "section 3.8: the additional privacy burden is minimal",
		Note: fmt.Sprintf("the gradients alone, with nu_g, would cost %.4f; nothing is random: agrees below %v", alone, marginal),
	}, lab.Exactly(1-alone/epsilon), alone > (1-marginal)*epsilon)
}

// costOf is the epsilon of a grid's runs with a noise.
func costOf(noise float64, runs int) (float64, error) {
	plan := training(runs, digits.steps(), mnistSize)
	plan.Noise = noise
	g, err := plan.Guarantee(account.MethodRDP, delta)
	return g.Epsilon, err
}

// frontier is nu_g by nu_q.
func frontier(nu float64) (s study.Series, err error) {
	for i := range 25 {
		nuQ := nu * 1.05 * math.Pow(30, float64(i)/24)
		nuG, err := account.SplitJointNoise(nu, nuQ)
		if err != nil {
			return s, err
		}
		s.Points = append(s.Points, lab.Exactly(nuG).At(nuQ))
	}
	return s, nil
}

// budgetRows are the noises that the grids of the tables leave to one run.
func budgetRows() (out []study.Row, err error) {
	for _, k := range []int{5, 7, 9} {
		for _, m := range private[:3] { // AdamWOSM has Online's
			for _, epsilon := range []float64{1, 3, 9} {
				noise, err := noiseFor(epsilon, runsOf(m, k), digits.steps(), mnistSize)
				if err != nil {
					return nil, err
				}
				out = append(out, lab.Measured(study.Row{
					Section: fmt.Sprintf("Noise of one run where a grid shares the budget, k = %d", k), Label: label(m, epsilon, fmt.Sprintf("%d runs", runsOf(m, k))),
					Metric: "noise S", Unit: "of the clip", Verdict: study.NoNumber, Note: "the thesis states none",
				}, lab.Exactly(noise)))
			}
		}
	}
	shares, err := shareRows()
	return append(out, shares...), err
}

// shareRows are what a larger grid leaves to one run, and how many runs it is, with the k = 7
// that the text discusses: Online's over the others'.
func shareRows() (out []study.Row, err error) {
	const k = 7
	section := fmt.Sprintf("One run of a grid, k = %d: Online's share over another's", k)
	of := func(m method, epsilon float64) (float64, error) {
		noise, err := noiseFor(epsilon, runsOf(m, k), digits.steps(), mnistSize)
		if err != nil {
			return 0, err
		}
		return costOf(noise, 1)
	}
	for _, m := range []method{threshold, quantile} {
		for _, epsilon := range []float64{digits.epsilons[0], digits.epsilons[len(digits.epsilons)-1]} {
			ours, err := of(online, epsilon)
			if err != nil {
				return nil, err
			}
			theirs, err := of(m, epsilon)
			if err != nil {
				return nil, err
			}
			out = append(out, moreThanOne(study.Row{
				Section: section, Label: label(m, epsilon, "epsilon of one run"), Metric: "ratio of epsilons", Sentence: "section 3.7: a larger grid search limits the per-run privacy budget",
				Note: fmt.Sprintf("one run of Online keeps %.3f, one of %s %.3f", ours, m, theirs),
			}, ours/theirs))
		}
		out = append(out, moreThanOne(study.Row{
			Section: section, Label: string(m) + ": runs over Online's", Metric: "ratio of runs", Sentence: "abstract: reducing privacy exposure and computational requirements",
			Note: "counted, not timed",
		}, float64(runsOf(m, k))/float64(runsOf(online, k))))
	}
	return out, nil
}

// moreThanOne is a row about a ratio without randomness.
func moreThanOne(r study.Row, ratio float64) study.Row {
	r.Note += "; nothing is random: agrees above 1"
	return lab.Claim(r, lab.Exactly(ratio), ratio > 1)
}
