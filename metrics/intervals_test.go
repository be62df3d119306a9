package metrics

import (
	"math"
	"math/big"
	"testing"
)

// The library's quantile ends far from the truth at these (0.9999997 and 0.93748).
func TestLimitsFarOut(t *testing.T) {
	for _, c := range []struct {
		hits, trials int
		level        float64
		least, most  float64
	}{
		{0, 1000, 1e-7, 0, 0.015989},
		{20000, 20000, 1e-7, 0.999194, 1},
	} {
		least, most := AtLeast(c.hits, c.trials, c.level), AtMost(c.hits, c.trials, c.level)
		if math.Abs(least-c.least) > 5e-7 || math.Abs(most-c.most) > 5e-7 {
			t.Errorf("%d of %d at %v: %v to %v, want %v to %v", c.hits, c.trials, c.level, least, most, c.least, c.most)
		}
	}
}

// At each limit the binomial tail is the level: summed up without the beta function, at
// 200 bits. The limits of misses mirror those of hits.
func TestLimitsAgainstTheBinomial(t *testing.T) {
	for _, trials := range []int{1, 2, 10, 300, 2000} {
		for _, hits := range []int{0, 1, 2, trials / 3, trials / 2, trials - 1, trials} {
			if hits > trials {
				continue
			}
			for _, level := range []float64{0.4, 0.025, 1e-3, 1e-7, 1e-12, 1e-30, 1e-200} {
				least, most := AtLeast(hits, trials, level), AtMost(hits, trials, level)
				if !(0 <= least && least <= float64(hits)/float64(trials) && float64(hits)/float64(trials) <= most && most <= 1) {
					t.Errorf("%d of %d at %v: %v to %v", hits, trials, level, least, most)
				}
				if hits > 0 {
					if tail := binomialTail(hits, trials, least); math.Abs(tail/level-1) > 1e-6 {
						t.Errorf("%d of %d or more at %v: %v, want %v", hits, trials, least, tail, level)
					}
				}
				if misses := trials - hits; misses > 0 && most < 1 { // 1 is rounded up
					// 1-most is known to 1e-16, and the tail by so much of it.
					slack := 1e-6 + 4e-16*float64(trials)/(1-most)
					if tail := binomialTail(misses, trials, 1-most); math.Abs(tail/level-1) > slack {
						t.Errorf("%d of %d or fewer at %v: %v, want %v", hits, trials, most, tail, level)
					}
				}
			}
		}
	}
}

// binomialTail is the chance of so many hits or more.
func binomialTail(hits, trials int, probability float64) float64 {
	float := func(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }
	p, q := float(probability), float(1)
	q.Sub(q, p)
	term, sum := float(1), float(0)
	for range trials {
		term.Mul(term, p) // all hit
	}
	ratio := float(0)
	ratio.Quo(q, p)
	for k := trials; k >= hits; k-- {
		sum.Add(sum, term)
		term.Mul(term, ratio).Mul(term, float(float64(k))).Quo(term, float(float64(trials-k+1)))
	}
	v, _ := sum.Float64()
	return v
}
