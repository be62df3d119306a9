package theory

import (
	"fmt"
	"math"
	"slices"
)

// Trials is the random number of trials of charged tuning: the truncated negative
// binomial distribution (paper 002, appendix E.1; Papernot and Steinke 2022,
// definition 1), or Poisson.
type Trials struct {
	Poisson bool
	Eta     float64 // negative binomial: shape, above -1
	Gamma   float64 // negative binomial: between 0 and 1
	Mean    float64
}

// NegativeBinomialTrials has the given shape and mean. Gamma is solved from below:
// the mean of its Trials is that of its gamma, at least the one asked for.
func NegativeBinomialTrials(eta, mean float64) (Trials, error) {
	if !(eta > -1) || math.IsInf(eta, 1) {
		return Trials{}, fmt.Errorf("%w: eta = %v, want a finite number > -1", ErrRange, eta)
	}
	if !(mean > 1) || mean > 1e9 {
		return Trials{}, fmt.Errorf("%w: mean number of trials = %v, want more than 1, at most 1e9", ErrRange, mean)
	}
	low, high := -700.0, 0.0 // log(gamma); the mean falls with gamma
	for range 200 {
		middle := (low + high) / 2
		if negativeBinomialMean(eta, math.Exp(middle)) >= mean {
			low = middle
		} else {
			high = middle
		}
	}
	gamma := math.Exp(low)
	got := negativeBinomialMean(eta, gamma)
	if !(got >= mean*(1-1e-9) && got <= mean*(1+1e-6)) {
		return Trials{}, fmt.Errorf("%w: eta = %v and a mean of %v trials leave the range of float64; take a larger eta", ErrRange, eta, mean)
	}
	return Trials{Eta: eta, Gamma: gamma, Mean: got}, nil
}

// PoissonTrials has the given mean; there may be no trial at all.
func PoissonTrials(mean float64) (Trials, error) {
	if !(mean >= 1) || mean > 1e6 {
		return Trials{}, fmt.Errorf("%w: mean number of trials = %v, want 1 to 1e6", ErrRange, mean)
	}
	return Trials{Poisson: true, Mean: mean}, nil
}

// negativeBinomialMean is eta(1-gamma)/(gamma(1-gamma^eta)), and its limit at 0.
func negativeBinomialMean(eta, gamma float64) float64 {
	log := math.Log(gamma)
	if eta == 0 {
		return (1 - gamma) / (gamma * -log)
	}
	return -eta * (1 - gamma) / (gamma * math.Expm1(eta*log))
}

// generating is E[x^h], 0 <= x <= 1 (Papernot and Steinke 2022, section 3).
func (t Trials) generating(x float64) float64 {
	if t.Poisson {
		return math.Exp(t.Mean * (x - 1))
	}
	if x == 1 {
		return 1
	}
	log := math.Log1p(-(1 - t.Gamma) * x)
	if t.Eta == 0 {
		return log / math.Log(t.Gamma)
	}
	return math.Expm1(-t.Eta*log) / math.Expm1(-t.Eta*math.Log(t.Gamma))
}

// Probability is that of h trials.
func (t Trials) Probability(h int) float64 {
	if h < 0 || h == 0 && !t.Poisson {
		return 0
	}
	if t.Poisson {
		lgamma, _ := math.Lgamma(float64(h) + 1)
		return math.Exp(float64(h)*math.Log(t.Mean) - t.Mean - lgamma)
	}
	p := t.first()
	for i := 1; i < h; i++ {
		p *= t.step(i)
	}
	return p
}

// first is the negative binomial's probability of one trial, and step the ratio of
// the probabilities of i+1 and of i.
func (t Trials) first() float64 {
	if t.Eta == 0 {
		return (1 - t.Gamma) / -math.Log(t.Gamma)
	}
	return (1 - t.Gamma) * t.Eta / math.Expm1(-t.Eta*math.Log(t.Gamma))
}

func (t Trials) step(i int) float64 {
	return (1 - t.Gamma) * (float64(i) + t.Eta) / (float64(i) + 1)
}

// Count is the number of trials at which the distribution function passes u, from
// [0, 1): a draw, if u is uniform.
func (t Trials) Count(u float64) int {
	const least = 0x1p-60 // smaller probabilities no longer move the sum
	h, p := 1, 0.0
	if t.Poisson {
		h, p = 0, math.Exp(-t.Mean)
		if p == 0 { // a mean beyond 745: start where the probabilities are not 0
			h = int(t.Mean - 38*math.Sqrt(t.Mean))
			p = t.Probability(h)
		}
	} else {
		p = t.first()
	}
	for sum := p; sum <= u && (p > least || float64(h) < t.Mean); sum += p {
		if t.Poisson {
			p *= t.Mean / float64(h+1)
		} else {
			p *= t.step(h)
		}
		h++
	}
	return h
}

// BestOf is the expected smallest value when every trial takes one of the values at
// random, and the choice among the trials is perfect and free; without is what no
// trial at all gives. A private choice can only do worse.
func (t Trials) BestOf(values []float64, without float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	m := float64(len(sorted))
	// The best is among the worst m-i values with probability E[((m-i)/m)^h].
	expected, above := 0.0, 1.0
	for i, v := range sorted {
		next := t.generating((m - float64(i) - 1) / m)
		expected += (above - next) * v
		above = next
	}
	return expected + above*without // above is what is left: no trial
}
