package fl

import (
	"slices"

	"github.com/coterie-fl/coterie/internal/rng"
)

// Sampler draws the clients of a round, in ascending order.
type Sampler struct {
	family   rng.Family
	clients  int
	take     int
	balanced bool
	stream   rng.Stream
	order    []int
	picked   []int
	swaps    []int
	marked   []bool
	State    SamplerState
}

// SamplerState is what balanced sampling must remember between rounds.
type SamplerState struct {
	Epoch int   // shuffles made so far
	Left  []int // clients of the last shuffle that were not yet asked
}

// NewSampler takes so many of the clients in every round. Samplers of different
// purposes are independent.
func NewSampler(seed uint64, purpose string, clients, take int, balanced bool) *Sampler {
	s := &Sampler{
		family: rng.NewFamily(seed, purpose), clients: clients, take: take, balanced: balanced,
		order: make([]int, clients), picked: make([]int, 0, take), swaps: make([]int, take), marked: make([]bool, clients),
	}
	for i := range s.order {
		s.order[i] = i
	}
	return s
}

// Sample draws the clients of a round. The result is valid until the next call.
func (s *Sampler) Sample(round int) []int {
	switch {
	case s.take == s.clients:
		return s.order // everybody, every time
	case s.balanced:
		s.drawBalanced()
	default:
		s.drawUniform(round)
	}
	s.sort()
	return s.picked
}

// sort puts the picked clients in order: by marking them when they are many, for
// a round must not be slower than its training.
func (s *Sampler) sort() {
	if len(s.picked)*16 < s.clients {
		slices.Sort(s.picked)
		return
	}
	for _, c := range s.picked {
		s.marked[c] = true
	}
	s.picked = s.picked[:0]
	for c, m := range s.marked {
		if m {
			s.picked = append(s.picked, c)
			s.marked[c] = false
		}
	}
}

// drawUniform is the front of a Fisher-Yates shuffle, undone afterwards so that
// a round's draw depends on the round alone.
func (s *Sampler) drawUniform(round int) {
	s.stream.Key(&s.family, round, 0)
	for i := range s.take {
		j := i + s.stream.Below(s.clients-i)
		s.order[i], s.order[j] = s.order[j], s.order[i]
		s.swaps[i] = j
	}
	s.picked = append(s.picked[:0], s.order[:s.take]...)
	for i := s.take - 1; i >= 0; i-- {
		j := s.swaps[i]
		s.order[i], s.order[j] = s.order[j], s.order[i]
	}
}

// drawBalanced takes the next clients of a shuffle of all; when it ends within a
// round, the next shuffle fills up with clients that are not yet in the round.
func (s *Sampler) drawBalanced() {
	take := min(s.take, len(s.State.Left))
	s.picked = append(s.picked[:0], s.State.Left[:take]...)
	s.State.Left = s.State.Left[take:]
	if len(s.picked) == s.take {
		return
	}
	s.stream.Key(&s.family, s.State.Epoch, 1)
	s.State.Epoch++
	fresh := slices.Clone(s.order)
	s.stream.Shuffle(fresh)
	early := s.picked[:take:take]
	s.State.Left = fresh[:0]
	for _, c := range fresh {
		if len(s.picked) < s.take && !slices.Contains(early, c) {
			s.picked = append(s.picked, c)
		} else {
			s.State.Left = append(s.State.Left, c)
		}
	}
}
