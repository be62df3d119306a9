package ledger

import (
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// TestReplacedRowsTellTheSize: where rows are replaced the number of those that are trained on is public,
// and the ledger says so; where they come and go it is not.
func TestReplacedRowsTellTheSize(t *testing.T) {
	for relation, public := range map[event.Relation]bool{event.ReplaceOne: true, event.AddRemove: false} {
		l, err := Open(t.TempDir(), Policy{Ceilings: []Ceiling{{Unit: event.UnitExample, Relation: relation, Claim: event.ClaimProved, Epsilon: 1, Delta: 1e-5}}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s, err := l.Summary()
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(s.Budgets[0].NotCovered, publicSize); got != public {
			t.Errorf("%s: %q", relation, s.Budgets[0].NotCovered)
		}
	}
}
