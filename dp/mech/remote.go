package mech

import (
	"fmt"
	"math"
)

// Remote is where a step's sums lie if they are not in this process: a device. It adds, and
// draws, what this package tells it to; it decides nothing. There are two sums, of float32
// values, empty when a step begins: 0 is the gradients', and 1 that of the directions of
// those beyond the clip, under SignalDirections.
type Remote interface {
	// Add adds the vectors at hand times factors to a sum, leaving out those of factor 0.
	Add(sum int, factors []float32) error
	// Ready says, before anything is added, which noise the step will end with, so that it
	// can be drawn meanwhile: nothing depends on it until Noise is told the same.
	Ready(n Normals) error
	// Noise adds normal values to sum 0.
	Noise(n Normals) error
	// Turn adds bound times sum 1 to sum 0, then noise; sum 0 and, as it was, sum 1 are then
	// what the next step is compared with. Taken is the noise of the last step, for products
	// without it; nil: nobody asks.
	Turn(bound float64, noise Normals, last bool, taken *Normals) (Products, error)
	// Last is what was released last; SetLast has it be that of an earlier device.
	Last(gradient, direction []float32) error
	SetLast(gradient, direction []float32) error
}

// Normals are float noise as somebody else is to draw it: the values that follow from a key,
// times a deviation, as drawByKey and kernel.Normals32 make them. Few values are given.
type Normals struct {
	Key       [32]byte
	Deviation float64
	Values    []float32 // nil: by the key
}

// Products are of a step's gradient with the last release's direction and gradient, and
// with itself; and the first two without any noise.
type Products struct{ Direction, Gradient, Square, BareDirection, BareGradient float64 }

// RemoteSum is a LaneSum that lies elsewhere: for simulation only.
type RemoteSum struct {
	at      Remote
	n       int
	bound   float64
	signal  ClipSignal
	noise   *Normals // that ends the step; nil: it is not drawn yet
	count   laneCount
	watched bool
	used    bool
}

// NewRemoteSum sums vectors of n coordinates that are clipped to bound.
func NewRemoteSum(at Remote, n int, bound float64) (*RemoteSum, error) {
	if !(bound > 0) || math.IsInf(bound, 0) {
		return nil, fmt.Errorf("remote sum: bound %v must be positive and finite", bound)
	}
	return &RemoteSum{at: at, n: n, bound: bound}, nil
}

// Remotely says whether sums of n coordinates can lie elsewhere: float sums, and, where a
// clip rule compares them, of many values.
func (s *Steps) Remotely(n int) bool {
	return !s.Exact() && (s.rule.Clipping.Signal != SignalDirections || n >= manyWords)
}

// RemoteSum is an empty sum of n coordinates for the next of the steps.
func (s *Steps) RemoteSum(at Remote, n int) (*RemoteSum, error) {
	if !s.Remotely(n) {
		return nil, fmt.Errorf("steps: sums of %d values with this noise and clip rule are made in this process alone", n)
	}
	sum, err := NewRemoteSum(at, n, s.Clip())
	if err != nil {
		return nil, err
	}
	sum.signal, sum.watched = s.rule.Clipping.Signal, s.trace != nil
	if s.begun && sum.signal != SignalDirections && n >= manyWords {
		noise := s.ordered(sum)
		sum.noise = &noise
		err = at.Ready(noise)
	}
	return sum, err
}

// AddWeighted adds the vectors at hand, of these norms: see LaneSum.AddWeighted. Factors is
// room for as many.
func (s *RemoteSum) AddWeighted(norms []float64, factors []float32) error {
	if s.used {
		return fmt.Errorf("remote sum: it was released")
	}
	if s.watched || s.signal == SignalCount {
		s.count.note(norms, s.bound)
	}
	factors = factors[:len(norms)]
	if s.signal != SignalDirections {
		clipFactors(factors, norms, s.bound)
		return s.at.Add(0, factors)
	}
	if withinFactors(factors, norms, s.bound) > 0 {
		if err := s.at.Add(0, factors); err != nil {
			return err
		}
	}
	if beyondFactors(factors, norms, s.bound) > 0 {
		return s.at.Add(1, factors)
	}
	return nil
}

// SimulateRemote ends a step whose sum lies elsewhere, as SimulateStep does: sum 0 there is
// then the noised one.
func SimulateRemote(s *Steps, sum *RemoteSum) error {
	if err := s.end(sum.bound, sum.signal); err != nil {
		return err
	}
	if sum.used {
		return fmt.Errorf("remote sum: it was released already")
	}
	sum.used = true
	counts := []laneCount{sum.count}
	s.watch(counts)
	rule := &s.rule.Clipping
	var err error
	if rule.Signal == SignalDirections {
		err = s.turnRemotely(sum)
	} else {
		if sum.noise == nil {
			noise := s.ordered(sum)
			sum.noise = &noise
		}
		err = sum.at.Noise(*sum.noise)
	}
	if err != nil {
		return err
	}
	if rule.Signal == SignalCount {
		inside := []float64{float64(sum.count.inside-sum.count.beyond) / 2}
		addNormals(inside, s.second.Multiplier/2, s.from.Keyed)
		rule.follow(&s.state, inside[0], s.rule.Batch)
	}
	rule.fall(&s.state)
	return nil
}

// ordered is a sum's noise for somebody else to draw: few values are drawn here.
func (s *Steps) ordered(sum *RemoteSum) Normals {
	n := newNormals(s.noise.Multiplier*sum.bound, s.from.Keyed, sum.n)
	if n.key != nil {
		return Normals{Key: *n.key, Deviation: n.deviation}
	}
	values := make([]float32, sum.n)
	addFrom(n, values)
	return Normals{Deviation: n.deviation, Values: values}
}

// turnRemotely is simulateDirections, of sums that lie elsewhere.
func (s *Steps) turnRemotely(sum *RemoteSum) error {
	g := &s.signs
	if g.away == nil {
		if g.awayLast = len(g.released.gradient) == sum.n && len(g.released.direction) == sum.n; g.awayLast {
			if err := sum.at.SetLast(g.released.gradient, g.released.direction); err != nil {
				return err
			}
		}
		g.away, g.awayLength = sum.at, sum.n
	}
	released := replacement{ok: g.awayLast}
	s.drawLate(&released)
	noise := s.ordered(sum)
	bare := bareProducts{}
	var taken *Normals
	if s.trace != nil {
		if was := g.bare; was.key != nil && g.awayLast {
			taken, bare.ok = &Normals{Key: *was.key, Deviation: -was.deviation}, true
		}
		g.bare = bareGradient{g.bare.values[:0], &noise.Key, noise.Deviation}
	}
	p, err := sum.at.Turn(sum.bound, noise, g.awayLast, taken)
	if err != nil {
		return err
	}
	g.awayLast, g.undrawn = true, s.second.Multiplier
	released.clip, released.step, released.squares = p.Direction, p.Gradient, p.Square
	bare.clip, bare.step = p.BareDirection, p.BareGradient
	s.turnBy(&released, &bare)
	return nil
}

// Home brings home what steps elsewhere have left there: before Save, and before there is
// nobody any more to ask.
func (s *Steps) Home() error {
	g := &s.signs
	if g.away == nil {
		return nil
	}
	at, n := g.away, g.awayLength
	g.away = nil
	to := g.release(n).to
	return at.Last(to.gradient, to.direction)
}
