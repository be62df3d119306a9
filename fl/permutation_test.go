package fl

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/internal/rng"
)

func TestPermutationsMeetEverybodyOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 17, 255, 256, 257, 1000, 65_537, 100_003} {
		p := newPermutation(n, new(rng.Family).Stream(0, n))
		met := make([]bool, n)
		for i := range n {
			c := p.at(i)
			if c < 0 || c >= n || met[c] {
				t.Fatalf("of %d: place %d is %d's, which is nobody's or taken", n, i, c)
			}
			met[c] = true
		}
	}
}

// Over many keys a client stands anywhere, and whoever comes after it does too. Chi-square
// with 20*20-1 degrees: above 399 + 5*sqrt(2*399) = 540 about once in 10^6.
func TestPermutationsLookShuffled(t *testing.T) {
	const n, keys, bins = 1000, 40_000, 20
	for _, pair := range [][2]int{{0, 1}, {499, 500}, {7, 992}} {
		var count [bins][bins]float64
		for key := range keys {
			p := newPermutation(n, new(rng.Family).Stream(key, pair[0]))
			count[p.at(pair[0])*bins/n][p.at(pair[1])*bins/n]++
		}
		chi := 0.0
		for i := range bins {
			for j := range bins {
				// The second is not where the first is.
				want := float64(keys) / bins * (n / bins) / (n - 1)
				if i == j {
					want = float64(keys) / bins * (n/bins - 1) / (n - 1)
				}
				chi += (count[i][j] - want) * (count[i][j] - want) / want
			}
		}
		if chi > 540 || chi < 260 || math.IsNaN(chi) {
			t.Errorf("places %v: chi-square %.0f of 399", pair, chi)
		}
	}
}

// A draw without a list of all clients is the draw with one.
func TestSparseDrawsAreTheSame(t *testing.T) {
	listed, sparse := NewSampler(3, "test", 200, 50, false), NewSampler(3, "test", 200, 50, false)
	sparse.order, sparse.moved = nil, map[int]int{}
	for r := range 50 {
		if a, b := listed.Sample(r), sparse.Sample(r); !slices.Equal(a, b) {
			t.Fatalf("round %d: %v with a list, %v without", r, a, b)
		}
	}
}

// Of very many clients, too, nobody is asked twice before all others were asked, and a
// resumed sampler goes on.
func TestBalancedSamplingOfVeryMany(t *testing.T) {
	const clients, take = manyClients + 3, 7001
	s, counts := NewSampler(3, "test", clients, take, true), make([]int, clients)
	first := fmt.Sprint(s.Sample(0)[:9])
	s = NewSampler(3, "test", clients, take, true)
	for r := range 60 { // four epochs
		if r%7 == 3 { // from a checkpoint
			again := NewSampler(3, "test", clients, take, true)
			again.State = s.State
			s = again
		}
		ids := s.Sample(r)
		checkRound(t, ids, clients, take)
		if r == 0 && fmt.Sprint(ids[:9]) != first {
			t.Fatal("the same seed draws others")
		}
		for _, id := range ids {
			counts[id]++
		}
		if asked := (s.State.Epoch-1)*clients + s.State.At - len(s.State.Left); asked != (r+1)*take {
			t.Fatalf("after %d rounds of %d, %d clients of the epochs are gone: somebody was passed over, or met twice", r+1, take, asked)
		}
		if most, least := slices.Max(counts), slices.Min(counts); most-least > 2 {
			t.Fatalf("after %d rounds one client was asked %d times, another %d", r+1, most, least)
		}
	}
	whole := 60 * take / clients
	if least := slices.Min(counts); least < whole-1 {
		t.Errorf("somebody was asked %d times in %d epochs", least, whole)
	}
}
