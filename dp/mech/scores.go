package mech

import (
	"fmt"
	"math"
)

// Scores are losses of candidates, lower being better, as integers that carry
// their own sensitivity. Only the functions below make them.
type Scores struct {
	units       []int64
	most        int64 // one example moves a score by at most most/of units
	of          int64
	replaceOnly bool
}

// Len is the number of candidates.
func (s Scores) Len() int { return len(s.units) }

// ErrorCounts scores each candidate by its number of wrong examples: one example
// changes it by at most 1, under both relations.
func ErrorCounts(wrong []int64) (Scores, error) { return errorScores(wrong, math.MaxInt64) }

// ErrorRates scores each candidate by its rate of wrong examples among n, with
// the bound 1/(n-1) of paper 002, equation B.1. The size n must be public, so it
// holds under replace-one only.
func ErrorRates(wrong []int64, n int64) (Scores, error) {
	if n < 2 {
		return Scores{}, fmt.Errorf("error rates: %d examples; the bound 1/(n-1) needs at least 2", n)
	}
	s, err := errorScores(wrong, n)
	s.most, s.of, s.replaceOnly = n, n-1, true
	return s, err
}

func errorScores(wrong []int64, n int64) (Scores, error) {
	if len(wrong) == 0 {
		return Scores{}, fmt.Errorf("error counts: no candidates")
	}
	for i, w := range wrong {
		if w < 0 || w > n {
			return Scores{}, fmt.Errorf("error counts: candidate %d has %d wrong of %d examples", i, w, n)
		}
	}
	return Scores{units: append([]int64(nil), wrong...), most: 1, of: 1}, nil
}

// lossUnits is how many steps the range [0, bound] of one example's loss has.
const lossUnits = 1 << 20

// LossScores adds up losses that are clipped example by example: one example
// changes a sum by at most the bound b, which is b/n on the mean.
type LossScores struct {
	bound float64
	sums  []int64
	count int64
}

// NewLossScores scores candidates by losses clipped to [0, bound].
func NewLossScores(candidates int, bound float64) (*LossScores, error) {
	if candidates < 1 {
		return nil, fmt.Errorf("loss scores: %d candidates; need at least one", candidates)
	}
	if !(bound > 0) || math.IsInf(bound, 0) {
		return nil, fmt.Errorf("loss scores: bound %v must be positive and finite", bound)
	}
	return &LossScores{bound: bound, sums: make([]int64, candidates)}, nil
}

// Add takes one example's loss under every candidate. A loss below 0 counts as 0;
// one above the bound, or not a number, counts as the bound.
func (s *LossScores) Add(losses []float64) error {
	if len(losses) != len(s.sums) {
		return fmt.Errorf("loss scores: %d losses for %d candidates", len(losses), len(s.sums))
	}
	if s.count >= math.MaxInt64/lossUnits {
		return fmt.Errorf("loss scores: more than %d examples", s.count)
	}
	for i, loss := range losses {
		part := loss / s.bound * lossUnits
		switch {
		case !(part < lossUnits):
			s.sums[i] += lossUnits
		case part > 0:
			s.sums[i] += int64(part)
		}
	}
	s.count++
	return nil
}

// Scores returns what was added up so far.
func (s *LossScores) Scores() Scores {
	return Scores{units: append([]int64(nil), s.sums...), most: lossUnits, of: 1}
}
