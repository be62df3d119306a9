package mech

import "math"

// NormBins is how many bins a StepTrace sorts norms into: half decades from 10^-12 on;
// the first and the last one are open.
const NormBins = 37

// StepTrace is what steps were seen to do, for whoever simulates: most of it (norms, how
// many were clipped, signs without noise) is read from examples and paid for by nobody.
// It must never leave with a release.
type StepTrace struct {
	Made              int64 // steps
	Inside, Beyond    int64 // examples within and beyond the clip
	ClipUp, ClipSigns int64 // signs that raised the clip, of those that moved it
	StepUp, StepSigns int64 // likewise the step size
	// Agree counts signs that are those of the sums without noise, of so many compared.
	ClipAgree, StepAgree, Compared int64
	Norms                          [NormBins]int64
}

// Add adds another trace's counts.
func (t *StepTrace) Add(o StepTrace) {
	t.Made += o.Made
	t.Inside, t.Beyond = t.Inside+o.Inside, t.Beyond+o.Beyond
	t.ClipUp, t.ClipSigns, t.StepUp, t.StepSigns = t.ClipUp+o.ClipUp, t.ClipSigns+o.ClipSigns, t.StepUp+o.StepUp, t.StepSigns+o.StepSigns
	t.ClipAgree, t.StepAgree, t.Compared = t.ClipAgree+o.ClipAgree, t.StepAgree+o.StepAgree, t.Compared+o.Compared
	for i, n := range o.Norms {
		t.Norms[i] += n
	}
}

// normBin is where a norm belongs.
func normBin(norm float64) int {
	if !(norm > 0) {
		return 0
	}
	at := math.Floor(2 * (math.Log10(norm) + 12))
	return int(min(max(at, 0), NormBins-1))
}

// note counts norms; those that are not finite stand for vectors that count as zero.
func (c *laneCount) note(norms []float64, bound float64) {
	for _, norm := range norms {
		if !(norm >= 0) || math.IsInf(norm, 0) {
			norm = 0
		}
		if norm > bound {
			c.beyond++
		} else {
			c.inside++
		}
		c.norms[normBin(norm)]++
	}
}
