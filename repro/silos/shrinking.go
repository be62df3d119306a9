package silos

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// shrinking is section 1.6's observation in figure 1.5: what privacy costs MR-MTL shrinks
// smoothly as lambda grows.
func shrinking(section string, free, private spectrum) []study.Row {
	last := len(private.lambdas) - 1
	if last < 1 {
		return nil
	}
	costs := make([][]float64, last+1) // by lambda and seed
	for i := range costs {
		costs[i] = lab.Differences(private.mtl.all[i], free.mtl.all[i], figure)
		for seed := range costs[i] {
			if !private.lower {
				costs[i][seed] *= -1
			}
		}
	}
	against := make([]float64, len(costs[0])) // how far the cost grows again, as a share of its range
	for seed := range against {
		of := lab.Pick(costs, func(at []float64) float64 { return at[seed] })
		for i := range last {
			against[seed] += max(0, of[i+1]-of[i])
		}
		against[seed] /= slices.Max(of) - slices.Min(of)
	}
	what := "what privacy costs MR-MTL, " + epsilonLabel(private.epsilon)
	return []study.Row{
		effect(study.Row{Section: section, Label: fmt.Sprintf("%s: lambda %v less lambda %v", what, private.lambdas[0], private.lambdas[last]), Metric: "difference",
			Sentence: "section 1.6, figure 1.5: the utility cost from privacy shrinks with larger lambda", Why: fewSeeds}, less(costs[0], costs[last]), 0),
		lab.AtMost(study.Row{Section: section, Label: what + ": its way up again as lambda grows", Metric: "share of the range", Unit: "share",
			Sentence: "section 1.6, figure 1.5: it shrinks smoothly", Why: fewSeeds, Note: "agrees: the whole 95 % interval over seeds below a tenth of the curve's range"}, against, 0.1),
	}
}

// adni are G.3's sentences, whose data are not ours to have.
func adni() (rows []study.Row) {
	const section, why = "Figure G.5, ADNI", "data not available: they are given to approved researchers only; data.kind adni reads them where they are"
	for _, s := range [][2]string{
		{"best lambda near 0", "G.3: MR-MTL essentially recovers local training, with a best lambda of about 0 for most epsilons except around 3.5"},
		{"narrow advantage", "G.3: the regime where MR-MTL outperforms both ends, around epsilon 4, is extremely narrow, and its advantage insignificant"},
		{"high privacy", "G.3, figure G.5 (a): MR-MTL opts for a small lambda at high privacy even where FedAvg performs better"},
		{"clusters", "G.3, figure G.5 (b, c): clustering and a warm start did not lead to significant improvements, though the latter allows a larger best lambda"},
		{"local training", "figure G.5: local performance tends to be superior for most privacy budgets, and MR-MTL recovers this behaviour"},
	} {
		rows = append(rows, missing(section, s[0], s[1], why))
	}
	return rows
}
