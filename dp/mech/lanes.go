package mech

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// LaneSum adds clipped vectors that nobody holds one by one, as floats, in lanes
// that different goroutines may fill at the same time; lanes are added in their
// order, so the sum does not depend on who was faster. Rounding lets a float sum
// move further than its bound: it is for simulation only.
type LaneSum[F float32 | float64] struct {
	bound float64
	lanes [][]F
	dirty []bool // lanes that something was added to
	used  bool

	// Under SignalDirections vectors within the bound go to lanes, and those beyond it,
	// scaled to length 1, to beyond: the clipped sum is lanes + bound*beyond, and nothing
	// is added twice. Under SignalCount every lane counts.
	signal  ClipSignal
	beyond  [][]F
	spoiled []bool // lanes of beyond that something was added to
	pointed []F    // the sum of beyond, with noise once it is released
	counts  []laneCount
	watched bool
}

// laneCount is what one lane counts of its vectors' norms.
type laneCount struct {
	inside, beyond int64
	norms          [NormBins]int64
	_              [64]byte // the next lane's lie on other cache lines
}

// NewLaneSum sums vectors of n coordinates that are clipped to bound.
func NewLaneSum[F float32 | float64](n, lanes int, bound float64) (*LaneSum[F], error) {
	if !(bound > 0) || math.IsInf(bound, 0) {
		return nil, fmt.Errorf("lane sum: bound %v must be positive and finite", bound)
	}
	if n < 0 || lanes < 1 {
		return nil, fmt.Errorf("lane sum: %d coordinates in %d lanes", n, lanes)
	}
	s := &LaneSum[F]{bound: bound, lanes: make([][]F, lanes), dirty: make([]bool, lanes), counts: make([]laneCount, lanes)}
	for i := range s.lanes {
		s.lanes[i] = make([]F, n)
	}
	return s, nil
}

// PrepareLanes is an empty sum of n coordinates for the next of the steps: the one that
// is kept from an earlier step, if it fits, or a new one.
func PrepareLanes[F float32 | float64](s *Steps, kept *LaneSum[F], n, lanes int) (*LaneSum[F], error) {
	if kept == nil || len(kept.lanes) != lanes || len(kept.lanes[0]) != n {
		var err error
		if kept, err = NewLaneSum[F](n, lanes, s.Clip()); err != nil {
			return nil, err
		}
	}
	kept.bound, kept.signal, kept.watched = s.Clip(), s.rule.Clipping.Signal, s.trace != nil
	if kept.signal == SignalDirections && kept.beyond == nil {
		kept.beyond, kept.spoiled, kept.pointed = make([][]F, lanes), make([]bool, lanes), make([]F, n)
	}
	kept.Reset()
	return kept, nil
}

// Bound is what the noise multiplier is relative to.
func (s *LaneSum[F]) Bound() float64 { return s.bound }

// AddWeighted adds a batch of vectors to a lane: from their norms it derives the
// factors that clip them, into factors, and addTo must add the vectors, times
// these factors, to dst. A vector whose norm is not finite gets the factor 0, by a
// rule of this vector alone: addTo must leave it out, not multiply, for 0 times
// infinity is not a number. Under SignalDirections addTo is called for two sums, with
// factor 0 for what belongs to the other.
func (s *LaneSum[F]) AddWeighted(lane int, norms []float64, factors []F, addTo func(dst, factors []F)) error {
	if s.used {
		return fmt.Errorf("lane sum: it was released; Reset it first")
	}
	if s.watched || s.signal == SignalCount {
		s.counts[lane].note(norms, s.bound)
	}
	if s.signal == SignalDirections {
		s.addParted(lane, norms, factors[:len(norms)], addTo)
		return nil
	}
	for i, norm := range norms {
		switch {
		case !(norm >= 0) || math.IsInf(norm, 0):
			factors[i] = 0
		case norm > s.bound:
			factors[i] = F(s.bound / norm)
		default:
			factors[i] = 1
		}
	}
	s.dirty[lane] = true
	addTo(s.lanes[lane], factors[:len(norms)])
	return nil
}

// addParted adds vectors within the bound to one sum and the directions of those beyond
// it to the other.
func (s *LaneSum[F]) addParted(lane int, norms []float64, factors []F, addTo func(dst, factors []F)) {
	within, beyond := 0, 0
	for i, norm := range norms {
		if factors[i] = 0; norm >= 0 && norm <= s.bound {
			factors[i] = 1
			within++
		}
	}
	if within > 0 {
		s.dirty[lane] = true
		addTo(s.lanes[lane], factors)
	}
	for i, norm := range norms {
		factors[i] = 0
		if norm > s.bound && !math.IsInf(norm, 0) {
			factors[i] = F(1 / norm)
			beyond++
		}
	}
	if beyond > 0 {
		if s.beyond[lane] == nil { // lanes that small batches never reach need none
			s.beyond[lane] = make([]F, len(s.lanes[lane]))
		}
		s.spoiled[lane] = true
		addTo(s.beyond[lane], factors)
	}
}

// Reset empties the sum for another release.
func (s *LaneSum[F]) Reset() {
	for i, lane := range s.lanes {
		if s.dirty[i] {
			clear(lane)
			s.dirty[i] = false
		}
	}
	for i, lane := range s.beyond {
		if s.spoiled[i] {
			clear(lane)
			s.spoiled[i] = false
		}
	}
	if s.watched || s.signal == SignalCount {
		clear(s.counts)
	}
	s.used = false
}

// Unprotected sets dst to the sum without noise: for tests and for training without
// privacy. It counts as the sum's release.
func (s *LaneSum[F]) Unprotected(dst []F) error {
	switch {
	case s.used:
		return fmt.Errorf("lane sum: it was released already; Reset it first")
	case len(dst) != len(s.lanes[0]):
		return fmt.Errorf("lane sum: a sum of %d coordinates does not fit a destination of %d", len(s.lanes[0]), len(dst))
	}
	s.used = true
	copy(dst, s.lanes[0])
	for i, lane := range s.lanes[1:] {
		if s.dirty[i+1] {
			kernel.Axpy(1, lane, dst)
		}
	}
	if s.signal != SignalDirections {
		return nil
	}
	clear(s.pointed)
	for i, lane := range s.beyond {
		if s.spoiled[i] {
			kernel.Axpy(1, lane, s.pointed)
		}
	}
	kernel.Axpy(F(s.bound), s.pointed, dst)
	return nil
}

// inside is the number of vectors within the bound less those beyond it, halved.
func (s *LaneSum[F]) inside() float64 {
	var n int64
	for i := range s.counts {
		n += s.counts[i].inside - s.counts[i].beyond
	}
	return float64(n) / 2
}

// SimulateLanes sets dst to the sum with float noise from a keyed source. The
// event is what a release would cost; floats themselves are not safe to release.
func SimulateLanes[F float32 | float64](g Gaussian, dst []F, s *LaneSum[F], terms Terms, src rand.Source) (event.Release, error) {
	if err := g.check(); err != nil {
		return event.Release{}, err
	}
	release, err := terms.release(g.Event(), false)
	if err != nil {
		return event.Release{}, fmt.Errorf("gaussian: %w", err)
	}
	if err := s.Unprotected(dst); err != nil {
		return event.Release{}, fmt.Errorf("gaussian: %w", err)
	}
	addNormals(dst, g.Multiplier*s.bound, src)
	return release, nil
}
