package pca

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// vastly and hardly are the shares of the plain sum's length that a clip alone, without noise,
// may take from it to be called so.
const (
	vastly = 0.5
	hardly = 0.01
)

// biasRows are what the clip alone does to the sum. Nothing is random.
func (r *result) biasRows() []study.Row {
	last := len(steps) - 1
	bias := func(clip int) float64 { return r.cells[at{clip, math.Inf(1)}][0].Error }
	row := func(label, sentence, note string) study.Row {
		return study.Row{
			Section: r.set.name + ", no noise", Label: label, Metric: "distance to the plain sum over its length", Sentence: sentence, Note: "nothing is random: agrees " + note,
			Why: "We believe that the norms of these rows spread by more than the range of p. Tested by nothing but the sum.",
		}
	}
	return []study.Row{
		lab.Claim(row("error of the sum at the smallest p", "section 1.4: the summation can be vastly affected by reducing the threshold, giving a biased estimator", fmt.Sprintf("above %v", vastly)), lab.Exactly(bias(0)), bias(0) > vastly),
		lab.Claim(row("error of the sum at the largest p", "section 1.4: opting for a larger p tends to minimize the bias", fmt.Sprintf("below %v", hardly)), lab.Exactly(bias(last)), bias(last) < hardly),
	}
}

// tradeRow is what privacy costs: of the most components, each at its best p, those at the
// largest epsilon capture more than those at the smallest.
func (r *result) tradeRow() study.Row {
	k := len(r.components) - 1
	weak, strong := epsilons[len(epsilons)-2], epsilons[0]
	chosen := func(epsilon float64) []cell {
		b := best(func(clip int) float64 { return r.captured(clip, epsilon, k).Middle })
		return r.cells[at{b, epsilon}]
	}
	return lab.Effect(study.Row{
		Section: r.set.name + ", both at their best p", Label: fmt.Sprintf("%s: epsilon %v less epsilon %v", plural(r.components[k]), weak, strong), Metric: "share of the squared length",
		Sentence: "section 1.4: the trade-off between data utility and privacy protection becomes evident",
		Why:      "We believe that there are rows enough for either noise. Tested by the charts: at this number of components both lie near what no noise captures.",
	}, lab.Differences(chosen(weak), chosen(strong), func(c cell) float64 { return c.Captured[k] }), leastLoss)
}
