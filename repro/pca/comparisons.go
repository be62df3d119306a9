package pca

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// printedRows are the thesis's own formula: noise of deviation c*p, c from its theorem 1,
// where the sum moves by p^2. Its epsilon is what is claimed, ours what is true.
func printedRows() []study.Row {
	var rows []study.Row
	for _, claimed := range []float64{0.1, 0.5, 0.9} { // theorem 1 holds below 1 only
		c := math.Sqrt(2*math.Log(1.25/delta)) / claimed
		for _, p := range []float64{0.25, 1, 4, 9.2} {
			// Noise c*p on a sum that moves by p^2.
			kept, err := account.GaussianEpsilon(c/p, 1, delta, event.AddRemove)
			if err != nil {
				kept = math.Inf(1)
			}
			row := lab.Measured(study.Row{
				Section: "As printed: noise for a sensitivity of p", Label: fmt.Sprintf("claimed epsilon %v, p %v", claimed, p), Metric: "epsilon that is kept", Unit: "example, add-remove, delta 1e-5",
				Paper: lab.Number(claimed), Settings: map[string]any{"p": p},
				Note: "erratum to equation 1.9: the sensitivity is p^2; agrees: at most what is claimed",
				Why:  "We believe that equation 1.9 lacks a square: x'x has the norm of x, squared. Tested by the exact epsilon of the Gaussian mechanism, which is what is claimed, or less, where p is 1 or less.",
			}, lab.Exactly(kept))
			rows = append(rows, lab.Judged(row, 0, claimed))
		}
	}
	return rows
}

// silos is how many the rows are dealt to where they are.
const silos = 10

// comparisons are of what the thesis has otherwise or not at all: noise of the full variance
// above the diagonal, and rows that lie with several silos.
func (r *result) comparisons(l *lab.Lab) ([]study.Row, error) {
	const clip, epsilon = 4, 1.0
	m := r.sums
	share, err := r.set.share(m.clips[clip])
	if err != nil {
		return nil, err
	}
	alone := *m
	alone.clipped = append([][]float64(nil), m.clipped...)
	alone.clipped[clip] = share
	arms := []struct {
		name, note string
		noised     func(seed int) ([]float64, error)
	}{
		{"one holder of all rows", "", func(seed int) ([]float64, error) { return m.noised(clip, epsilon, 1, seed) }},
		{"noise above the diagonal as on it", "as the thesis has it: twice the variance that it takes", func(seed int) ([]float64, error) { return m.noised(clip, epsilon, math.Sqrt2, seed) }},
		{fmt.Sprintf("%d silos, each with noise of its own, summed", silos), "algorithm.kind pca", func(seed int) ([]float64, error) { return m.summed(clip, epsilon, seed) }},
		{fmt.Sprintf("a silo with every %dth row, alone", silos), "algorithm.kind pca-local", func(seed int) ([]float64, error) { return alone.noised(clip, epsilon, 1, seed) }},
	}
	var rows []study.Row
	for _, arm := range arms {
		cells := make([]cell, l.Seeds)
		var jobs []func() error
		for seed := range cells {
			jobs = append(jobs, func() error {
				return l.Remember([]any{r.set.name, m.rows, arm.name, seed}, &cells[seed], func(l *lab.Lab) (any, error) {
					sum, err := arm.noised(seed)
					if err != nil {
						return nil, err
					}
					return m.judged(sum, r.components)
				})
			})
		}
		if err := l.All(jobs); err != nil {
			return nil, err
		}
		for k, components := range r.components {
			rows = append(rows, lab.Measured(study.Row{
				Section: r.set.name + ", epsilon 1, p at the median norm", Label: fmt.Sprintf("%s: %s", arm.name, plural(components)), Metric: "share of the squared length",
				Verdict: study.NoNumber, Note: arm.note,
			}, lab.Quantiles(lab.Pick(cells, func(c cell) float64 { return c.Captured[k] }))))
		}
	}
	return rows, nil
}

// summed is the sum of all silos' releases.
func (m *sums) summed(clip int, epsilon float64, seed int) ([]float64, error) {
	out := append([]float64(nil), m.clipped[clip]...)
	for silo := range silos {
		one, err := m.noised(clip, epsilon, 1, 1000*(silo+1)+seed)
		if err != nil {
			return nil, err
		}
		for i, v := range m.clipped[clip] {
			out[i] += one[i] - v
		}
	}
	return out, nil
}

// share is the clipped sum of every tenth row.
func (s *set) share(clip float64) ([]float64, error) {
	plain, at := mech.NewPlainMoments(s.features), 0
	err := s.each(s.train, func(x []float64) error {
		if at++; at%silos > 0 {
			return nil
		}
		row := append([]float64(nil), x...)
		if _, err := mech.Clip(row, clip); err != nil {
			return err
		}
		return plain.Add(row)
	})
	if err != nil {
		return nil, err
	}
	out := make([]float64, mech.TriangleLength(s.features))
	return out, plain.Unprotected(out)
}
