package mech

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Selection picks a candidate with a low score privately. Mechanism is
// event.Exponential, event.PermuteAndFlip or event.NoisyMax; each is
// Epsilon-DP, but their zCDP costs differ (docs/proofs has a note on each).
type Selection struct {
	Mechanism string
	Epsilon   float64
}

// Event is what one choice costs.
func (s Selection) Event() event.Selection {
	return event.Selection{Mechanism: s.Mechanism, Epsilon: s.Epsilon}
}

func (s Selection) check(scores Scores, terms Terms) (event.Release, error) {
	if scores.Len() == 0 {
		return event.Release{}, fmt.Errorf("selection: no candidates")
	}
	release, err := terms.release(s.Event(), scores.replaceOnly)
	if err != nil {
		return event.Release{}, fmt.Errorf("selection: %w", err)
	}
	return release, nil
}

// Choose returns the index of the choice, drawn exactly: epsilon and the scores
// are taken as the rational numbers that they are.
func (s Selection) Choose(scores Scores, terms Terms, e *Entropy) (int, event.Release, error) {
	release, err := s.check(scores, terms)
	if err != nil {
		return 0, event.Release{}, err
	}
	var choice int
	switch s.Mechanism {
	case event.Exponential:
		choice, err = e.exponential(s.exponents(scores))
	case event.PermuteAndFlip:
		choice, err = e.permuteAndFlip(s.exponents(scores))
	default: // check lets only the three names pass
		choice, err = e.noisyMax(scores, s.Epsilon)
	}
	if err != nil {
		return 0, event.Release{}, fmt.Errorf("selection by %s: %w", s.Mechanism, err)
	}
	return choice, release, nil
}

// Simulate chooses with floats from a keyed source: the maximum of scores with
// Gumbel noise (exponential mechanism), exponential noise (permute-and-flip: Ding
// et al. 2021) or Laplace noise. It is for simulation only.
func (s Selection) Simulate(scores Scores, terms Terms, src rand.Source) (int, event.Release, error) {
	release, err := s.check(scores, terms)
	if err != nil {
		return 0, event.Release{}, err
	}
	perUnit := s.Epsilon * float64(scores.of) / (2 * float64(scores.most))
	best := scores.best()
	choice, most := 0, math.Inf(-1)
	for i, u := range scores.units {
		noise := exponentialNoise(src)
		switch s.Mechanism {
		case event.Exponential:
			noise = -math.Log(noise)
		case event.NoisyMax:
			noise -= exponentialNoise(src)
		}
		if value := noise - perUnit*float64(u-best); value > most {
			choice, most = i, value
		}
	}
	return choice, release, nil
}

func exponentialNoise(src rand.Source) float64 { return -math.Log(1 - rng.Float64(src)) }

func (s Scores) best() int64 {
	best := s.units[0]
	for _, u := range s.units {
		best = min(best, u)
	}
	return best
}

// exponents are epsilon*(score - best)/(2*sensitivity), one per candidate.
func (s Selection) exponents(scores Scores) []exponent {
	best := scores.best()
	perUnit := new(big.Rat).SetFloat64(s.Epsilon)
	perUnit.Mul(perUnit, big.NewRat(scores.of, 2))
	perUnit.Quo(perUnit, new(big.Rat).SetInt64(scores.most))
	out := make([]exponent, len(scores.units))
	for i, u := range scores.units {
		out[i] = newExponent(new(big.Rat).Mul(perUnit, new(big.Rat).SetInt64(u-best)))
	}
	return out
}

// exponential draws i with probability ~ exp(-x[i]): a uniform candidate is kept
// with probability exp(-x[i]), or drawn again. The best one is always kept.
func (e *Entropy) exponential(x []exponent) (int, error) {
	for range maxTries * len(x) {
		i, err := e.uniform(uint64(len(x)))
		if err != nil {
			return 0, err
		}
		if ok, err := e.bernoulliExp(x[i]); ok || err != nil {
			return int(i), err
		}
	}
	return 0, errBrokenSource
}

// permuteAndFlip is the same without replacement (McKenna and Sheldon 2020).
func (e *Entropy) permuteAndFlip(x []exponent) (int, error) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	for last := len(order) - 1; last > 0; last-- {
		i, err := e.uniform(uint64(last + 1))
		if err != nil {
			return 0, err
		}
		pick := order[i]
		order[i] = order[last]
		if ok, err := e.bernoulliExp(x[pick]); ok || err != nil {
			return pick, err
		}
	}
	return order[0], nil // the best one was not refused, so it is the one left
}

// noisyMax returns the candidate whose score minus discrete Laplace noise is
// least, the first of equals. Scores are refined so that the noise is many steps
// wide, and its scale is rounded up.
func (e *Entropy) noisyMax(scores Scores, epsilon float64) (int, error) {
	scale, refine, err := noisyMaxScale(scores, epsilon)
	if err != nil {
		return 0, err
	}
	best := scores.best()
	choice, least := 0, int64(math.MaxInt64)
	for i, u := range scores.units {
		// Cutting a gap off keeps the sensitivity and, unlike a refusal, tells nothing.
		gap := min(u-best, (1<<61)/refine)
		noise, err := e.laplace(scale)
		if err != nil {
			return 0, err
		}
		if value := gap*refine + noise; value < least {
			choice, least = i, value
		}
	}
	return choice, nil
}

// noisyMaxScale returns ceil(2*sensitivity*refine/epsilon) and refine, a power of
// two that makes the scale at least 2^20 where it can.
func noisyMaxScale(scores Scores, epsilon float64) (scale uint64, refine int64, err error) {
	exact := new(big.Rat).SetFloat64(epsilon)
	exact.Quo(big.NewRat(2, 1), exact)
	exact.Mul(exact, big.NewRat(scores.most, scores.of))
	refine = 1
	rough, _ := exact.Float64()
	for ; rough < 1<<20 && refine < 1<<40; rough *= 2 {
		refine *= 2
	}
	exact.Mul(exact, new(big.Rat).SetInt64(refine))
	ceiling := ceilDiv(exact.Num(), exact.Denom())
	if ceiling.BitLen() > 50 {
		return 0, 0, fmt.Errorf("epsilon %v asks for noise beyond exact integers; take a larger one", epsilon)
	}
	return ceiling.Uint64(), refine, nil
}

// laplace draws from the discrete Laplace distribution P(x) ~ exp(-|x|/scale),
// scale at most 2^50 (Canonne, Kamath and Steinke 2020, algorithm 2).
func (e *Entropy) laplace(scale uint64) (int64, error) {
	for range maxTries {
		x, err := e.uniform(scale)
		if err != nil {
			return 0, err
		}
		if ok, err := e.bernoulliExp(quotient(x, scale)); err != nil {
			return 0, err
		} else if !ok {
			continue
		}
		wraps, err := e.geometric()
		if err != nil {
			return 0, err
		}
		x += wraps * scale
		sign, err := e.word()
		if err != nil {
			return 0, err
		}
		if negative := sign & 1; x != 0 || negative == 0 {
			return signed(x, negative), nil
		}
	}
	return 0, errBrokenSource
}

// geometric counts how often a chance of exp(-1) comes true in a row.
func (e *Entropy) geometric() (uint64, error) {
	unit := quotient(1, 1)
	for count := range uint64(1000) {
		if ok, err := e.bernoulliExp(unit); !ok || err != nil {
			return count, err
		}
	}
	return 0, errBrokenSource
}
