package pool

import (
	"slices"
	"testing"
	"time"
)

func plus(part, total []float32) {
	for i, v := range part {
		total[i] += v
	}
}

// TestOrderedSumGoesByLanes: whoever is done first, the bits are those of lanes added in
// their order, and memory is that of lanes that are not complete.
func TestOrderedSumGoesByLanes(t *testing.T) {
	values := []float32{1e8, 3, -1e8, 7, 0.25}
	want := float32(0)
	for _, v := range values {
		want += v
	}
	s := NewOrderedSum(2, len(values), plus)
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}} {
		for _, complete := range []bool{true, false} {
			for _, lane := range order {
				s.Part(lane)[1] += values[lane]
				if complete {
					s.Complete(lane)
				}
			}
			got := []float32{5, 5}
			copy(got, s.Total())
			if !slices.Equal(got, []float32{0, want}) {
				t.Errorf("order %v: %v, want %v", order, got, want)
			}
			s.Reset()
		}
	}
	in := NewOrderedSum(2, 100, plus)
	for lane := range 100 {
		in.Part(lane)[0] = 1
		in.Complete(lane)
	}
	if len(in.spare) != 1 {
		t.Errorf("100 lanes in order took the memory of %d", len(in.spare))
	}
	empty := []float32{3, 3}
	copy(empty, s.Total())
	if !slices.Equal(empty, []float32{0, 0}) {
		t.Errorf("nothing adds up to %v", empty)
	}
}

// TestOrderedSumWaitsForItsTurn: of two who take lanes in turn, the one that is ahead waits
// long before it takes memory for more lanes than there is room for; nobody waits where
// memory is free or whose turn it is.
func TestOrderedSumWaitsForItsTurn(t *testing.T) {
	t.Parallel() // it sleeps
	s := NewOrderedSum(1, 8, plus)
	s.InTurn(2)
	part := func(lane, made int, least time.Duration) {
		t.Helper()
		began := time.Now()
		s.Part(lane)[0] = float32(lane)
		if took := time.Since(began); took < least {
			t.Errorf("lane %d has memory after %v, of no other", lane, took)
		}
		if s.made != made {
			t.Errorf("at lane %d there is memory for %d, not %d", lane, s.made, made)
		}
	}
	part(0, 1, 0)
	part(1, 2, 0)
	s.Complete(1)
	part(3, 3, 0)
	s.Complete(3)
	part(5, 4, manyNaps*nap)
	s.Complete(5)
	s.Complete(0)
	part(2, 4, 0) // where 1 was
	s.Complete(2)
	part(4, 4, 0)
	s.Complete(4)
	part(7, 4, 0)
	s.Complete(7)
	part(6, 4, 0)
	s.Complete(6)
	if got := s.Total()[0]; got != 28 {
		t.Errorf("lanes add up to %v, not 28", got)
	}
	if s.Reset(); s.made != 3 || len(s.spare) != 3 {
		t.Errorf("memory for %d lanes is kept, %d of them free; want 3", s.made, len(s.spare))
	}
	s.InTurn(0)
	for lane := 7; lane > 0; lane-- {
		s.Part(lane)
	}
	if s.made != 7 {
		t.Errorf("lanes that are not taken in turn have memory for %d, not 7", s.made)
	}
}
