package mech

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/coterie-fl/coterie/dp/event"
)

// Sampler draws batches of examples as a sampling says, from entropy that must be
// as secret as the noise: amplification holds only against those who do not know
// who is in a batch. It is not safe for concurrent use.
type Sampler struct {
	sampling event.Sampling
	left     uint64 // Poisson: see gap
	always   bool   // Poisson of rate 1
	batch    int
	entropy  *Entropy
	index    []int
	used     int // shuffle: examples of this epoch that were given out
	ahead    struct {
		done  chan error // nil: nothing is drawn ahead
		size  int
		index []int
	}
}

// gapSteps is how finely -ln(1-rate) is cut: 2^58 steps keep every rate above 1e-15
// to better than a hundredth, and the sums of gap within 128 bits.
const (
	gapBits  = 58
	gapSteps = 1 << gapBits
)

// Open starts drawing. Rate serves Poisson, batch the other samplings.
func (s *Sampler) Open(sampling event.Sampling, rate float64, batch int, e *Entropy) error {
	s.Settle()
	switch sampling {
	case event.Poisson:
		if !(rate >= 0 && rate <= 1) {
			return fmt.Errorf("sampler: a rate of %v; allowed: 0 to 1", rate)
		}
		s.always = rate == 1
		// Rounded down, so that no example is in a batch more often than is accounted.
		s.left = uint64(-math.Log1p(-min(rate, 1-0x1p-53)) * (1 - 0x1p-50) * gapSteps)
	case event.FullBatch:
		batch = 0 // everybody
	case event.WithoutReplacement, event.Shuffle:
		if batch < 1 {
			return fmt.Errorf("sampler: batches of %d; allowed: 1 or more", batch)
		}
	default:
		return fmt.Errorf("sampler: sampling %q; allowed: %s, %s, %s, %s", sampling, event.Poisson, event.WithoutReplacement, event.Shuffle, event.FullBatch)
	}
	if e == nil {
		return fmt.Errorf("sampler: no entropy to draw batches from")
	}
	s.sampling, s.batch, s.entropy, s.used = sampling, batch, e, math.MaxInt
	return nil
}

// Batch draws from size examples. The result is valid until the next call. A Poisson
// batch may be empty and takes time in proportion to itself, not to size.
func (s *Sampler) Batch(size int) ([]int, error) {
	if s.sampling != event.Poisson && size < s.batch {
		return nil, fmt.Errorf("sampler: batches of %d from %d examples", s.batch, size)
	}
	switch s.sampling {
	case event.Poisson:
		if s.ahead.done != nil {
			return s.drawnAhead(size)
		}
		var err error
		s.index, err = s.poisson(s.index[:0], size)
		return s.index, err
	case event.FullBatch:
		s.inOrder(size)
		return s.index, nil
	case event.WithoutReplacement:
		s.inOrder(size)
		for i := range s.batch {
			j, err := s.entropy.uniform(uint64(size - i))
			if err != nil {
				return nil, err
			}
			s.swap(i, i+int(j))
		}
		return s.index[:s.batch], nil
	case event.Shuffle:
		if s.used > size-s.batch { // what is left of an epoch is dropped
			if err := s.shuffle(size); err != nil {
				return nil, err
			}
		}
		s.used += s.batch
		return s.index[s.used-s.batch : s.used], nil
	}
	return nil, fmt.Errorf("sampler: it was not opened")
}

func (s *Sampler) swap(i, j int) { s.index[i], s.index[j] = s.index[j], s.index[i] }

func (s *Sampler) inOrder(size int) {
	s.index = s.index[:0]
	for i := range size {
		s.index = append(s.index, i)
	}
}

func (s *Sampler) shuffle(size int) error {
	s.inOrder(size)
	for i := size - 1; i > 0; i-- {
		j, err := s.entropy.uniform(uint64(i + 1))
		if err != nil {
			return err
		}
		s.swap(i, int(j))
	}
	s.used = 0
	return nil
}

// Ahead has the batch that the next Batch gives, from as many examples, drawn meanwhile by
// another goroutine, where it takes long: a Poisson one. Until then, or Settle, nobody else
// may use the sampler's entropy.
func (s *Sampler) Ahead(size int) {
	if s.sampling != event.Poisson || s.ahead.done != nil {
		return
	}
	done := make(chan error, 1)
	s.ahead.done, s.ahead.size = done, size
	go func() {
		var err error
		s.ahead.index, err = s.poisson(s.ahead.index[:0], size)
		done <- err
	}()
}

// Settle waits until nothing is drawn ahead any more. What was is lost: nobody asks for it.
func (s *Sampler) Settle() {
	if s.ahead.done != nil {
		<-s.ahead.done
		s.ahead.done = nil
	}
}

// drawnAhead is the batch that Ahead had drawn.
func (s *Sampler) drawnAhead(size int) ([]int, error) {
	err := <-s.ahead.done
	s.ahead.done = nil
	if err == nil && size != s.ahead.size {
		err = fmt.Errorf("sampler: a batch of %d examples, drawn ahead of %d", size, s.ahead.size)
	}
	if err != nil {
		return nil, err
	}
	s.index, s.ahead.index = s.ahead.index, s.index
	return s.index, nil
}

// poisson takes every example independently by jumping over those that it leaves.
func (s *Sampler) poisson(to []int, size int) ([]int, error) {
	if s.always {
		for i := range size {
			to = append(to, i)
		}
		return to, nil
	}
	for next := uint64(0); ; next++ {
		gap, err := s.gap()
		if err != nil {
			return nil, err
		}
		if gap >= uint64(size)-next {
			return to, nil
		}
		next += gap
		to = append(to, int(next))
	}
}

// gap is how many examples are left out before the next one: at least k with
// probability exp(-k*left/gapSteps), exactly. An integer x with P(x) ~ exp(-x/gapSteps)
// is drawn as a remainder and a number of wraps (Canonne, Kamath and Steinke 2020,
// algorithm 2) and divided by left.
func (s *Sampler) gap() (uint64, error) {
	if s.left == 0 {
		return math.MaxUint64, nil
	}
	e := s.entropy
	for range maxTries {
		x, err := e.uniform(gapSteps)
		if err != nil {
			return 0, err
		}
		if ok, err := e.bernoulliExp(exponent{num: x, den: gapSteps, fixed: x >> (gapBits - exponentBits)}); err != nil {
			return 0, err
		} else if !ok {
			continue
		}
		wraps, err := e.geometric()
		if err != nil {
			return 0, err
		}
		hi, lo := bits.Mul64(wraps, gapSteps)
		lo, carry := bits.Add64(lo, x, 0)
		if hi += carry; hi >= s.left {
			return math.MaxUint64, nil // beyond every dataset
		}
		gap, _ := bits.Div64(hi, lo, s.left)
		return gap, nil
	}
	return 0, errBrokenSource
}
