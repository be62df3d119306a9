package fair

import (
	"iter"
	"math"
)

// Metrics are the group fairness metrics under Fairlearn's names. A difference is
// the largest rate of any group less the smallest (0: equal), a ratio the
// smallest divided by the largest (1: equal). A metric is undefined if the rate
// of any group is, if there is but one group, or if it divides 0 by 0.
type Metrics struct {
	// DemographicParity compares selection rates, P(predicted 1 | group).
	DemographicParityDifference Estimate `json:"demographic_parity_difference"`
	DemographicParityRatio      Estimate `json:"demographic_parity_ratio"`
	// EqualOpportunity compares true positive rates, P(predicted 1 | true 1, group).
	EqualOpportunityDifference Estimate `json:"equal_opportunity_difference"`
	EqualOpportunityRatio      Estimate `json:"equal_opportunity_ratio"`
	// EqualizedOdds is the worse of the comparisons of true positive rates and of
	// false positive rates, P(predicted 1 | true 0, group).
	EqualizedOddsDifference Estimate `json:"equalized_odds_difference"`
	EqualizedOddsRatio      Estimate `json:"equalized_odds_ratio"`
}

// metricNames are in the order of fields.
var metricNames = [metricCount]string{
	"demographic_parity_difference", "demographic_parity_ratio",
	"equal_opportunity_difference", "equal_opportunity_ratio",
	"equalized_odds_difference", "equalized_odds_ratio",
}

// All gives the metrics with their names, in a fixed order.
func (m *Metrics) All() iter.Seq2[string, Estimate] {
	return func(yield func(string, Estimate) bool) {
		for i, e := range m.fields() {
			if !yield(metricNames[i], *e) {
				return
			}
		}
	}
}

func (m *Metrics) fields() [metricCount]*Estimate {
	return [metricCount]*Estimate{
		&m.DemographicParityDifference, &m.DemographicParityRatio,
		&m.EqualOpportunityDifference, &m.EqualOpportunityRatio,
		&m.EqualizedOddsDifference, &m.EqualizedOddsRatio,
	}
}

// The sums of a cell: its confusion matrix.
const (
	truePositive = iota
	falsePositive
	falseNegative
	trueNegative
	confusionWidth
)

// What is measured of each group, in this order; gaps are against all other rows.
const (
	baseRate = iota
	selectionRate
	truePositiveRate
	falsePositiveRate
	accuracy
	rateCount
	selectionGap = iota - 1
	truePositiveGap
	falsePositiveGap
	groupFigures
)

// The metrics, after the figures of all groups and the rates of all rows.
const (
	parityDifference = iota
	parityRatio
	opportunityDifference
	opportunityRatio
	oddsDifference
	oddsRatio
	metricCount
)

// layout says where figures stand: those of each group, the overall rates, the
// metrics.
type layout struct{ groups int }

func (l layout) group(g int) int { return g * groupFigures }
func (l layout) overall() int    { return l.groups * groupFigures }
func (l layout) metrics() int    { return l.overall() + rateCount }
func (l layout) size() int       { return l.metrics() + metricCount }

// measure turns the confusion matrices of all groups into all figures. What is
// undefined is NaN: 0/0 is, and min and max keep it.
func (l layout) measure(confusion, out []float64) {
	var all [confusionWidth]float64
	for g := range l.groups {
		for i, v := range confusion[g*confusionWidth:][:confusionWidth] {
			all[i] += v
		}
	}
	overall := rates(all)
	copy(out[l.overall():], overall[:])

	var least, most [rateCount]float64
	for g := range l.groups {
		var own, rest [confusionWidth]float64
		copy(own[:], confusion[g*confusionWidth:])
		for i := range rest {
			rest[i] = all[i] - own[i]
		}
		mine, others := rates(own), rates(rest)
		figures := out[l.group(g):][:groupFigures]
		copy(figures, mine[:])
		figures[selectionGap] = mine[selectionRate] - others[selectionRate]
		figures[truePositiveGap] = mine[truePositiveRate] - others[truePositiveRate]
		figures[falsePositiveGap] = mine[falsePositiveRate] - others[falsePositiveRate]
		if g == 0 {
			least, most = mine, mine
		}
		for i, v := range mine {
			least[i], most[i] = min(least[i], v), max(most[i], v)
		}
	}

	metrics := out[l.metrics():]
	if l.groups < 2 {
		for i := range metricCount {
			metrics[i] = math.NaN()
		}
		return
	}
	difference := func(rate int) float64 { return most[rate] - least[rate] }
	ratio := func(rate int) float64 { return least[rate] / most[rate] }
	metrics[parityDifference] = difference(selectionRate)
	metrics[parityRatio] = ratio(selectionRate)
	metrics[opportunityDifference] = difference(truePositiveRate)
	metrics[opportunityRatio] = ratio(truePositiveRate)
	metrics[oddsDifference] = max(difference(truePositiveRate), difference(falsePositiveRate))
	metrics[oddsRatio] = min(ratio(truePositiveRate), ratio(falsePositiveRate))
}

// rates are those of one confusion matrix.
func rates(c [confusionWidth]float64) (r [rateCount]float64) {
	tp, fp, fn, tn := c[truePositive], c[falsePositive], c[falseNegative], c[trueNegative]
	rows := tp + fp + fn + tn
	r[baseRate] = (tp + fn) / rows
	r[selectionRate] = (tp + fp) / rows
	r[truePositiveRate] = tp / (tp + fn)
	r[falsePositiveRate] = fp / (fp + tn)
	r[accuracy] = (tp + tn) / rows
	return r
}
