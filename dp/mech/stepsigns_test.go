package mech

import "testing"

// TestComparePairsSumsWithTheirOwn: the clip goes by the last direction, the step by the
// last gradient, in both precisions, and what is compared takes the last ones' place.
func TestComparePairsSumsWithTheirOwn(t *testing.T) {
	comparePairs[float32](t)
	comparePairs[float64](t)
}

func comparePairs[F float32 | float64](t *testing.T) {
	t.Helper()
	var l last
	if _, _, ok := compare(&l, []F{1, 2, 3}, []F{-1, -2, -3}); ok {
		t.Error("compared with nothing")
	}
	if clip, step, ok := compare(&l, []F{2, 1, 0}, []F{0, 0, 1}); !ok || clip != -1 || step != 1 {
		t.Errorf("clip %v, step %v, compared %v; want -1, 1, true", clip, step, ok)
	}
	if clip, step, ok := compare(&l, []F{-1, 0, 5}, []F{0, 0, 0}); !ok || clip != 1 || step != -1 {
		t.Errorf("clip %v, step %v, compared %v; want 1, -1, true", clip, step, ok)
	}
}
