package silos

import (
	"math"
	"testing"

	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

// TestSchoolFigures holds the README's three figures, and that MR-MTL is best. Two
// seeds are too few for the order of the other two.
func TestSchoolFigures(t *testing.T) {
	o := labtest.Options(t, lab.Smoke)
	o.Seeds = 2
	l := labtest.New(t, tradeoff, o)
	rows, err := readmeRows(l, 201)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows[:3] {
		if ratio := *r.Measured / *r.Paper; ratio < 0.9 || ratio > 1.04 {
			t.Errorf("%s: %v, paper %v", r.Label, *r.Measured, *r.Paper)
		}
	}
	if len(rows) != 5 || *rows[3].Measured <= 0 {
		t.Errorf("%d rows of 5; MR-MTL gains %v", len(rows), *rows[3].Measured)
	}
}

// TestOutcomes: the best setting is the lowest mean for errors and the highest for
// shares.
func TestOutcomes(t *testing.T) {
	cells := [][]cell{{{Figure: 3}, {Figure: 3}}, {{Figure: 1}, {Figure: 2}}, {{Figure: 4}, {Figure: 5}}}
	if best := bestOf(cells, true); best != 1 {
		t.Errorf("the least error is that of setting %d", best)
	}
	if best := bestOf(cells, false); best != 2 {
		t.Errorf("the largest share is that of setting %d", best)
	}
	d := paired(outcome{cells: cells[2]}, outcome{cells: cells[1]})
	if d.Middle != 3 || math.Abs(d.High-d.Middle) > 1e-12 {
		t.Errorf("the paired difference is %+v, want 3 without spread", d)
	}
}
