package robust

import (
	"testing"

	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/repro/lab/labtest"
)

// TestADrivenOutModelIsAFigure: liars that drive the mean out of the finite numbers leave an
// accuracy of 0, not a study without a table; a median stands them.
func TestADrivenOutModelIsAFigure(t *testing.T) {
	l := labtest.New(t, Experiments[0], labtest.Options(t, lab.Smoke))
	s := sizes[lab.Smoke]
	for rule, gone := range map[string]bool{"": true, "median": false} {
		run := s.runOf(key{Rule: rule, Lie: 2, Share: 0.3})
		run.Judge.Hostile.Factor = 1e30
		run, err := l.Resolve(run)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.accuracy(l, run)
		if err != nil {
			t.Fatalf("%s: %v", nameOf(rule), err)
		}
		if gone != (got == 0) {
			t.Errorf("%s: accuracy %v", nameOf(rule), got)
		}
	}
}
