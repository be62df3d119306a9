package server

import (
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
)

// TestLeaversThatPaidAreWaitedFor: a server that is done stays for everybody who ever
// released, also for those who have declined the rest.
func TestLeaversThatPaidAreWaitedFor(t *testing.T) {
	b := newBench(t, func(p *plan.Plan) { p.Minimum, p.Quorum = 1, 3 })
	for i, name := range federationtest.Names {
		b.work(name)
		if name == "west" { // it leaves without ever having released
			if err := b.c.decline(t.Context(), name, b.slot(0), true, "policy"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		b.mustSend(name, 0, float64(i), 2)
	}
	for _, name := range federationtest.Names[:2] { // and the others decline the rest: the run ends
		if err := b.c.decline(t.Context(), name, b.slot(1), true, "budget"); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range federationtest.Names[:2] {
		_, end, err := b.c.next(t.Context(), name, b.plan.Run, b.c.sum[:], 10*time.Second)
		if err != nil || end == nil {
			t.Fatalf("%s is not told of the end: %v", name, err)
		}
		if b.c.presence.allServed() {
			t.Fatalf("the server goes before %s has the models", name)
		}
		if _, err := b.c.content(name, b.plan.Run, end.models.sum[:]); err != nil {
			t.Fatal(err)
		}
		if done := b.c.presence.allServed(); done != (i == 1) {
			t.Errorf("after %s the server is done: %v", name, done)
		}
	}
}
