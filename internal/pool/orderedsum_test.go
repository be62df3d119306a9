package pool

import (
	"slices"
	"testing"
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
