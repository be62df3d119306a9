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

// replaced has a step take the place of the last one, in the memory of to.
func replaced[F float32 | float64](l last, to *last, gradient, direction []F) (clip, step float64, ok bool) {
	r := l.by(to, len(gradient))
	half := len(gradient) / 2
	replaceBy(&r, 0, gradient[:half], direction[:half])
	replaceBy(&r, half, gradient[half:], direction[half:])
	return r.signs()
}

func comparePairs[F float32 | float64](t *testing.T) {
	t.Helper()
	var l last
	next := func(gradient, direction []F) (clip, step float64, ok bool) {
		return replaced(l, &l, gradient, direction)
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

// TestCompareReadsAllBlocks: every value counts, wherever it is, and is noted.
func TestCompareReadsAllBlocks(t *testing.T) {
	for _, n := range []int{blockLength - 1, blockLength, 2*blockLength + 7} {
		for _, at := range []int{0, n / 2, n - 1} {
			one, none := make([]float64, n), make([]float64, n)
			one[at] = 1
			var l, other last
			replaced(l, &l, one, none)
			if _, step, ok := replaced(l, &other, one, one); !ok || step != 1 {
				t.Errorf("value %d of %d: step %v, compared %v; want 1, true", at, n, step, ok)
			}
			if clip, step, _ := replaced(other, &other, one, none); clip != 1 || step != 1 {
				t.Errorf("value %d of %d, noted elsewhere: clip %v, step %v; want 1, 1", at, n, clip, step)
			}
		}
	}
}

// TestClipStateStays: steps that go on from a state leave its vectors as they are, those
// that they save too, and what was saved over until they are opened again.
func TestClipStateStays(t *testing.T) {
	var s signs
	step := func(v float32) {
		r := s.release(1)
		replaceBy(&r, 0, []float32{v}, []float32{-v})
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
