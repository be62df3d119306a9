package mech

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

var soak = flag.Bool("soak", false, "ten times as many draws")

// Every statistical check below fails a right sampler with probability at most
// falseAlarm. Seeds are fixed, so a check that passes keeps passing.
const (
	falseAlarm = 1e-6
	zLimit     = 4.8916 // two-sided normal quantile at falseAlarm
)

func draws() int {
	if *soak {
		return 10_000_000
	}
	return 1_000_000
}

func keyed(seed byte) *Entropy { return NewEntropy(rand.NewChaCha8([32]byte{seed})) }

// checkCounts is Pearson's test of counts against probabilities; classes that
// expect fewer than 10 are joined with the next one.
func checkCounts(counts []int, probability func(i int) float64) error {
	total := 0
	for _, c := range counts {
		total += c
	}
	var statistic, expected, seen float64
	freedom := -1
	left := 1.0
	for i, c := range counts {
		p := probability(i)
		expected += p * float64(total)
		seen += float64(c)
		left -= p
		if expected >= 10 && (left*float64(total) >= 10 || i == len(counts)-1) {
			statistic += (seen - expected) * (seen - expected) / expected
			freedom++
			expected, seen = 0, 0
		}
	}
	if expected > 0 {
		statistic += (seen - expected) * (seen - expected) / max(expected, 1)
		freedom++
	}
	if p := (distuv.ChiSquared{K: float64(freedom)}).Survival(statistic); p < falseAlarm {
		return fmt.Errorf("chi-square %.1f on %d degrees of freedom, p = %.2g", statistic, freedom, p)
	}
	return nil
}

// checkNormal tests moments, shape, low bits and the correlation of neighbours of
// draws that should be normal with a standard deviation of sigma steps, sigma
// being so large that the steps do not show.
func checkNormal(x []int64, sigma float64) error {
	n := float64(len(x))
	var mean, square, fourth float64
	const bins = 64
	shape, low := make([]int, bins), make([]int, 256)
	var lag [8]float64
	normal := distuv.UnitNormal
	var edges [bins - 1]float64
	for i := range edges {
		edges[i] = normal.Quantile(float64(i+1) / bins)
	}
	for i, v := range x {
		z := float64(v) / sigma
		mean += z
		square += z * z
		fourth += z * z * z * z
		bin, _ := slices.BinarySearch(edges[:], z)
		shape[bin]++
		low[v&255]++
		for k := range lag {
			if i > k {
				lag[k] += z * float64(x[i-k-1]) / sigma
			}
		}
	}
	// Standard errors under the standard normal: 1, sqrt(2), sqrt(96) over sqrt(n).
	for _, c := range []struct {
		name                string
		got, want, deviates float64
	}{
		{"mean", mean / n, 0, 1},
		{"variance", square / n, 1, math.Sqrt2},
		{"fourth moment", fourth / n, 3, math.Sqrt(96)},
	} {
		if z := (c.got - c.want) / c.deviates * math.Sqrt(n); math.Abs(z) > zLimit {
			return fmt.Errorf("%s %.6f instead of %v, z = %.1f", c.name, c.got, c.want, z)
		}
	}
	for k, sum := range lag {
		if z := sum / math.Sqrt(n); math.Abs(z) > zLimit {
			return fmt.Errorf("correlation with the neighbour %d away, z = %.1f", k+1, z)
		}
	}
	if err := checkCounts(shape, func(int) float64 { return 1.0 / bins }); err != nil {
		return fmt.Errorf("shape: %w", err)
	}
	if err := checkCounts(low, func(int) float64 { return 1.0 / 256 }); err != nil {
		return fmt.Errorf("low bits: %w", err)
	}
	return nil
}

// checkKolmogorov compares values with a continuous distribution. Its limit is
// the Dvoretzky-Kiefer-Wolfowitz bound (Massart 1990), valid for every size.
func checkKolmogorov(values []float64, cdf func(float64) float64) error {
	slices.Sort(values)
	n := float64(len(values))
	worst := 0.0
	for i, v := range values {
		p := cdf(v)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	if limit := math.Sqrt(math.Log(2/falseAlarm) / (2 * n)); worst > limit {
		return fmt.Errorf("largest gap to the distribution %.5f, limit %.5f", worst, limit)
	}
	return nil
}

// atLeast and atMost are Clopper and Pearson's one-sided limits of a probability.
func atLeast(hits, trials int, alpha float64) float64 {
	if hits == 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(hits), float64(trials-hits+1), alpha)
}

func atMost(hits, trials int, alpha float64) float64 {
	if hits == trials {
		return 1
	}
	return mathext.InvRegIncBeta(float64(hits+1), float64(trials-hits), 1-alpha)
}

// provenEpsilon is a lower bound on epsilon at delta from how often one event
// happened under two neighbouring inputs; it errs with probability falseAlarm.
func provenEpsilon(hits, others, trials int, delta float64) float64 {
	return math.Log((atLeast(hits, trials, falseAlarm/2) - delta) / atMost(others, trials, falseAlarm/2))
}
