package account

import (
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// TestNodeSum: all examples of S in every step cost what Gaussian noise does on a sum that
// moves by 2S-1 clips, or twice that if another node comes in; nothing else is priced.
func TestNodeSum(t *testing.T) {
	release := func(unit event.Unit, relation event.Relation, what event.Event) event.Release {
		return event.Release{Unit: unit, Relation: relation, Claim: event.ClaimProved, Trust: event.TrustHolder, What: event.Repeated{Times: 10, Of: what}}
	}
	for relation, moves := range map[event.Relation]float64{event.OwnRecord: 11, event.Removal: 11, event.ReplaceOne: 22} {
		for _, m := range []Method{MethodRDP, MethodPLD} {
			got, err := Spend(release(event.UnitNode, relation, event.NodeSum{Examples: 6, Noise: 110}), m, 1e-7)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Spend(release(event.UnitExample, event.AddRemove, event.Gaussian{Noise: 110 / moves}), m, 1e-7)
			if err != nil {
				t.Fatal(err)
			}
			if got.Epsilon != want.Epsilon || got.Unit != event.UnitNode || got.Relation != relation {
				t.Errorf("%s, %s: %+v, want %v", relation, m, got, want.Epsilon)
			}
		}
	}
	for _, r := range []event.Release{
		release(event.UnitExample, event.AddRemove, event.NodeSum{Examples: 6, Noise: 1}),
		release(event.UnitNode, event.AddRemove, event.NodeSum{Examples: 6, Noise: 1}),
	} {
		if g, err := Spend(r, MethodRDP, 1e-7); err == nil {
			t.Errorf("%s, %s: epsilon %v", r.Unit, r.Relation, g.Epsilon)
		}
	}
	for _, n := range []int64{0, event.MaxOccurrences + 1} {
		if _, err := Spend(release(event.UnitNode, event.OwnRecord, event.NodeSum{Examples: n, Noise: 1}), MethodRDP, 1e-7); err == nil {
			t.Errorf("%d examples are priced", n)
		}
	}
}
