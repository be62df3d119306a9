// Package fair holds group fairness metrics with intervals.
//
// The definitions and names are Fairlearn's (fairlearn.metrics), with two
// differences: a rate without rows to count, and a comparison of one group with
// nothing, are undefined here, where Fairlearn gives 0 or 1. docs/fairness.md
// tells how to read the figures.
package fair

import (
	"fmt"
	"math"
	"slices"
)

// Estimate is a figure and its bootstrap interval. A nil Value is undefined, a
// nil Low and High is no interval; Why then says the reason. In a report
// without intervals (Measure) Why speaks of the value alone.
type Estimate struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	// UndefinedResamples counts the resamples in which the figure is undefined,
	// as when no unit of a small group was drawn. They are taken as lying beyond
	// both ends of the interval, which can only widen it.
	UndefinedResamples int    `json:"undefined_resamples"`
	Why                string `json:"why,omitempty"`
}

// String gives the figure as a table would show it.
func (e Estimate) String() string {
	switch {
	case e.Value == nil:
		return "undefined"
	case e.Low == nil || e.High == nil:
		return fmt.Sprintf("%.3f", *e.Value)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", *e.Value, *e.Low, *e.High)
}

// Sampling says what the intervals of a report rest on.
type Sampling struct {
	// Unit is what was resampled: "cluster" if clusters were given, else "row".
	Unit string `json:"unit"`
	// Units is how many independent units there are.
	Units int `json:"units"`
	Rows  int `json:"rows"`
	// Level, Resamples and Seed are 0 in a report without intervals.
	Level     float64 `json:"level"`
	Resamples int     `json:"resamples"`
	Seed      uint64  `json:"seed"`
}

func newSampling(s *sample, cluster []int, b Bootstrap) Sampling {
	out := Sampling{Unit: "row", Units: s.units, Rows: s.rows, Level: b.Level, Resamples: b.Resamples, Seed: b.Seed}
	if cluster != nil {
		out.Unit = "cluster"
	}
	return out
}

// indexGroups gives every row the place of its group among the sorted names.
func indexGroups(group []string) (names []string, of []int32, err error) {
	place := map[string]int32{}
	for i, g := range group {
		if g == "" {
			return nil, nil, fmt.Errorf("fair: row %d has no group: give missing values a name of their own, or leave the row out", i)
		}
		if _, known := place[g]; !known {
			place[g] = 0
			names = append(names, g)
		}
	}
	slices.Sort(names)
	for i, g := range names {
		place[g] = int32(i)
	}
	of = make([]int32, len(group))
	for i, g := range group {
		of[i] = place[g]
	}
	return names, of, nil
}

// checkRows checks the number of rows, and that columns have one value a row.
func checkRows(rows int, columns ...column) error {
	if rows == 0 {
		return fmt.Errorf("fair: no rows: nothing can be measured")
	}
	if rows > math.MaxInt32 {
		return fmt.Errorf("fair: %d rows, at most %d", rows, math.MaxInt32)
	}
	for _, c := range columns {
		if c.length != rows && (c.given || !c.optional) {
			return fmt.Errorf("fair: %s has %d values for %d rows: give one for every row", c.name, c.length, rows)
		}
	}
	return nil
}

// column names a column of the input and its length.
type column struct {
	name            string
	length          int
	optional, given bool
}

// maxLoss keeps the sums of any resample finite: with 2^31 rows they are at most
// 2^62 times as large.
const maxLoss = 1e280

func checkLosses(name string, losses []float64) error {
	for i, v := range losses {
		if !(math.Abs(v) <= maxLoss) { // true for NaN as well
			return fmt.Errorf("fair: %s of row %d is %v: it must be a number of at most %g", name, i, v, maxLoss)
		}
	}
	return nil
}

// number turns the inner form of a figure, where NaN is undefined, into the
// outer one.
func number(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}
