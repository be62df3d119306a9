package groupprivacy

import (
	"math"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
)

func synthClaim(label, metric, unit, sentence, why string) study.Row {
	return study.Row{Section: "Figures 1 and 2: what the texts claim", Label: label, Metric: metric, Unit: unit, Sentence: sentence, Why: why}
}

const lossRatio = "validation RMSE, geometric mean of ratios"

// ablationRows are what the texts say of figure 1's three rows beside one another.
func ablationRows(fedavg, ifca, private []cell, one []course) []study.Row {
	loss := func(cells []cell) []float64 { return lab.Pick(cells, validation) }
	between := lab.Interval(lab.Pick(one, course.between))
	settles := synthClaim("FedAvg: where its model lies between the optima", "way from the first to the second", "share",
		"paper 004, section 4.1, and paper 003, section 5.1.1: with one hypothesis the final parameters settle somewhere in between the optimal parameters", "No reason is known.")
	settles.Note = "agrees: the whole 95 % interval over seeds from a tenth to nine tenths of the way"
	found := synthClaim("IFCA: seeds near both optima", "seeds near both optima", "share",
		"paper 004, section 4.1: with several hypotheses the optimised parameters almost overlap the optimal ones", "No reason is known.")
	lowest := synthClaim("group-private over IFCA", lossRatio, "ratio",
		"thesis 001, section 2.5.1: without sanitisation the validation loss reaches the lowest value of the three cases", "No reason is known.")
	sameOrder := synthClaim("group-private over IFCA, the order of magnitude", lossRatio, "ratio",
		"thesis 001, section 2.5.1: the loss without sanitisation is still in the same order of magnitude as the sanitised case", "No reason is known.")
	sameOrder.Note = "agrees: the whole 95 % interval over seeds below 10"
	ratio := lab.Times(sameOrder, loss(private), loss(ifca), 0)
	if ratio.Verdict == study.Agrees && *ratio.High >= 10 {
		ratio.Verdict = study.Differs
	}
	const larger = "thesis 001, section 2.5.1: without personalisation the validation loss is considerably larger than both others"
	overPrivate := synthClaim("FedAvg over group-private", lossRatio, "ratio", larger, "No reason is known.")
	overIFCA := synthClaim("FedAvg over IFCA", lossRatio, "ratio", larger+"; paper 004, section 4.1: several hypotheses improve the performance where data are heterogeneous", "No reason is known.")
	overPrivate.Note = "agrees: the whole 95 % interval over seeds above 2"
	overIFCA.Note = overPrivate.Note
	return []study.Row{
		lab.Claim(settles, between, between.Low > 0.1 && between.High < 0.9),
		lab.Share95(found, foundBoth(ifca), len(ifca), mostSeeds),
		lab.Times(lowest, loss(private), loss(ifca), 1),
		ratio, lab.Times(overPrivate, loss(fedavg), loss(private), 2), lab.Times(overIFCA, loss(fedavg), loss(ifca), 2),
	}
}

// privateRows are what the texts say of group-private training by itself: figures 1 g to i
// and 2.
func privateRows(cells []cell, courses []course) []study.Row {
	const method = "group-private: "
	falls := synthClaim(method+"loss after the first round over the returned models'", lossRatio, "ratio",
		"paper 004, section 4.1: on top of formal guarantees great results in the reduction of the loss function", "No reason is known.")
	falls.Note = "agrees: the whole 95 % interval over seeds above 2"
	first := lab.Pick(courses, func(c course) float64 { return float64(c.Loss[0]) })
	gathers := synthClaim(method+"released vectors' distance from the nearer optimum, the first rounds' over the last's", "geometric mean of ratios", "ratio",
		"paper 000, appendix B.1: at first the updates seem to be distributed all over the domain, then the process converges", "No reason is known.")
	few := synthClaim(method+"rounds until the returned models", "rounds", "rounds", "paper 000, appendix B.1: in just a few rounds of training the process converges", "No reason is known.")
	few.Note = "agrees: the whole 95 % interval over seeds below 50; where it converges to is a row of its own"
	parts := synthClaim(method+"clients with the model of their own group", "share of training clients", "share",
		"paper 000, section 5: clustering the sanitised vectors with k-means is a good proxy for aggregating clients with similar data", "No reason is known.")
	constant := synthClaim(method+"rounds in which the largest leakage of a cluster stays as it was", "share of rounds after the first", "share",
		"paper 000, figure 2: leakage is constant while the clients with the largest are not sampled", "No reason is known.")
	out := []study.Row{
		lab.Times(falls, first, lab.Pick(cells, validation), 2),
		lab.Times(gathers, lab.Pick(courses, func(c course) float64 { return c.away(c.Early) }), lab.Pick(courses, func(c course) float64 { return c.away(c.Late) }), 1),
		lab.AtMost(few, lab.Pick(courses, course.best), 50),
		lab.Effect(parts, lab.Pick(courses, func(c course) float64 { return c.Parted }), 0.9),
		lab.Effect(constant, lab.Pick(courses, course.constant), 0),
	}
	return append(out, oneRelease(synthClaim(method+"leakage of one release", "epsilon at the radius, heuristic", "epsilon",
		"", ""), cells, 0.4, "paper 000, appendix B.1: at most n/nu = 2/5 a round"))
}

// oneRelease is what the clients with a single release have spent, beside the text's figure:
// nothing is random about it.
func oneRelease(r study.Row, cells []cell, theirs float64, source string) study.Row {
	least := math.Inf(1)
	for _, c := range cells {
		for _, b := range c.Budgets {
			if b.Epsilon > 0 {
				least = min(least, float64(b.Epsilon))
			}
		}
	}
	r.Note, r.Paper = source+"; nothing is random", lab.Number(theirs)
	return lab.Judged(lab.Measured(r, lab.Exactly(least)), theirs-1e-9, theirs+1e-9)
}

// away is the mean distance of released vectors from the nearer optimum.
func (c course) away(of []sim.Release) float64 {
	sum := 0.0
	for _, r := range of {
		nearest := math.Inf(1)
		for _, t := range c.Truth {
			nearest = min(nearest, math.Hypot(r.At[0]-t[0], r.At[1]-t[1]))
		}
		sum += nearest
	}
	return sum / float64(len(of))
}

// best is the round whose models were returned: the one with the least loss.
func (c course) best() float64 {
	at := 0
	for i, loss := range c.Loss {
		if loss < c.Loss[at] {
			at = i
		}
	}
	return float64(at + 1)
}

// constant is the share of rounds in which a cluster's largest leakage did not rise.
func (c course) constant() float64 {
	still, all := 0, 0
	for round := 1; round < len(c.Leakage); round++ {
		for j, epsilon := range c.Leakage[round] {
			if all++; epsilon == c.Leakage[round-1][j] {
				still++
			}
		}
	}
	return float64(still) / float64(all)
}
