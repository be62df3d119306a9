package membership

import "math"

// losses are every example's under one model.
type losses []float64

// byLoss is the plainest score: members have small losses.
func byLoss(target losses) []float64 {
	out := make([]float64, len(target))
	for i, v := range target {
		out[i] = -v
	}
	return out
}

// byOthers is how much larger an example's mean loss is under other models, or of its noisy
// neighbours, than under the target: it takes out how hard an example is.
func byOthers(target losses, others []losses) []float64 {
	out := make([]float64, len(target))
	for i, v := range target {
		for _, o := range others {
			out[i] += o[i] / float64(len(others))
		}
		out[i] -= v
	}
	return out
}

// leastReferences is how many the likelihood ratio needs: with fewer, hardly an example has
// models of both kinds.
const leastReferences = 4

// byRatio is the likelihood ratio of an example's statistic under the target, as one of a
// model that was trained with it and as one of a model that was not (Carlini and others
// 2022). Both are normal, with means of the example's own and deviations that all examples
// share, for there are few models. An example that one of the kinds lacks gets that mean
// from the other kind's and the mean distance between both.
func byRatio(target []float64, references [][]float64, in [][]bool) []float64 {
	n := len(target)
	var sums, counts [2][]float64
	for k := range sums {
		sums[k], counts[k] = make([]float64, n), make([]float64, n)
	}
	kind := func(r, i int) int {
		if in[r][i] {
			return 1
		}
		return 0
	}
	for r, values := range references {
		for i, v := range values {
			k := kind(r, i)
			sums[k][i] += v
			counts[k][i]++
		}
	}
	gap, both := 0.0, 0.0
	for i := range n {
		if counts[0][i] > 0 && counts[1][i] > 0 {
			gap += sums[1][i]/counts[1][i] - sums[0][i]/counts[0][i]
			both++
		}
	}
	if both > 0 {
		gap /= both
	}
	mean := func(k, i int) float64 {
		if counts[k][i] > 0 {
			return sums[k][i] / counts[k][i]
		}
		if k == 1 {
			return sums[0][i]/counts[0][i] + gap
		}
		return sums[1][i]/counts[1][i] - gap
	}
	var squares, freedom [2]float64
	for r, values := range references {
		for i, v := range values {
			k := kind(r, i)
			squares[k] += (v - mean(k, i)) * (v - mean(k, i))
		}
	}
	for k := range counts {
		for i := range n {
			freedom[k] += max(0, counts[k][i]-1)
		}
	}
	var variance [2]float64
	for k := range variance {
		variance[k] = max(math.SmallestNonzeroFloat32, squares[k]/max(1, freedom[k]))
	}
	out := make([]float64, n)
	for i, v := range target {
		for k, sign := range []float64{-1, 1} {
			// A mean of few values is itself uncertain.
			spread := variance[k] * (1 + 1/max(1, counts[k][i]))
			d := v - mean(k, i)
			out[i] += sign * (-d*d/(2*spread) - math.Log(spread)/2)
		}
	}
	return out
}

// statistic is what a likelihood ratio is taken of: of classes the logit of the right one's
// probability, which is nearly normal; otherwise the loss, with its sign turned.
func statistic(l losses, classes bool) []float64 {
	out := byLoss(l)
	if !classes {
		return out
	}
	const sure = 1e-12 // a loss of 0 would be infinitely sure
	for i, v := range l {
		v = max(sure, v)
		out[i] = -v - math.Log(-math.Expm1(-v))
	}
	return out
}

// split is some of a score's members and others, by a choice of examples.
func split(score []float64, member []bool, keep func(i int) bool) Scores {
	var s Scores
	for i, v := range score {
		switch {
		case !keep(i):
		case member[i]:
			s.Members = append(s.Members, v)
		default:
			s.Others = append(s.Others, v)
		}
	}
	return s
}

// averaged are means over the examples of each subject.
func averaged(score []float64, subject []int, subjects int) []float64 {
	out, n := make([]float64, subjects), make([]float64, subjects)
	for i, v := range score {
		out[subject[i]] += v
		n[subject[i]]++
	}
	for k := range out {
		out[k] /= max(1, n[k])
	}
	return out
}
