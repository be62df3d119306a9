package fl

import (
	"math/bits"
	"slices"

	"github.com/coterie-fl/coterie/internal/rng"
)

// manyClients is beyond how many clients a sampler keeps no list of them: uniform draws
// are the same with and without one, and balanced ones go by a permutation that is
// computed instead of shuffled.
const manyClients = 100_000

// permutation is an order of 0..n-1 that is computed place by place: a Feistel network on
// the bits of the next even power of two, walked on until it falls below n. Its memory is
// its keys.
type permutation struct {
	n    uint64
	half uint // bits of one side
	keys [8]uint64
}

func newPermutation(n int, s *rng.Stream) permutation {
	p := permutation{n: uint64(n), half: uint(bits.Len64(uint64(n-1))+1) / 2}
	p.half = max(1, p.half)
	for i := range p.keys {
		p.keys[i] = s.Uint64()
	}
	return p
}

// at is who stands at a place.
func (p *permutation) at(place int) int {
	mask := uint64(1)<<p.half - 1
	x := uint64(place)
	for {
		left, right := x>>p.half, x&mask
		for _, key := range p.keys {
			left, right = right, left^mixed(right^key)&mask
		}
		if x = left<<p.half | right; x < p.n {
			return int(x)
		}
	}
}

// mixed has every bit of x decide about every bit of the result (the finaliser of
// SplitMix64).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// drawSparse is drawUniform without a list of all clients: what the shuffle would have
// moved is remembered instead.
func (s *Sampler) drawSparse(round int) {
	s.stream.Key(&s.family, round, 0)
	clear(s.moved)
	at := func(place int) int {
		if c, ok := s.moved[place]; ok {
			return c
		}
		return place
	}
	s.picked = s.picked[:0]
	for i := range s.take {
		j := i + s.stream.Below(s.clients-i)
		s.picked = append(s.picked, at(j))
		s.moved[j] = at(i)
	}
}

// drawPermuted is drawBalanced by a permutation: Left holds those alone whom the epoch
// has passed over, for they were in the round already that it began in.
func (s *Sampler) drawPermuted() {
	take := min(s.take, len(s.State.Left))
	s.picked = append(s.picked[:0], s.State.Left[:take]...)
	s.State.Left = s.State.Left[take:]
	s.onward(nil)
	if len(s.picked) == s.take {
		return
	}
	early := slices.Clone(s.picked)
	slices.Sort(early)
	s.State.Epoch, s.State.At, s.State.Left = s.State.Epoch+1, 0, nil
	s.onward(early)
}

// onward takes the next clients of the epoch's permutation, but for some, who are left for
// later.
func (s *Sampler) onward(early []int) {
	if s.State.Epoch == 0 {
		return
	}
	if s.epoch != s.State.Epoch {
		s.stream.Key(&s.family, s.State.Epoch-1, 1)
		s.epoch, s.permuted = s.State.Epoch, newPermutation(s.clients, &s.stream)
	}
	for len(s.picked) < s.take && s.State.At < s.clients {
		c := s.permuted.at(s.State.At)
		s.State.At++
		if _, there := slices.BinarySearch(early, c); there {
			s.State.Left = append(s.State.Left, c)
		} else {
			s.picked = append(s.picked, c)
		}
	}
}
