package account

import (
	"math"
	"testing"
)

// TestNoiseOfAGridsRuns is the noise of one run of a grid whose runs share one budget
// (paper 001, section 3.7): MNIST's 60,000 pictures in batches of 512, 1,180 steps a run,
// delta 1e-5. Runs by method, with k values on an axis: k for Online, AdamWOSM and NoDP,
// k*k for FixedThreshold, 5k for FixedQuantile; k is 5, 7, 9. Independent points of it are
// in TestGoldenGridBudgets.
func TestNoiseOfAGridsRuns(t *testing.T) {
	t.Parallel()
	runs := []int64{5, 7, 9, 25, 35, 45, 49, 81}
	for epsilon, want := range map[float64][]float64{
		1: {2.768, 3.236, 3.645, 5.982, 7.060, 7.994, 8.338, 10.70},
		2: {1.591, 1.825, 2.032, 3.238, 3.802, 4.292, 4.474, 5.720},
		3: {1.210, 1.362, 1.497, 2.307, 2.691, 3.027, 3.151, 4.008},
		4: {1.025, 1.136, 1.236, 1.842, 2.133, 2.388, 2.483, 3.139},
		5: {0.917, 1.003, 1.082, 1.564, 1.798, 2.004, 2.081, 2.614},
		7: {0.795, 0.855, 0.910, 1.251, 1.419, 1.568, 1.623, 2.011},
		9: {0.724, 0.772, 0.815, 1.080, 1.211, 1.327, 1.371, 1.676},
	} {
		for i, n := range runs {
			plan := poissonTraining(512.0/60_000, 1180)
			plan.Runs = n
			plan, cost, err := plan.WithNoiseFor(MethodRDP, epsilon, 1e-5)
			if err != nil {
				t.Fatal(err)
			}
			last := 5e-4 // half of the last digit
			if want[i] >= 10 {
				last = 5e-3
			}
			if math.Abs(plan.Noise-want[i]) > last || cost.Epsilon > epsilon || cost.Epsilon < 0.9999*epsilon {
				t.Errorf("epsilon %v, %d runs: noise %v, want %v; it costs %v", epsilon, n, plan.Noise, want[i], cost.Epsilon)
			}
		}
	}
}
