package fl

import (
	"slices"
	"testing"
)

func TestUniformSampling(t *testing.T) {
	s := NewSampler(1, "test", 20, 7, false)
	counts := make([]int, 20)
	var first []int
	const rounds = 20_000
	for r := range rounds {
		ids := s.Sample(r)
		if r == 5 {
			first = slices.Clone(ids)
		}
		checkRound(t, ids, 20, 7)
		for _, c := range ids {
			counts[c]++
		}
	}
	// Each count is binomial(20000, 0.35): +-4.9 sd (67.5) once in a million.
	for c, n := range counts {
		if d := n - 7000; d < -340 || d > 340 {
			t.Errorf("client %d was asked %d times of 7000", c, n)
		}
	}
	if again := NewSampler(1, "test", 20, 7, false).Sample(5); !slices.Equal(again, first) {
		t.Errorf("round 5 alone gives %v, after five others %v", again, first)
	}
}

func TestBalancedSampling(t *testing.T) {
	for _, c := range []struct{ clients, take, rounds int }{{100, 7, 85}, {10, 7, 50}, {7, 7, 9}, {8, 7, 100}, {5, 1, 20}} {
		s := NewSampler(3, "test", c.clients, c.take, true)
		counts := make([]int, c.clients)
		for r := range c.rounds {
			ids := s.Sample(r)
			checkRound(t, ids, c.clients, c.take)
			for _, id := range ids {
				counts[id]++
			}
			if most, least := slices.Max(counts), slices.Min(counts); most-least > 2 {
				t.Fatalf("%+v: after %d rounds one client was asked %d times, another %d", c, r+1, most, least)
			}
		}
		if c.clients == 100 && slices.Max(counts) != 6 {
			t.Errorf("85 rounds of 7 of 100 clients: somebody was asked %d times, want 6 at most", slices.Max(counts))
		}
	}
}

func TestBalancedSamplingContinuesFromItsState(t *testing.T) {
	whole := NewSampler(3, "test", 10, 4, true)
	var want [][]int
	for r := range 12 {
		want = append(want, slices.Clone(whole.Sample(r)))
	}
	half := NewSampler(3, "test", 10, 4, true)
	for r := range 6 {
		half.Sample(r)
	}
	resumed := NewSampler(3, "test", 10, 4, true)
	resumed.State = SamplerState{Epoch: half.State.Epoch, Left: slices.Clone(half.State.Left)}
	for r := 6; r < 12; r++ {
		if got := resumed.Sample(r); !slices.Equal(got, want[r]) {
			t.Errorf("round %d after a resume asks %v, want %v", r, got, want[r])
		}
	}
}

func checkRound(t *testing.T, ids []int, clients, take int) {
	t.Helper()
	if len(ids) != take {
		t.Fatalf("%d clients, want %d", len(ids), take)
	}
	for i, id := range ids {
		if id < 0 || id >= clients || (i > 0 && id <= ids[i-1]) {
			t.Fatalf("not distinct clients in order: %v", ids)
		}
	}
}
