package repro

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report/study"
)

// TestTheoryFigures: the formulas of paper 002, section 1.6, agree with what is
// drawn, and charged tuning is worse than none where the paper says so. The seeds
// are fixed: the figures repeat.
func TestTheoryFigures(t *testing.T) {
	for _, id := range []string{"mean-estimation", "tuning-cost"} {
		o := options(t, Smoke)
		o.Seeds = 4
		s, err := Run(context.Background(), id, o)
		if err != nil {
			t.Fatal(err)
		}
		agrees := 0
		for _, r := range s.Rows {
			switch r.Verdict {
			case study.Agrees:
				agrees++
			case study.Differs:
				t.Errorf("%s: %s, %s: %v, paper %v", id, r.Section, r.Label, *r.Measured, r.Paper)
			}
		}
		if agrees < 20 {
			t.Errorf("%s: %d rows agree", id, agrees)
		}
	}
}

// TestSchoolFigures holds the README's three figures, and that MR-MTL is best. Two
// seeds are too few for the order of the other two.
func TestSchoolFigures(t *testing.T) {
	folder := os.Getenv("COTERIE_DATA")
	if folder == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	l := &lab{ctx: context.Background(), options: options(t, Smoke), seeds: 2, folder: data.NewFolder(folder), cells: t.TempDir()}
	rows, err := l.readmeRows(201)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Paper == nil && *r.Measured >= 1 || r.Paper != nil && r.Verdict != study.Agrees {
			t.Errorf("%s: %v, paper %v", r.Label, *r.Measured, r.Paper)
		}
	}
	if len(rows) != 4 {
		t.Errorf("%d rows of 4", len(rows))
	}
}

// TestOutcomes: the best setting is the lowest mean for errors and the highest for
// shares.
func TestOutcomes(t *testing.T) {
	c := lambdaCurve{lambdas: []float64{0.1, 1, 10}, cells: [][]siloCell{{{Figure: 3}, {Figure: 3}}, {{Figure: 1}, {Figure: 2}}, {{Figure: 4}, {Figure: 5}}}, lower: true}
	if l, _ := c.best(); l != 1 {
		t.Errorf("the least error is at lambda %v", l)
	}
	c.lower = false
	if l, _ := c.best(); l != 10 {
		t.Errorf("the largest share is at lambda %v", l)
	}
	d := paired(outcome{cells: c.cells[2]}, outcome{cells: c.cells[1]})
	if d.middle != 3 || math.Abs(d.high-d.middle) > 1e-12 {
		t.Errorf("the paired difference is %+v, want 3 without spread", d)
	}
}
