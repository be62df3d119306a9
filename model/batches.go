package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Batches draws the rows of every step, and names how, so that an accountant can
// refuse what does not fit.
type Batches struct {
	sampling event.Sampling
	rows     int
	size     int
	rate     float64
	family   rng.Family
	order    []int
	batch    []int
}

// NewBatches draws batches of size rows: Poisson batches have that size on
// average, and may be empty; the others have it always, but for the last batch of
// a shuffled epoch.
func NewBatches(sampling event.Sampling, rows, size int, seed uint64) (*Batches, error) {
	if rows < 1 || size < 1 || size > rows {
		return nil, fmt.Errorf("batches of %d rows from %d; allowed: 1 to all rows", size, rows)
	}
	switch sampling {
	case event.Poisson, event.WithoutReplacement, event.Shuffle, event.FullBatch:
	default:
		return nil, fmt.Errorf("sampling %q is not known; allowed: poisson, without-replacement, shuffle, full", sampling)
	}
	if sampling == event.FullBatch {
		size = rows
	}
	b := &Batches{
		sampling: sampling, rows: rows, size: size, rate: float64(size) / float64(rows),
		family: rng.NewFamily(seed, "batches"), order: make([]int, rows),
	}
	b.restart()
	return b, nil
}

func (b *Batches) restart() {
	for i := range b.order {
		b.order[i] = i
	}
}

// Size is the public batch size that sums are divided by, whatever was drawn.
func (b *Batches) Size() int { return b.size }

// PerEpoch is the number of steps that touch every row about once.
func (b *Batches) PerEpoch() int { return (b.rows + b.size - 1) / b.size }

// Event is steps of a mechanism under this sampling.
func (b *Batches) Event(of event.Event, steps int64) event.Event {
	s := event.Sampled{Sampling: b.sampling, Of: of}
	switch b.sampling {
	case event.Poisson:
		s.Rate = b.rate
	case event.FullBatch:
		return event.Repeated{Times: steps, Of: of}
	default:
		s.Batch, s.Examples = int64(b.size), int64(b.rows)
	}
	return event.Repeated{Times: steps, Of: s}
}

// Step is the batch of a step, valid until the next call. It depends on the step
// alone, so that a run can go on from any of them.
func (b *Batches) Step(step int) []int {
	switch b.sampling {
	case event.Poisson:
		return b.poisson(step)
	case event.WithoutReplacement:
		return b.withoutReplacement(step)
	case event.Shuffle:
		epoch, part := step/b.PerEpoch(), step%b.PerEpoch()
		b.restart()
		b.family.Stream(epoch, 0).Shuffle(b.order)
		return b.order[part*b.size : min((part+1)*b.size, b.rows)]
	}
	return b.order
}

// poisson takes every row with probability rate, by jumping over geometric gaps.
func (b *Batches) poisson(step int) []int {
	b.batch = b.batch[:0]
	s := b.family.Stream(step, 0)
	if b.rate >= 1 {
		return append(b.batch, b.order...)
	}
	perGap := math.Log1p(-b.rate)
	for i := -1; ; {
		gap := math.Floor(math.Log(1-s.Float64()) / perGap)
		if gap >= float64(b.rows-1-i) {
			return b.batch
		}
		i += 1 + int(gap)
		b.batch = append(b.batch, i)
	}
}

func (b *Batches) withoutReplacement(step int) []int {
	s := b.family.Stream(step, 0)
	b.restart()
	for i := range b.size {
		j := i + s.Below(b.rows-i)
		b.order[i], b.order[j] = b.order[j], b.order[i]
	}
	return b.order[:b.size]
}
