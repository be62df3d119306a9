package metrics

import (
	"cmp"
	"math"
	"slices"
)

// ranked sets AUC and average precision. An interval leaves out one of so many groups
// of examples at a time.
func (s *scored) ranked(f *Figures, groups int, group func(i int) int) {
	if s.lost {
		return
	}
	auc, precision := make([]meanOf, groups+1), make([]meanOf, groups+1) // the first of all
	for class := range s.classes {
		if s.classes == 2 && class == 0 {
			continue // class 1 says it all
		}
		o := ordered(s.scores(class), func(i int) bool { return s.labels[i] == class })
		for left := -1; left < groups; left++ {
			keep := func(i int) bool { return left < 0 || group(i) != left }
			area, average := o.figures(keep)
			auc[left+1].add(area)
			precision[left+1].add(average)
		}
	}
	f.AUC = jackknife(groups, func(left int) float64 { return auc[left+1].value() }, 0, 1)
	f.AveragePrecision = jackknife(groups, func(left int) float64 { return precision[left+1].value() }, 0, 1)
}

// meanOf is the mean over the classes that have a figure; NaN if none has.
type meanOf struct{ sum, known float64 }

func (m *meanOf) add(v float64) {
	if !math.IsNaN(v) {
		m.sum += v
		m.known++
	}
}

func (m meanOf) value() float64 { return m.sum / m.known }

// order is examples by falling score: those of a class and the rest.
type order struct {
	places []int
	scores []float64
	in     func(i int) bool
}

func ordered(scores []float64, in func(i int) bool) order {
	o := order{places: make([]int, len(scores)), scores: scores, in: in}
	for i := range o.places {
		o.places[i] = i
	}
	slices.SortFunc(o.places, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return o
}

// walk hands the number of the class's examples and of the rest down to every distinct
// score to step, and returns both totals.
func (o *order) walk(keep func(i int) bool, step func(in, out float64)) (in, out float64) {
	for from := 0; from < len(o.places); {
		to, moved := from, false
		for ; to < len(o.places) && o.scores[o.places[to]] == o.scores[o.places[from]]; to++ {
			i := o.places[to]
			switch {
			case keep != nil && !keep(i):
				continue
			case o.in(i):
				in++
			default:
				out++
			}
			moved = true
		}
		from = to
		if moved {
			step(in, out)
		}
	}
	return in, out
}

// figures are the AUC, the probability that an example of the class scores above one of
// the rest, ties counting half (Mann and Whitney 1947), and the average precision, the sum
// over scores of precision times the recall won (no interpolation, ties in one step). NaN
// unless there are both, examples of the class and others.
func (o *order) figures(keep func(i int) bool) (auc, averagePrecision float64) {
	area, sum, lastIn, lastOut := 0.0, 0.0, 0.0, 0.0
	in, out := o.walk(keep, func(in, out float64) {
		area += (out - lastOut) * (in + lastIn) / 2
		sum += (in - lastIn) * in / (in + out)
		lastIn, lastOut = in, out
	})
	if in == 0 || out == 0 {
		return math.NaN(), math.NaN()
	}
	return area / (in * out), sum / in
}

// AUC is the probability that one of the scores above is larger than one of those below,
// ties counting half, with DeLong's interval over both. Nil where there are none of a kind.
func AUC(above, below []float64) *Figure {
	labels, scores := make([]int, 0, len(above)+len(below)), append(slices.Clone(above), below...)
	for range above {
		labels = append(labels, 1)
	}
	for range below {
		labels = append(labels, 0)
	}
	d := delong(labels, scores, scores)
	return figure(max(0, min(1, d.auc[0])), normal95*rootOrNone(d.variance[0]), 0, 1) // a mean of ones may round to more
}

// compared are the AUCs of two scores of the same examples.
type compared struct {
	auc      [2]float64
	variance [2]float64
	together float64 // covariance
}

// delong compares two scores of the same examples of 2 classes (DeLong, DeLong and
// Clarke-Pearson 1988). What is not defined is NaN.
func delong(labels []int, a, b []float64) compared {
	var c compared
	var parts [2][2][]float64 // by score, then by class
	for k, scores := range [][]float64{a, b} {
		parts[k] = placements(labels, scores)
		c.auc[k], _ = Spread(parts[k][1])
		if len(parts[k][1]) == 0 || len(parts[k][0]) == 0 {
			c.auc[k] = math.NaN()
		}
	}
	cov := func(x, y []float64) float64 {
		n := float64(len(x))
		mx, _ := Spread(x)
		my, _ := Spread(y)
		sum := 0.0
		for i := range x {
			sum += (x[i] - mx) * (y[i] - my)
		}
		return sum / ((n - 1) * n)
	}
	both := func(i, j int) float64 { return cov(parts[i][0], parts[j][0]) + cov(parts[i][1], parts[j][1]) }
	c.variance, c.together = [2]float64{both(0, 0), both(1, 1)}, both(0, 1)
	return c
}

// placements are, of every example, the share of the other class that it is on the right
// side of, ties counting half; by class.
func placements(labels []int, scores []float64) (of [2][]float64) {
	var sorted [2][]float64
	for i, label := range labels {
		sorted[label] = append(sorted[label], scores[i])
	}
	slices.Sort(sorted[0])
	slices.Sort(sorted[1])
	for i, label := range labels {
		others := sorted[1-label]
		below, _ := slices.BinarySearch(others, scores[i])
		upTo, _ := slices.BinarySearchFunc(others, scores[i], func(e, t float64) int {
			if e <= t {
				return -1
			}
			return 1
		})
		share := (float64(below) + float64(upTo-below)/2) / float64(len(others))
		if label == 0 {
			share = 1 - share
		}
		of[label] = append(of[label], share)
	}
	return of
}
