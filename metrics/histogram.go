package metrics

import "math"

// FromHistogram is the recalibration of 2 classes from counts[label][bin], the bins being
// equal parts of 0…1 for the probability of class 1: every bin's examples stand at its
// middle. Counts may be noised: negative ones are taken for 0. Both figures are not a
// number where they are not defined: a label's counts do not add up to more than 0, a
// score separates the labels, or the counts are not two labels of as many finite bins.
func FromHistogram(counts [][]float64) (slope, intercept float64) {
	undefined := math.NaN()
	if len(counts) != 2 || len(counts[0]) != len(counts[1]) {
		return undefined, undefined
	}
	var totals [2]float64
	var logits, shares, weights []float64
	bins := len(counts[0])
	for b := range bins {
		zeros, ones := counts[0][b], counts[1][b]
		if !finite(zeros) || !finite(ones) {
			return undefined, undefined
		}
		totals[0], totals[1] = totals[0]+zeros, totals[1]+ones
		zeros, ones = max(0, zeros), max(0, ones)
		middle := (float64(b) + 0.5) / float64(bins)
		if n := zeros + ones; n > 0 {
			logits, shares, weights = append(logits, math.Log(middle/(1-middle))), append(shares, ones/n), append(weights, n)
		}
	}
	if !(totals[0] > 0 && totals[1] > 0) {
		return undefined, undefined
	}
	r := recalibrate(logits, shares, weights, asItIs)
	return r.slope, r.intercept
}
