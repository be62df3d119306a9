package mech

import (
	"fmt"
	"math"
)

// ClipSignal is what a step sums beside the clipped gradients, to find the next clip.
type ClipSignal int

// Nothing; how many examples lie within the clip; or, of those beyond it, which way
// their gradients point.
const (
	SignalNone ClipSignal = iota
	SignalCount
	SignalDirections
)

// Length is how many values the second sum has, of terms of n coordinates.
func (s ClipSignal) Length(n int) int {
	switch s {
	case SignalCount:
		return 1
	case SignalDirections:
		return n
	}
	return 0
}

// Bound is the largest norm of what one term adds to the second sum: a count is of halves.
func (s ClipSignal) Bound() float64 {
	if s == SignalCount {
		return 0.5
	}
	return 1
}

// Of sets dst, of the signal's length, to what a term says to it: 1/2 or -1/2, or its
// direction if it is beyond the clip. What is not finite counts as zero, as in Clip.
func (s ClipSignal) Of(dst, v []float64, clip float64) (Clipped, error) {
	norm, err := Norm(v)
	beyond := err == nil && norm > clip
	clear(dst)
	switch {
	case s == SignalCount && beyond:
		dst[0] = -0.5
	case s == SignalCount:
		dst[0] = 0.5
	case beyond:
		if len(v) != len(dst) {
			return Clipped{}, fmt.Errorf("clip rule: %d coordinates do not fit a sum of %d", len(v), len(dst))
		}
		for i, x := range v {
			dst[i] = x / norm
		}
	}
	return Clip(dst, s.Bound())
}

// ClipRule says how the clip of steps, and perhaps their size, move during training. All
// of it is public, and the movements follow from what was released: they cost nothing
// beside the second sum, whose noise is part of the step's own (proposition 1 of paper
// 001: docs/proofs/joint-clipping.md). The zero value leaves both as they are.
type ClipRule struct {
	Signal ClipSignal
	// GradientNoise is the noise on the gradients' sum, divided by the step's: above 1. The
	// second sum has what is left. Without a signal it is not read.
	GradientNoise float64
	Quantile      float64 // SignalCount: the share of examples that should lie within the clip
	Rate          float64 // how fast ln(clip) moves; 0: the signal does not move it
	StepRate      float64 // SignalDirections: how fast ln(step size) moves
	Random        bool    // SignalDirections: coins instead of signs, to compare with
	Decay         float64 // ln(clip) falls by it in every step
	StepDecay     float64 // ln(step size) falls by it in every step
	Lowest        float64 // public limits of the clip; 0: none
	Highest       float64
}

// moves says whether there is anything to remember between steps.
func (r ClipRule) moves() bool { return r.Signal != SignalNone || r.Decay != 0 || r.StepDecay != 0 }

func (r ClipRule) check(clip float64) error {
	highest := r.Highest
	if highest == 0 {
		highest = math.MaxFloat64
	}
	if r.Signal != SignalNone && !(r.GradientNoise > 1 && r.GradientNoise <= 1e3) {
		return fmt.Errorf("clip rule: the gradients' noise is %v of the step's; allowed: above 1, at most 1000, so that a second sum is paid for", r.GradientNoise)
	}
	for _, v := range []float64{r.Rate, r.StepRate, r.Decay, r.StepDecay, r.Quantile, r.Lowest, r.Highest} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("clip rule: a rate, a decay, the quantile or a limit is %v; allowed: finite numbers", v)
		}
	}
	if !(r.Lowest >= 0 && r.Lowest <= clip && clip <= highest) {
		return fmt.Errorf("clip rule: the clip starts at %v, outside its limits %v and %v", clip, r.Lowest, r.Highest)
	}
	return nil
}

// noises are those of the two sums, relative to their bounds, of a step that is charged
// as one with noise nu: 1/nu^2 = 1/gradient^2 + 1/second^2, rounded so that no part is
// too small.
func (r ClipRule) noises(nu float64) (gradient, second float64) {
	if r.Signal == SignalNone {
		return nu, 0
	}
	g := r.GradientNoise
	return nu * g * (1 + 0x1p-50), nu * g / math.Sqrt((g-1)*(g+1)) * (1 + 0x1p-50)
}

// ClipState is how far a rule has come: where the next step goes on. All of it follows
// from releases. The zero value is the beginning.
type ClipState struct {
	Steps     int64
	Clip      float64 // 0: where the rule starts
	Pace      float64 // what the step size is multiplied by; 0: 1
	Gradient  []float32
	Direction []float32 // both of the last step, as they were released
}

// fall is what public schedules do after a step.
func (r ClipRule) fall(s *ClipState) {
	s.Steps++
	s.Clip *= math.Exp(-r.Decay)
	s.Pace *= math.Exp(-r.StepDecay)
	r.limit(s)
}

// limit keeps clip and pace among numbers that can be used, whatever was released.
func (r ClipRule) limit(s *ClipState) {
	low, high := math.Max(r.Lowest, 0x1p-400), r.Highest
	if high == 0 {
		high = 0x1p400
	}
	s.Clip = min(max(s.Clip, low), high)
	s.Pace = min(max(s.Pace, 0x1p-400), 0x1p400)
}

// follow moves the clip towards the quantile (Andrew et al. 2021): inside is the noised
// number of examples within the clip, each counted as 1/2 and all others as -1/2, and
// batch the public batch size.
func (r ClipRule) follow(s *ClipState, inside float64, batch int) {
	share := 0.5 + inside/float64(max(1, batch))
	if move := r.Rate * (share - r.Quantile); !math.IsNaN(move) {
		s.Clip *= math.Exp(-min(max(move, -50), 50))
	}
	r.limit(s)
}

// turn moves clip and step size by two signs, -1, 0 or 1 each.
func (r ClipRule) turn(s *ClipState, clip, step float64) {
	s.Clip *= math.Exp(r.Rate * clip)
	s.Pace *= math.Exp(r.StepRate * step)
	r.limit(s)
}

// sign is -1, 0 or 1; of no number it is 0.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
