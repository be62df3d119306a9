package meanestimation

import (
	"context"
	"testing"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

// TestTheoryFigures: the formulas of paper 002, section 1.6, agree with what is
// drawn, and charged tuning is worse than none where the paper says so. The seeds
// are fixed: the figures repeat.
func TestTheoryFigures(t *testing.T) {
	for _, e := range []lab.Experiment{meanEstimation, tuningCost} {
		o := labtest.Options(t, lab.Smoke)
		o.Seeds = 12
		s, err := e.Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		agrees := 0
		for _, r := range s.Rows {
			switch r.Verdict {
			case study.Agrees:
				agrees++
			case study.Differs:
				t.Errorf("%s: %s, %s: %v, paper %v", e.ID, r.Section, r.Label, *r.Measured, r.Paper)
			}
		}
		if agrees < 20 {
			t.Errorf("%s: %d rows agree", e.ID, agrees)
		}
	}
}
