package cluster

import (
	"math"
	"slices"
)

// The rules by which a centre is found among releases of which some may be forged. They
// read released vectors alone, so they cost no privacy; but they are no means, and noise
// that a server would scale to the mean's sensitivity does not cover them.
const (
	Median          = "median"           // of every coordinate
	TrimmedMean     = "trimmed-mean"     // of every coordinate, without the largest and smallest
	Krum            = "krum"             // the one release that has the nearest neighbours (Blanchard et al. 2017)
	GeometricMedian = "geometric-median" // the point with the least sum of distances to all
)

// Robust finds the centre of releases, a share of which may say anything.
type Robust struct {
	Rule  string
	Share float64 // of releases that may be forged: what trimming and Krum go by
}

// RobustRules are all rules.
var RobustRules = []string{Median, TrimmedMean, Krum, GeometricMedian}

// forged is how many of n may be forged: fewer than half.
func (r Robust) forged(n int) int { return min(int(r.Share*float64(n)+1e-9), (n-1)/2) }

// Centre sets dst to the centre of some vectors. Those with a value that is not finite are
// no place, and are left out; without any other dst stays.
func (r Robust) Centre(dst []float64, vectors [][]float64) {
	vectors = slices.DeleteFunc(slices.Clone(vectors), func(v []float64) bool {
		for _, x := range v {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return true
			}
		}
		return false
	})
	if len(vectors) == 0 {
		return
	}
	switch r.Rule {
	case Krum:
		copy(dst, vectors[r.krum(vectors)])
	case GeometricMedian:
		geometricMedian(dst, vectors)
	case TrimmedMean:
		trimmed(dst, vectors, r.forged(len(vectors)))
	default:
		trimmed(dst, vectors, (len(vectors)-1)/2)
	}
}

// trimmed sets every coordinate to the mean of those that are left without the so many
// largest and smallest: of all but one or two, that is the median.
func trimmed(dst []float64, vectors [][]float64, each int) {
	column := make([]float64, len(vectors))
	for j := range dst {
		for i, v := range vectors {
			column[i] = v[j]
		}
		slices.Sort(column)
		left, sum := column[each:len(column)-each], 0.0
		for _, x := range left {
			sum += x
		}
		dst[j] = sum / float64(len(left))
	}
}

// krum is the place of the vector whose n-f-2 nearest others are nearest, f being those
// that may be forged. Krum holds for n of at least 2f+3: of fewer it counts on as many
// forged ones as it can, for otherwise two that lie together would be each other's only
// neighbour. Of equal ones it is the first.
func (r Robust) krum(vectors [][]float64) int {
	n := len(vectors)
	near := max(1, n-min(r.forged(n), max(0, (n-3)/2))-2)
	if n == 1 {
		return 0
	}
	squared := make([]float64, n*n)
	for i := range n {
		for j := range i {
			d := squaredDistance(vectors[i], vectors[j])
			squared[i*n+j], squared[j*n+i] = d, d
		}
	}
	best, least := 0, math.Inf(1)
	others := make([]float64, 0, n)
	for i := range n {
		others = append(append(others[:0], squared[i*n:i*n+i]...), squared[i*n+i+1:(i+1)*n]...)
		slices.Sort(others)
		sum := 0.0
		for _, d := range others[:min(near, len(others))] {
			sum += d
		}
		if sum < least {
			best, least = i, sum
		}
	}
	return best
}

func squaredDistance(a, b []float64) (sum float64) {
	for j, x := range a {
		sum += (x - b[j]) * (x - b[j])
	}
	return sum
}

// geometricMedian is found by Weiszfeld's steps, from the median of every coordinate: each
// vector weighs one over its distance. On a vector, whose weight would have no end, the
// step is that of Vardi and Zhang (2000): it ends there if the others pull less than those
// that lie there hold, and goes part of the way otherwise. The steps end once they hardly
// move, or where distances are no numbers any more.
func geometricMedian(dst []float64, vectors [][]float64) {
	trimmed(dst, vectors, (len(vectors)-1)/2)
	distances := make([]float64, len(vectors))
	measure := func() {
		for i, v := range vectors {
			distances[i] = math.Sqrt(squaredDistance(v, dst))
		}
	}
	measure()
	sorted := slices.Sorted(slices.Values(distances))
	scale := sorted[len(sorted)/2]
	if scale == 0 || math.IsInf(scale, 1) { // half of them are one place, or beyond all measure
		return
	}
	next, pull := make([]float64, len(dst)), make([]float64, len(dst))
	for range 1000 {
		clear(next)
		clear(pull)
		total, here := 0.0, 0.0
		for i, v := range vectors {
			if distances[i] <= 1e-9*scale {
				here++
				continue
			}
			weight := 1 / distances[i]
			total += weight
			for j, x := range v {
				next[j] += weight * x
				pull[j] += weight * (x - dst[j])
			}
		}
		stay := 0.0
		if here > 0 {
			stay = here / math.Sqrt(squaredDistance(pull, make([]float64, len(pull))))
		}
		if !(stay < 1) {
			return
		}
		for j := range next {
			next[j] = (1-stay)*next[j]/total + stay*dst[j]
		}
		moved := math.Sqrt(squaredDistance(next, dst))
		copy(dst, next)
		if moved <= 1e-9*scale {
			return
		}
		measure()
	}
}
