package metrics

import (
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// normal95 is the 97.5 % quantile of the normal distribution.
const normal95 = 1.959963984540054

// student is the 97.5 % quantile of Student's t.
func student(degrees int) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(degrees)}.Quantile(0.975)
}

// jackknife is a figure over k parts, with the 95 % interval that leaving out one of
// them at a time gives (Tukey 1958). Without(-1) is the figure of all, without(i) that
// without part i. Nil if the figure is not defined; without an interval if one of the
// others is not.
func jackknife(k int, without func(i int) float64, least, most float64) *Figure {
	value := without(-1)
	if k < 2 || !finite(value) {
		return figure(value, math.NaN(), least, most)
	}
	left, mean := make([]float64, k), 0.0
	for i := range left {
		left[i] = without(i)
		mean += left[i] / float64(k)
	}
	squares := 0.0
	for _, v := range left {
		squares += (v - mean) * (v - mean)
	}
	return figure(value, math.Sqrt(squares*float64(k-1)/float64(k))*student(k-1), least, most)
}

// wilson is a share with its interval (Wilson 1927), which lies within 0…1 and has a
// width even where all answers are right.
func wilson(right, n float64) *Figure {
	z2 := normal95 * normal95
	share := right / n
	middle, half := (share+z2/(2*n))/(1+z2/n), normal95/(1+z2/n)*math.Sqrt(share*(1-share)/n+z2/(4*n*n))
	return between(share, max(0, min(share, middle-half)), min(1, max(share, middle+half)))
}

// AtLeast and AtMost are Clopper and Pearson's one-sided limits of a probability, by its
// hits among so many trials: each is wrong with a probability of level at most.
func AtLeast(hits, trials int, level float64) float64 {
	switch hits {
	case 0:
		return 0
	case trials:
		return math.Exp(math.Log(level) / float64(trials)) // p^n = level
	}
	return betaQuantile(float64(hits), float64(trials-hits+1), level)
}

// AtMost is the other one of AtLeast's limits.
func AtMost(hits, trials int, level float64) float64 {
	switch hits {
	case trials:
		return 1
	case 0:
		return -math.Expm1(math.Log(level) / float64(trials)) // (1-p)^n = level
	}
	// The misses' limit on the other side: 1-level would lose the level's digits.
	return 1 - betaQuantile(float64(trials-hits), float64(hits+1), level)
}

// betaQuantile is the p at which the regularised incomplete beta function is level. The
// library's is taken only where it is right: far out in the tail it can end anywhere.
func betaQuantile(a, b, level float64) float64 {
	p := mathext.InvRegIncBeta(a, b, level)
	if math.Abs(mathext.RegIncBeta(a, b, p)-level) <= 1e-9*level {
		return p
	}
	low, high := 0.0, 1.0
	for p = 0.5; low < p && p < high; p = low + (high-low)/2 {
		if mathext.RegIncBeta(a, b, p) <= level {
			low = p
		} else {
			high = p
		}
	}
	return low
}

// Spread is half the width of the interval of a mean; NaN with fewer than two values.
func Spread(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, math.NaN()
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares/(n*(n-1))) * student(len(values)-1)
}
