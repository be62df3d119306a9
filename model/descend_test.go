package model

import (
	"math"
	"slices"
	"testing"
)

// TestDescendIsAStepAlongTheGradient compares the step in place with the gradient
// written out, for every layer: one that changed its parameters before it had used
// them on the way back would differ at the layers below.
func TestDescendIsAStepAlongTheGradient(t *testing.T) {
	const step = 0.3
	for name, c := range small {
		for _, o := range []Objective[float64]{crossEntropy[float64]{}, squaredError[float64]{}, rootSquaredError[float64]{}} {
			e, theta := newEngine[float64](t, c.in, c.layers, o, 1)
			for _, rows := range []int{1, 7, e.chunk + 3} {
				ex, order := examples(e, rows)
				grad := make([]float64, len(theta))
				loss, err := e.Gradient(grad, theta, ex, order)
				if err != nil {
					t.Fatal(err)
				}
				got := slices.Clone(theta)
				again, err := e.Descend(got, ex, order, step)
				if err != nil || math.Abs(again-loss) > 1e-12*(1+loss) {
					t.Errorf("%s, %T, %d rows: loss %v, want %v, %v", name, o, rows, again, loss, err)
				}
				for i := range got {
					if want := theta[i] - step*grad[i]; math.Abs(got[i]-want) > 1e-12*(1+math.Abs(want)) {
						t.Errorf("%s, %T, %d rows: parameter %d is %v after the step, want %v", name, o, rows, i, got[i], want)
						break
					}
				}
			}
			if _, err := e.Descend(theta, Examples[float64]{}, nil, step); err == nil {
				t.Error("a step on no rows is taken")
			}
		}
	}
}
