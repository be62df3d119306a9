package pandemic

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// The thesis's network: table 2.6 and figure 2.8.
const (
	smokeNodes = 2_609_976
	batchNodes = 512
	theirs     = 20 // neighbours, which it takes for the examples that a node is in
)

// nodeEpsilon is that of some epochs of batches at delta 1/n: by theorem 2.4.4 (proved,
// replace-one), or by the formula of the authors' code, which is heuristic.
func nodeEpsilon(noise float64, degree, epochs int64, formula string) (float64, error) {
	steps, err := account.Epochs(epochs, batchNodes, smokeNodes)
	if err != nil {
		return 0, err
	}
	r := event.Release{Unit: event.UnitNode, Relation: event.ReplaceOne, Claim: event.ClaimProved, Trust: event.TrustHolder,
		What: event.Repeated{Times: steps, Of: event.NodeGaussian{Nodes: smokeNodes, Occurrences: degree, Batch: batchNodes, Noise: noise, Formula: formula}}}
	if formula == event.AuthorsCode {
		r.Claim = event.ClaimHeuristic
	}
	g, err := account.Spend(r, account.MethodRDP, 1.0/smokeNodes)
	return float64(g.Epsilon), err
}

// printedEpsilons are table 2.6's beside ours, and figure 2.8.
func printedEpsilons() ([]study.Chart, []study.Row, error) {
	var rows []study.Row
	for _, printed := range []struct {
		sigma   float64
		epsilon string
	}{{4.5, "9.9"}, {1, "84"}, {0.5, "245"}} {
		for _, f := range []struct{ formula, name, claim string }{
			{event.Theorem, "theorem 2.4.4", "claim proved"}, {event.AuthorsCode, "the authors' code", "claim heuristic"},
		} {
			epsilon, err := nodeEpsilon(printed.sigma, theirs, 2, f.formula)
			if err != nil {
				return nil, nil, err
			}
			row, err := lab.Rounded(study.Row{
				Section: "Table 2.6: printed epsilons", Label: fmt.Sprintf("sigma %v, by %s", printed.sigma, f.name), Metric: "epsilon", Unit: "node, replace-one, delta 1/n",
				Settings: map[string]any{"sigma": printed.sigma, "S": theirs, "epochs": 2, "formula": f.formula}, Note: f.claim,
				Why: "We believe that the printed figures are of other settings than the printed ones. Tested by the theorem and by the authors' formula, of which neither gives them.",
			}, epsilon, printed.epsilon)
			if err != nil {
				return nil, nil, err
			}
			rows = append(rows, row)
		}
	}
	chart := study.Chart{
		Title: "Epsilon by noise and degree (figure 2.8)", XTitle: "sigma", YTitle: "epsilon (node, replace-one)", LogX: true, LogY: true,
		Note: "One epoch, theorem 2.4.4: claim proved where occurrences are capped by a rule that can be proved, delta 1/n.",
	}
	sigmas := []float64{0.5, 1, 2, 4, 8}
	falls, grows := true, true
	var before []float64
	for _, degree := range []int64{5, 10, 20, 50} {
		at := make([]float64, len(sigmas))
		for i, sigma := range sigmas {
			epsilon, err := nodeEpsilon(sigma, degree, 1, event.Theorem)
			if err != nil {
				return nil, nil, err
			}
			at[i] = epsilon
			falls = falls && (i == 0 || epsilon < at[i-1])
			grows = grows && (before == nil || epsilon > before[i])
		}
		before = at
		chart.Series = append(chart.Series, lab.Curve(fmt.Sprintf("degree %d", degree), sigmas, func(i int) lab.Spread { return lab.Exactly(at[i]) }))
	}
	spread := before[0] / before[len(before)-1]
	rows = append(rows, lab.Claim(study.Row{
		Section: "Figure 2.8: epsilon by noise and degree", Label: "epsilon falls with sigma and grows with the degree", Metric: "epsilon at sigma 0.5 over that at 8", Unit: "times",
		Sentence: "figure 2.8: less epsilon for more noise, more for a larger degree", Settings: map[string]any{"degree": 50},
		Note: fmt.Sprintf("nothing is random: agrees if all of the %d are ordered so", len(sigmas)*len(chart.Series)),
	}, lab.Exactly(spread), falls && grows && !math.IsInf(spread, 0)))
	return []study.Chart{chart}, rows, nil
}
