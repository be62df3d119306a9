package mech

import (
	"fmt"
	"math"
)

// Vectors that nobody holds one by one are added to a StepSum as whole numbers of lattice
// steps: whoever has them knows their norms, this package says what each is multiplied by, and
// every product is rounded toward zero before it is added (docs/proofs/whole-sums.md). Whole
// numbers below 2^53 are exact in float64, so lanes of float64 are integers, and neither the
// order of additions nor the number of goroutines changes a sum.

// wholeLane is what one goroutine adds up, until it is added to the sum: what float64 holds
// exactly, and what there was before that.
type wholeLane struct {
	sum    []float64
	terms  int64   // in it
	before []int64 // nil: nothing
	all    int64   // terms in both
}

// stepLane is a goroutine's part of a StepSum.
type stepLane struct {
	gradients, second wholeLane
	inside, beyond    int64 // vectors, for SignalCount
}

const (
	// mostWholeSteps is how many lattice steps a term may be long: 2048 terms, more than
	// whoever adds vectors adds in one call, then stay below 2^53.
	mostWholeSteps = 1 << 42
	// normSlack is what norms are enlarged by: more than they, and what follows from them,
	// can be rounded down by.
	normSlack = 1 + 0x1p-24
	// mostLength is how many coordinates a vector may have for that.
	mostLength = 1 << 27
)

// Weighted says whether vectors can be added by their norms. It follows from public numbers
// alone: noise, clip and the number of coordinates.
func (s *StepSum) Weighted() bool {
	return len(s.gradients.sum) <= mostLength && isWhole(s.gradients) && (s.signal != SignalDirections || isWhole(s.second))
}

func isWhole(s *ClippedSum) bool {
	return s.bound >= 0x1p-400 && s.bound <= 0x1p400 && s.lattice.Step >= 0x1p-400 && s.bound/s.lattice.Step+1 <= mostWholeSteps
}

// Lanes makes room for so many goroutines.
func (s *StepSum) Lanes(n int) {
	for len(s.lanes) < n {
		s.lanes = append(s.lanes, stepLane{})
	}
}

// AddWeighted adds vectors to a lane, of which the caller has the norms, good to one part in
// 2^26. From these it derives weights, in lattice steps; addTo must add to dst every vector times
// its weight, each value rounded toward zero, and leave out those of weight 0. A vector whose
// norm is not finite gets that, by a rule of this vector alone. Under SignalDirections addTo is
// called twice, for two sums. One goroutine at a time may add to a lane, at most 2048 vectors in a
// call.
func (s *StepSum) AddWeighted(lane int, norms, weights []float64, addTo func(dst, weights []float64)) error {
	if s.gradients.wasReleased {
		return fmt.Errorf("step sum: it was released; prepare it first")
	}
	if !s.Weighted() {
		return fmt.Errorf("step sum: %d values that are clipped to %v on a lattice of %v are added one by one", len(s.gradients.sum), s.clip, s.gradients.lattice.Step)
	}
	l, weights := &s.lanes[lane], weights[:len(norms)]
	clipWeights(weights, norms, s.gradients.bound, s.gradients.lattice.Step)
	if err := l.gradients.add(s.gradients, weights, addTo); err != nil {
		return err
	}
	switch s.signal {
	case SignalCount:
		for _, norm := range norms {
			switch {
			case !(norm >= 0) || math.IsInf(norm, 0):
			case norm > s.clip:
				l.beyond++
			default:
				l.inside++
			}
		}
	case SignalDirections:
		if beyondWeights(weights, norms, s.clip, s.second.lattice.Step) > 0 {
			return l.second.add(s.second, weights, addTo)
		}
	}
	return nil
}

// add has addTo add to the lane, which first makes room.
func (l *wholeLane) add(of *ClippedSum, weights []float64, addTo func(dst, weights []float64)) error {
	most := int64(maxWholeSum / (of.clip/of.lattice.Step + 1))
	if int64(len(weights)) > most {
		return fmt.Errorf("step sum: %d vectors at once; allowed: %d", len(weights), most)
	}
	if len(l.sum) != len(of.sum) {
		l.sum, l.before = make([]float64, len(of.sum)), nil
	}
	if l.terms+int64(len(weights)) > most {
		if l.before == nil {
			l.before = make([]int64, len(l.sum))
		}
		l.moveTo(l.before)
	}
	if l.all+int64(len(weights)) > of.mostTerms {
		return fmt.Errorf("step sum: %d terms are all that an int64 holds safely; take a coarser lattice", of.mostTerms)
	}
	l.terms, l.all = l.terms+int64(len(weights)), l.all+int64(len(weights))
	addTo(l.sum, weights)
	return nil
}

// maxWholeSum is up to where whole numbers, and those beside them, are exact in float64.
const maxWholeSum = 1 << 53

// moveTo adds what float64 holds to integers, and empties it.
func (l *wholeLane) moveTo(sum []int64) {
	for i, v := range l.sum {
		sum[i] += int64(v)
	}
	clear(l.sum)
	l.terms = 0
}

// fold adds the lane to its sum, and empties it.
func (l *wholeLane) fold(to *ClippedSum) error {
	if l.all == 0 {
		return nil
	}
	if to.terms+l.all > to.mostTerms {
		return fmt.Errorf("step sum: %d terms are all that an int64 holds safely; take a coarser lattice", to.mostTerms)
	}
	to.terms += l.all
	l.moveTo(to.sum)
	for i, v := range l.before {
		to.sum[i] += v
	}
	clear(l.before)
	l.all = 0
	return nil
}

// settle adds all lanes to the sums.
func (s *StepSum) settle() error {
	for i := range s.lanes {
		l := &s.lanes[i]
		if err := l.gradients.fold(s.gradients); err != nil {
			return err
		}
		if s.second == nil {
			continue
		}
		if err := l.second.fold(s.second); err != nil {
			return err
		}
		if err := s.second.addHalves(l.inside, l.beyond); err != nil {
			return err
		}
		l.inside, l.beyond = 0, 0
	}
	return nil
}

// empty forgets what lanes hold.
func (s *StepSum) empty() {
	for i := range s.lanes {
		l := &s.lanes[i]
		for _, w := range []*wholeLane{&l.gradients, &l.second} {
			if w.all > 0 {
				clear(w.sum)
				clear(w.before)
				w.terms, w.all = 0, 0
			}
		}
		l.inside, l.beyond = 0, 0
	}
}

// addHalves adds 1/2 for every vector within the clip and -1/2 for every one beyond it, as
// ClipSignal.Of says it of one: as a lattice has a half, which its step, a power of two far
// below it, divides.
func (s *ClippedSum) addHalves(inside, beyond int64) error {
	if inside+beyond == 0 {
		return nil
	}
	if s.terms+inside+beyond > s.mostTerms {
		return fmt.Errorf("clipped sum: %d terms are all that an int64 holds safely; take a coarser lattice", s.mostTerms)
	}
	if err := s.lattice.Truncate(s.term, []float64{0.5}); err != nil {
		return fmt.Errorf("clipped sum: %w", err)
	}
	s.lattice.shrink(s.term, s.clip)
	s.sum[0] += (inside - beyond) * s.term[0]
	s.terms += inside + beyond
	return nil
}

// clipWeights are what vectors of these norms are multiplied by to be no longer than the bound,
// in steps; 0: the norm is not finite.
func clipWeights(weights, norms []float64, bound, step float64) {
	for i, norm := range norms {
		switch long := norm * normSlack; {
		case !(norm >= 0) || math.IsInf(norm, 0):
			weights[i] = 0
		case long <= bound:
			weights[i] = 1 / step
		default:
			weights[i] = bound / long / step
		}
	}
}

// beyondWeights scale vectors beyond the clip to length 1, in steps, and says how many they are.
func beyondWeights(weights, norms []float64, clip, step float64) (beyond int) {
	for i, norm := range norms {
		weights[i] = 0
		if norm > clip && !math.IsInf(norm, 0) {
			weights[i] = 1 / (norm * normSlack) / step
			beyond++
		}
	}
	return beyond
}
