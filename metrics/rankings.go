package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Ranking is how good a score's order of examples of 2 classes is. Its intervals are of
// 95 %, over units of examples that belong together, such as households: by the infinitesimal
// jackknife, which adds up what every unit contributes to a figure (its influence) and takes
// their variance. Linear but for one sorting, so that millions take a second. Nothing is
// assumed of a unit's inside; units count as independent of one another.
type Ranking struct {
	AveragePrecision *Figure // nil: one class is missing, or a score is no number
	AUC              *Figure
	precision, area  []float64 // influences, by unit
	examples         int
}

// rankedExample is an example by its score.
type rankedExample struct {
	score float64
	place uint32
}

// Rank orders examples by a score, the highest first. Positive says which are of class 1,
// unit which unit an example is of: 0 to units-1.
func Rank[F float32 | float64](scores []F, positive []bool, unit []uint32, units int) (Ranking, error) {
	if len(scores) != len(positive) || len(scores) != len(unit) || len(scores) > math.MaxUint32 {
		return Ranking{}, fmt.Errorf("metrics: %d scores of %d examples in %d units cannot be ranked; allowed: as many", len(scores), len(positive), len(unit))
	}
	r := Ranking{precision: make([]float64, units), area: make([]float64, units), examples: len(scores)}
	order, in := make([]rankedExample, len(scores)), 0
	for i, s := range scores {
		if math.IsNaN(float64(s)) {
			return Ranking{examples: len(scores)}, nil
		}
		if int(unit[i]) >= units {
			return Ranking{}, fmt.Errorf("metrics: example %d is of unit %d; allowed: 0 to %d", i, unit[i], units-1)
		}
		if order[i] = (rankedExample{float64(s), uint32(i)}); positive[i] {
			in++
		}
	}
	if in == 0 || in == len(scores) {
		return Ranking{examples: len(scores)}, nil
	}
	slices.SortFunc(order, func(a, b rankedExample) int { return cmp.Compare(b.score, a.score) })
	r.influence(order, positive, unit, float64(in))
	return r, nil
}

// influence sets figures and influences. It goes up from the lowest score, one group of
// equals after another. With T examples of the class and N of all at or above a score, the
// average precision is the mean of T/N over the class; an example moves it by its own T/N,
// and by what it adds to T and N of all scores up to its own.
func (r *Ranking) influence(order []rankedExample, positive []bool, unit []uint32, in float64) {
	n := float64(len(order))
	out := n - in
	var precision, area float64
	eachGroup(order, positive, func(group []rankedExample, own, above, through float64) {
		below := out - (through - above) // of the other class
		precision += own * above / through
		area += own * (below + (float64(len(group))-own)/2)
	})
	precision, area = precision/in, area/(in*out)
	share := in / n
	var added, thinned float64 // by the scores up to here: sums over the class of 1/N and T/N^2
	eachGroup(order, positive, func(group []rankedExample, own, above, through float64) {
		added += own / through
		thinned += own * above / (through * through)
		others := float64(len(group)) - own
		over, under := (above-own/2)/in, (out-(through-above)+others/2)/out // shares of the other class that count for one
		for _, e := range group {
			p, a := -thinned, (over-area)/(1-share)
			if positive[e.place] {
				p += above/through + added - precision
				a = (under - area) / share
			}
			r.precision[unit[e.place]] += p / share
			r.area[unit[e.place]] += a
		}
	})
	r.AveragePrecision = figure(precision, r.half(r.precision, in), 0, 1)
	r.AUC = figure(area, r.half(r.area, in), 0, 1)
}

// eachGroup hands every group of equal scores to use, the lowest first: how many of it are
// of the class, and how many of the class, and of all, score at least as high.
func eachGroup(order []rankedExample, positive []bool, use func(group []rankedExample, own, above, through float64)) {
	above := 0.0
	for _, e := range order {
		if positive[e.place] {
			above++
		}
	}
	for to := len(order); to > 0; {
		from, own := to, 0.0
		for from > 0 && order[from-1].score == order[to-1].score {
			if from--; positive[order[from].place] {
				own++
			}
		}
		use(order[from:to], own, above, float64(to))
		above -= own
		to = from
	}
}

// half is half the width of an interval; NaN where too few are of the class to tell.
func (r *Ranking) half(influences []float64, in float64) float64 {
	if in < 2 || len(influences) < 2 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range influences {
		sum += v * v
	}
	k, n := float64(len(influences)), float64(r.examples)
	return normal95 * math.Sqrt(sum*k/(k-1)) / n
}

// Less is a's average precision less b's, and the same of the AUC, of two scores of the
// same examples in the same units: paired, so that what both miss is in no interval. Nil
// where a figure is not defined.
func (a Ranking) Less(b Ranking) (precision, area *Figure, err error) {
	if a.examples != b.examples || len(a.precision) != len(b.precision) && a.AUC != nil && b.AUC != nil {
		return nil, nil, fmt.Errorf("metrics: rankings of %d and %d examples cannot be compared; allowed: of the same", a.examples, b.examples)
	}
	if a.AUC == nil || b.AUC == nil {
		return nil, nil, nil
	}
	less := func(x, y *Figure, of, from []float64) *Figure {
		d := make([]float64, len(of))
		for i := range d {
			d[i] = of[i] - from[i]
		}
		half := a.half(d, 2)
		if x.Low == nil || y.Low == nil {
			half = math.NaN()
		}
		return figure(float64(x.Value-y.Value), half, -1, 1)
	}
	return less(a.AveragePrecision, b.AveragePrecision, a.precision, b.precision), less(a.AUC, b.AUC, a.area, b.area), nil
}
