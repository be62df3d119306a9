package mech

import (
	"slices"
	"testing"
)

// TestComparePairsSumsWithTheirOwn: the clip goes by the last direction, the step by the
// last gradient, in both precisions, and what is compared takes the last ones' place.
func TestComparePairsSumsWithTheirOwn(t *testing.T) {
	comparePairs[float32](t)
	comparePairs[float64](t)
}

func comparePairs[F float32 | float64](t *testing.T) {
	t.Helper()
	var l last
	next := func(gradient, direction []F) (clip, step float64, ok bool) {
		defer note(&l, gradient, direction)
		return compare(&l, gradient, direction)
	}
	if _, _, ok := next([]F{1, 2, 3}, []F{-1, -2, -3}); ok {
		t.Error("compared with nothing")
	}
	if clip, step, ok := next([]F{2, 1, 0}, []F{0, 0, 1}); !ok || clip != -1 || step != 1 {
		t.Errorf("clip %v, step %v, compared %v; want -1, 1, true", clip, step, ok)
	}
	if clip, step, ok := next([]F{-1, 0, 5}, []F{0, 0, 0}); !ok || clip != 1 || step != -1 {
		t.Errorf("clip %v, step %v, compared %v; want 1, -1, true", clip, step, ok)
	}
}

// TestClipStateStays: steps that go on from a state leave its vectors as they are, those
// that they save too, and what was saved over until they are opened again.
func TestClipStateStays(t *testing.T) {
	var s signs
	step := func(v float32) {
		s.own()
		note(&s.released, []float32{v}, []float32{-v})
	}
	state := ClipState{Gradient: []float32{1}, Direction: []float32{-1}}
	for round := float32(1); round < 4; round++ {
		before := state
		s.reset()
		s.load(&state)
		for pass := float32(1); pass < 3; pass++ { // some methods train twice a round
			want := slices.Clone(state.Gradient)
			step(10*round + pass)
			if !slices.Equal(state.Gradient, want) {
				t.Fatalf("round %v: a step changes the state %v to %v", round, want, state.Gradient)
			}
			s.save(&state)
			if got := state.Gradient[0]; got != 10*round+pass || state.Direction[0] != -got {
				t.Fatalf("round %v: saved %v and %v, want %v", round, got, state.Direction, 10*round+pass)
			}
		}
		want := float32(1)
		if round > 1 {
			want = 10*(round-1) + 2
		}
		if before.Gradient[0] != want {
			t.Fatalf("round %v: what was saved over is %v, want %v", round, before.Gradient[0], want)
		}
	}
}
