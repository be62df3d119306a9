package fair

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"
)

// The definitions as the textbook has them: one loop over all rows for every
// rate. The package must agree with them.

// naiveRate is the share of rows of a group with the label asked for that were
// predicted 1; truth -1 asks for any label.
func naiveRate(r Rows, group string, truth int) float64 {
	selected, rows := 0, 0
	for i := range r.Truth {
		if r.Group[i] == group && (truth < 0 || r.Truth[i] == truth) {
			rows++
			selected += r.Predicted[i]
		}
	}
	return float64(selected) / float64(rows) // 0/0 is NaN
}

func naiveSpread(r Rows, truth int) (difference, ratio float64) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, g := range r.Group {
		rate := naiveRate(r, g, truth)
		if math.IsNaN(rate) {
			return rate, rate
		}
		least, most = math.Min(least, rate), math.Max(most, rate)
	}
	return most - least, least / most
}

// naiveMetrics are in the order of Metrics.All.
func naiveMetrics(r Rows) []float64 {
	dp, dpr := naiveSpread(r, -1)
	eo, eor := naiveSpread(r, 1)
	fp, fpr := naiveSpread(r, 0)
	all := []float64{dp, dpr, eo, eor, math.Max(eo, fp), math.Min(eor, fpr)}
	if !slices.ContainsFunc(r.Group, func(g string) bool { return g != r.Group[0] }) {
		for i := range all {
			all[i] = math.NaN()
		}
	}
	return all
}

// agrees checks a way to measure against the definitions.
func agrees(r Rows, measure func(Rows) (*Report, error)) error {
	report, err := measure(r)
	if err != nil {
		return err
	}
	want := naiveMetrics(r)
	i := 0
	for name, e := range report.Metrics.All() {
		if err := same(name, e.Value, want[i]); err != nil {
			return err
		}
		i++
	}
	for _, g := range report.Groups {
		rows, positives, right := 0, 0, 0
		for i := range r.Truth {
			if r.Group[i] == g.Name {
				rows++
				positives += r.Truth[i]
				if r.Truth[i] == r.Predicted[i] {
					right++
				}
			}
		}
		if g.Count != rows || g.Positives != positives {
			return fmt.Errorf("group %s: %d rows, %d positives, want %d, %d", g.Name, g.Count, g.Positives, rows, positives)
		}
		for _, c := range []struct {
			name string
			got  *float64
			want float64
		}{
			{"base rate", g.BaseRate.Value, float64(positives) / float64(rows)},
			{"selection rate", g.SelectionRate.Value, naiveRate(r, g.Name, -1)},
			{"true positive rate", g.TruePositiveRate.Value, naiveRate(r, g.Name, 1)},
			{"false positive rate", g.FalsePositiveRate.Value, naiveRate(r, g.Name, 0)},
			{"accuracy", g.Accuracy.Value, float64(right) / float64(rows)},
		} {
			if err := same(g.Name+": "+c.name, c.got, c.want); err != nil {
				return err
			}
		}
	}
	return nil
}

// same compares a figure with what it should be; NaN means undefined.
func same(what string, got *float64, want float64) error {
	switch {
	case math.IsNaN(want) && got == nil:
		return nil
	case got == nil:
		return fmt.Errorf("%s is undefined, want %v", what, want)
	case math.IsNaN(want):
		return fmt.Errorf("%s is %v, want undefined", what, *got)
	case math.Abs(*got-want) > 1e-12:
		return fmt.Errorf("%s is %v, want %v", what, *got, want)
	}
	return nil
}

// anyRows draws small populations, in which groups without positives or
// negatives are frequent.
func anyRows(t *rapid.T) Rows {
	n := rapid.IntRange(1, 60).Draw(t, "rows")
	groups := rapid.IntRange(1, 5).Draw(t, "groups")
	label := rapid.SliceOfN(rapid.IntRange(0, 1), n, n)
	r := Rows{Truth: label.Draw(t, "truth"), Predicted: label.Draw(t, "predicted")}
	for range n {
		r.Group = append(r.Group, string(rune('a'+rapid.IntRange(0, groups-1).Draw(t, "group"))))
	}
	if rapid.Bool().Draw(t, "clustered") {
		r.Cluster = rapid.SliceOfN(rapid.IntRange(-3, 9), n, n).Draw(t, "cluster")
	}
	if rapid.Bool().Draw(t, "losses") {
		// Eighths add up exactly in any order.
		for range n {
			r.Loss = append(r.Loss, float64(rapid.IntRange(0, 80).Draw(t, "loss"))/8)
		}
	}
	return r
}
