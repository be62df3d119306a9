package mech

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/pool"
)

// LaneSum adds clipped vectors that nobody holds one by one, as floats, in lanes
// that different goroutines may fill at the same time; lanes are added in their
// order, so the sum does not depend on who was faster. Rounding lets a float sum
// move further than its bound: it is for simulation only.
type LaneSum[F float32 | float64] struct {
	bound float64
	sum   *pool.OrderedSum[F]
	used  bool

	// Under SignalDirections vectors within the bound go to sum, and those beyond it,
	// scaled to length 1, to beyond: the clipped sum is sum + bound*beyond, and nothing
	// is added twice. Under SignalCount every lane counts.
	signal  ClipSignal
	beyond  *pool.OrderedSum[F]
	pointed []F // the sum of beyond, in its own memory, with noise once it is released
	counts  []laneCount
	watched bool
	atOnce  bool // see AtOnce
}

// addTo adds a vector to a total.
func addTo[F float32 | float64](part, total []F) { kernel.Axpy(1, part, total) }

// laneCount is what one lane counts of its vectors' norms.
type laneCount struct {
	inside, beyond int64
	norms          [NormBins]int64
	_              [64]byte // the next lane's lie on other cache lines
}

// NewLaneSum sums vectors of n coordinates that are clipped to bound.
func NewLaneSum[F float32 | float64](n, count int, bound float64) (*LaneSum[F], error) {
	if !(bound > 0) || math.IsInf(bound, 0) {
		return nil, fmt.Errorf("lane sum: bound %v must be positive and finite", bound)
	}
	if n < 0 || count < 1 {
		return nil, fmt.Errorf("lane sum: %d coordinates in %d lanes", n, count)
	}
	return &LaneSum[F]{bound: bound, sum: pool.NewOrderedSum(n, count, addTo[F]), counts: make([]laneCount, count)}, nil
}

// PrepareLanes is an empty sum of n coordinates for the next of the steps: the one that
// is kept from an earlier step, if it fits, or a new one.
func PrepareLanes[F float32 | float64](s *Steps, kept *LaneSum[F], n, count int) (*LaneSum[F], error) {
	if kept == nil || len(kept.counts) != count || kept.sum.Len() != n {
		var err error
		if kept, err = NewLaneSum[F](n, count, s.Clip()); err != nil {
			return nil, err
		}
	}
	kept.bound, kept.signal, kept.watched = s.Clip(), s.rule.Clipping.Signal, s.trace != nil
	if kept.signal == SignalDirections && kept.beyond == nil {
		kept.beyond = pool.NewOrderedSum(n, count, addTo[F])
	}
	kept.Reset()
	return kept, nil
}

// Bound is what the noise multiplier is relative to.
func (s *LaneSum[F]) Bound() float64 { return s.bound }

// InTurn says that so many goroutines fill the lanes in turn: the sum then needs memory for
// few more lanes than that.
func (s *LaneSum[F]) InTurn(workers int) {
	s.sum.InTurn(workers)
	if s.beyond != nil {
		s.beyond.InTurn(workers)
	}
}

// AtOnce says that one goroutine fills the lanes, in their order, and adds to each of them
// but the first no more than once, every value of that as one number: added to the lanes
// before, it is rounded as a lane of its own would be, and needs none.
func (s *LaneSum[F]) AtOnce(are bool) { s.atOnce = are }

// into is where a lane of one of the sums is added up.
func (s *LaneSum[F]) into(sum *pool.OrderedSum[F], lane int) []F {
	if s.atOnce && lane > 0 {
		return sum.Total()
	}
	return sum.Part(lane)
}

// Lanes is how many there are.
func (s *LaneSum[F]) Lanes() int { return len(s.counts) }

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
	clipFactors(factors, norms, s.bound)
	addTo(s.into(s.sum, lane), factors[:len(norms)])
	return nil
}

// Complete says that nothing more will be added to a lane. Whoever does not say it needs
// more memory, and nothing else.
func (s *LaneSum[F]) Complete(lane int) {
	s.sum.Complete(lane)
	if s.signal == SignalDirections {
		s.beyond.Complete(lane)
	}
}

// addParted adds vectors within the bound to one sum and the directions of those beyond
// it to the other.
func (s *LaneSum[F]) addParted(lane int, norms []float64, factors []F, addTo func(dst, factors []F)) {
	if withinFactors(factors, norms, s.bound) > 0 {
		addTo(s.into(s.sum, lane), factors)
	}
	if beyondFactors(factors, norms, s.bound) > 0 {
		addTo(s.into(s.beyond, lane), factors)
	}
}

// clipFactors are what vectors of these norms are clipped by; 0: it is not finite.
func clipFactors[F float32 | float64](factors []F, norms []float64, bound float64) {
	for i, norm := range norms {
		switch {
		case !(norm >= 0) || math.IsInf(norm, 0):
			factors[i] = 0
		case norm > bound:
			factors[i] = F(bound / norm)
		default:
			factors[i] = 1
		}
	}
}

// withinFactors are 1 for vectors within the bound, and says how many they are.
func withinFactors[F float32 | float64](factors []F, norms []float64, bound float64) (within int) {
	for i, norm := range norms {
		if factors[i] = 0; norm >= 0 && norm <= bound {
			factors[i] = 1
			within++
		}
	}
	return within
}

// beyondFactors scale vectors beyond the bound to length 1, and says how many they are.
func beyondFactors[F float32 | float64](factors []F, norms []float64, bound float64) (beyond int) {
	for i, norm := range norms {
		factors[i] = 0
		if norm > bound && !math.IsInf(norm, 0) {
			factors[i] = F(1 / norm)
			beyond++
		}
	}
	return beyond
}

// Reset empties the sum for another release.
func (s *LaneSum[F]) Reset() {
	s.sum.Reset()
	if s.signal == SignalDirections {
		s.beyond.Reset()
	}
	if s.watched || s.signal == SignalCount {
		clear(s.counts)
	}
	s.used = false
}

// Room is memory of the sum's own that it can be released into, for whoever reads the
// release before Reset. Nothing may be added any more.
func (s *LaneSum[F]) Room() []F { return s.sum.Total() }

// Unprotected sets dst to the sum without noise: for tests and for training without
// privacy. It counts as the sum's release.
func (s *LaneSum[F]) Unprotected(dst []F) error {
	err := s.parts(dst)
	if err == nil && s.signal == SignalDirections {
		kernel.Axpy(F(s.bound), s.pointed, dst)
	}
	return err
}

// parts sets dst to the sum, under SignalDirections only of the vectors within the bound,
// and pointed to the directions of the others. It counts as the sum's release.
func (s *LaneSum[F]) parts(dst []F) error {
	switch {
	case s.used:
		return fmt.Errorf("lane sum: it was released already; Reset it first")
	case len(dst) != s.sum.Len():
		return fmt.Errorf("lane sum: a sum of %d coordinates does not fit a destination of %d", s.sum.Len(), len(dst))
	}
	s.used = true
	copy(dst, s.sum.Total())
	if s.signal == SignalDirections {
		s.pointed = s.beyond.Total()
	}
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
