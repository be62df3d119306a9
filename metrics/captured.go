package metrics

import "math"

// captured is the share of the examples' squared length that lies along a projection's
// directions. Of a projection an example's output is what is captured of its squared
// length, and its target the squared length.
func captured(parts []Answers) (kept, whole []float64) {
	kept, whole = make([]float64, len(parts)), make([]float64, len(parts))
	for i, a := range parts {
		for j, v := range a.Outputs {
			kept[i] += v
			whole[i] += a.Targets[j]
		}
	}
	return kept, whole
}

// share is the figure of all, with the interval that leaving out one of them gives.
func share(kept, whole []float64) *Figure {
	var some, all float64
	for i := range kept {
		some, all = some+kept[i], all+whole[i]
	}
	return jackknife(len(kept), func(i int) float64 {
		if i < 0 {
			return some / all
		}
		return (some - kept[i]) / (all - whole[i])
	}, 0, 1)
}

// capturedDifference is a's share less b's, of the same examples.
func capturedDifference(a, b Answers) *Figure {
	var some, other, all float64
	for i, whole := range a.Targets {
		some, other, all = some+a.Outputs[i], other+b.Outputs[i], all+whole
	}
	return jackknife(len(a.Targets), func(i int) float64 {
		if i < 0 {
			return (some - other) / all
		}
		return (some - a.Outputs[i] - other + b.Outputs[i]) / (all - a.Targets[i])
	}, math.Inf(-1), math.Inf(1))
}
