// Package pca reproduces section 1.4 of paper 001: private principal components, and what the clip trades.
package pca

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// Experiments are listed in this order.
var Experiments = []lab.Experiment{dpPCA}

var dpPCA = lab.Experiment{
	ID: "dp-pca", Title: "Private principal components: bias of a small clip, noise of a large one",
	Paper: "paper 001, section 1.4, equations 1.4-1.11",
	Needs: []string{"mnist", "fashion-mnist", "adult", "unipen-by-writer"},
	Quick: "60 s", Full: "60 s",
	Seeds:  map[string]int{lab.Smoke: 2, lab.Quick: 3, lab.Full: 5},
	Launch: run,
}

// epsilons are what is asked for; the last is no noise.
var epsilons = []float64{0.1, 0.5, 1, 3, math.Inf(1)}

// result is all cells of a set.
type result struct {
	set        *set
	sums       *sums
	components []int
	cells      map[at][]cell // in seed order
}

// at is where a cell belongs.
type at struct {
	clip    int
	epsilon float64
}

func run(l *lab.Lab) (study.Study, error) {
	sets, err := setsOf(l)
	if err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"Every row is shortened to a norm of at most p, the matrices x'x of all rows are summed, and noise is added to the sum once. Its leading eigenvectors span a subspace; judged is which share of the squared length of held-out rows lies in it. The thesis says that a small p biases the sum and a large p adds noise; it shows no experiment, and says nothing of what components capture: rows on that carry its sentences over, and say so.",
			"p goes from a sixteenth to sixteen times the median norm of the training rows. Measured is the median over seeds with the middle 80 %.",
		},
		Caveats: []string{
			"Directions do not change with the length of the sum: where p is below every row's norm, all rows count the same and p has no part in what is captured any more. A small p then costs only as much as the directions of short and long rows differ.",
			"Unit: example, relation: add-remove, claim: proved for the releases, epsilon as the row says, delta 1e-5 (the thesis names none); noise by the analytic Gaussian, sensitivity p^2, half the variance above the diagonal. Floats, for simulation only. Choosing p by these figures, and the median norm that the grid is laid around, look at the rows and are not charged.",
			"Rows are not centred: pixels from 0 to 1, Adult's numeric columns by public scales. So the first direction is close to the mean, and shares are of squared length, not of variance around the mean.",
		},
	}
	s.Rows = append(s.Rows, printedRows()...)
	for _, one := range sets {
		r, err := cellsOf(l, one)
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, r.rows()...)
		more, err := r.comparisons(l)
		if err != nil {
			return study.Study{}, err
		}
		s.Rows = append(s.Rows, more...)
		s.Charts = append(s.Charts, r.charts()...)
	}
	return s, nil
}

// cellsOf makes a set's cells.
func cellsOf(l *lab.Lab, s *set) (*result, error) {
	m, err := s.sum()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	r := &result{set: s, sums: m, components: componentsOf(m.features), cells: map[at][]cell{}}
	var jobs []func() error
	for clip := range steps {
		for _, epsilon := range epsilons {
			seeds := l.Seeds
			if math.IsInf(epsilon, 1) {
				seeds = 1
			}
			cells := make([]cell, seeds)
			r.cells[at{clip, epsilon}] = cells
			for seed := range cells {
				jobs = append(jobs, func() error {
					key := []any{s.name, m.rows, clip, fmt.Sprint(epsilon), seed}
					return l.Remember(key, &cells[seed], func(l *lab.Lab) (any, error) {
						sum, err := m.noised(clip, epsilon, 1, seed)
						if err != nil {
							return nil, err
						}
						return m.judged(sum, r.components)
					})
				})
			}
		}
	}
	return r, l.All(jobs)
}

// captured is what so many components capture, over seeds.
func (r *result) captured(clip int, epsilon float64, k int) lab.Spread {
	return lab.Quantiles(lab.Pick(r.cells[at{clip, epsilon}], func(c cell) float64 { return c.Captured[k] }))
}

func (r *result) error(clip int, epsilon float64) lab.Spread {
	return lab.Quantiles(lab.Pick(r.cells[at{clip, epsilon}], func(c cell) float64 { return c.Error }))
}

// best is the clip with the largest figure.
func best(of func(clip int) float64) int {
	b := 0
	for clip := range steps {
		if of(clip) > of(b) {
			b = clip
		}
	}
	return b
}

// leastLoss is the least share of the squared length that counts as lost.
const leastLoss = 0.001

// noReason is said where nobody has found out.
const noReason = "No reason is known."

// rows are the claims and the best figures of a set.
func (r *result) rows() []study.Row {
	var rows []study.Row
	last := len(steps) - 1
	settings := map[string]any{"rows": r.sums.rows, "features": r.sums.features, "median_norm": r.sums.clips[4]}
	for _, epsilon := range epsilons[:len(epsilons)-1] {
		section := fmt.Sprintf("%s, epsilon %v", r.set.name, epsilon)
		b := best(func(clip int) float64 { return -r.error(clip, epsilon).Middle })
		off := func(clip int) []float64 {
			return lab.Pick(r.cells[at{clip, epsilon}], func(c cell) float64 { return c.Error })
		}
		for _, end := range []struct {
			clip            int
			label, sentence string
		}{
			{0, "smallest", "section 1.4: a smaller p gives a biased estimator of the covariance matrix"}, {last, "largest", "section 1.4: increasing p introduces noise with a larger standard deviation"},
		} {
			rows = append(rows, lab.Times(study.Row{
				Section: section, Label: fmt.Sprintf("error of the sum at the %s p over that at the best, %v of the median norm", end.label, steps[b]), Metric: "ratio of distances to the plain sum", Settings: settings,
				Sentence: end.sentence, Why: noReason, Note: fmt.Sprintf("%.3g at the best p, %.3g at the %s; agrees: the whole 95 %% interval over seeds above 1", r.error(b, epsilon).Middle, r.error(end.clip, epsilon).Middle, end.label),
			}, off(end.clip), off(b), 1))
		}
		for k, components := range r.components {
			if k == 0 || k < len(r.components)-1 && k != 1 {
				continue // the charts have them
			}
			of := func(clip int) float64 { return r.captured(clip, epsilon, k).Middle }
			b := best(of)
			note := fmt.Sprintf("%.4f at the best p, %v of the median norm; %.4f at the smallest, %.4f at the largest, %.4f without clip and noise; agrees: the whole 95 %% interval over seeds above %v",
				of(b), steps[b], of(0), of(last), r.captured(last, math.Inf(1), k).Middle, leastLoss)
			for _, end := range []struct {
				clip            int
				label, sentence string
			}{
				{0, "lost at the smallest p", "section 1.4, carried over from the sum to its components: a smaller p biases"}, {last, "lost at the largest p", "section 1.4, carried over from the sum to its components: a larger p adds noise"},
			} {
				why := "We believe that the first components of this set need no more than this p leaves of them. Tested by the error of the sum, which has a best p in between."
				if end.clip == 0 {
					why = fmt.Sprintf("We believe that long and short rows of this set point in nearly the same directions, so that a clip, which makes their lengths alike, takes little from its components. Tested without noise: %.4f at the smallest p, %.4f without a clip.", r.captured(0, math.Inf(1), k).Middle, r.captured(last, math.Inf(1), k).Middle)
				}
				lost := lab.Differences(r.cells[at{b, epsilon}], r.cells[at{end.clip, epsilon}], func(c cell) float64 { return c.Captured[k] })
				rows = append(rows, lab.Effect(study.Row{
					Section: section, Label: plural(components) + ": " + end.label, Metric: "share of the squared length", Settings: settings, Sentence: end.sentence, Note: note, Why: why,
				}, lost, leastLoss))
			}
		}
	}
	return append(append(rows, r.biasRows()...), r.tradeRow())
}

func plural(components int) string {
	if components == 1 {
		return "1 component"
	}
	return fmt.Sprintf("%d components", components)
}

// charts are captured shares and errors against p.
func (r *result) charts() []study.Chart {
	var out []study.Chart
	curves := func(of func(clip int, epsilon float64) lab.Spread) (series []study.Series) {
		for _, epsilon := range slices.Backward(epsilons) {
			name := fmt.Sprintf("epsilon %v", epsilon)
			if math.IsInf(epsilon, 1) {
				name = "no noise"
			}
			series = append(series, lab.Curve(name, r.sums.clips, func(i int) lab.Spread { return of(i, epsilon) }))
		}
		return series
	}
	for k, components := range r.components {
		out = append(out, study.Chart{
			Title:  fmt.Sprintf("%s: captured by %s", r.set.name, plural(components)),
			XTitle: "p, the largest norm of a row", YTitle: "share of the held-out rows' squared length", LogX: true,
			Note:   "example, add-remove, delta 1e-5; median and middle 80 % over seeds",
			Series: curves(func(clip int, epsilon float64) lab.Spread { return r.captured(clip, epsilon, k) }),
		})
	}
	return append(out, study.Chart{
		Title:  r.set.name + ": error of the sum",
		XTitle: "p, the largest norm of a row", YTitle: "distance to the plain sum over its length", LogX: true, LogY: true,
		Note:   "example, add-remove, delta 1e-5; median and middle 80 % over seeds",
		Series: curves(r.error),
	})
}
