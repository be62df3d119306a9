package ledger

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

// byServer is a release as dp-fedavg makes it: the participant sends its update, and
// the server adds the noise.
func byServer() event.Release {
	r := gaussian(8)
	r.Trust = event.TrustServer
	return r
}

// TestServersNoiseNeedsItsOwnCeiling: a ceiling says whose noise it takes for noise.
func TestServersNoiseNeedsItsOwnCeiling(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir)
	err := l.Check(byServer())
	mustFail(t, err, ErrRefused)
	if !strings.Contains(err.Error(), "trust: server") {
		t.Errorf("the refusal does not say what would allow it: %v", err)
	}
	mustFail(t, l.Reserve(charge(0, byServer())), ErrRefused)
	must(t, release(l, 0, gaussian(8)))
	must(t, l.Close())

	trusting := exampleCeiling
	trusting.Trust = event.TrustServer
	trusting.Epsilon = 2
	l, err = Open(dir, Policy{Ceilings: []Ceiling{exampleCeiling, trusting}})
	must(t, err)
	defer l.Close()
	must(t, l.Reconcile(testMember, nil))
	for round := 1; round <= 3; round++ {
		must(t, release(l, round, byServer()))
	}
	sum, err := l.Summary()
	must(t, err)
	own, servers := sum.Budgets[0], sum.Budgets[1]
	if own.Trust != event.TrustLocal || own.Releases != 1 || servers.Trust != event.TrustServer || servers.Releases != 3 || servers.Ceiling != 2 {
		t.Errorf("%+v\n%+v", own, servers)
	}
	alone, err := newTally(termsOf(gaussian(8)))
	must(t, err)
	must(t, alone.add(gaussian(8)))
	if want, err := alone.statement(exampleCeiling); err != nil || own.Epsilon != want.Epsilon {
		t.Errorf("the participant's own noise has spent %v with the server's beside it, %v alone", own.Epsilon, want.Epsilon)
	}
	if !strings.Contains(strings.Join(servers.NotCovered, "; "), "everything, against the server") {
		t.Errorf("not covered: %v", servers.NotCovered)
	}
	e, _ := l.Entry(slotAt(3))
	if r := e.Receipt.Receipt; r.Release.Trust != event.TrustServer || r.Spent.Trust != event.TrustServer || r.Spent.Epsilon != servers.Epsilon {
		t.Errorf("the receipt says %+v", r)
	}
	if len(sum.Runs) != 2 || sum.Runs[0].Trust == sum.Runs[1].Trust {
		t.Errorf("the run's releases are not apart: %+v", sum.Runs)
	}
}

func TestTrustIsNamed(t *testing.T) {
	for word, want := range map[string]event.Trust{"": event.TrustLocal, "participant": event.TrustLocal, "server": event.TrustServer} {
		if got, err := TrustNamed(word); err != nil || got != want {
			t.Errorf("%q: %q, %v", word, got, err)
		}
	}
	if _, err := TrustNamed("everybody"); err == nil {
		t.Error("everybody is trusted")
	}
}

// TestOnePlaceIsNoParticipant: releases of training in one place, where whoever holds all
// examples is trusted, count under no ceiling of a participant.
func TestOnePlaceIsNoParticipant(t *testing.T) {
	l := openTest(t, t.TempDir())
	r := gaussian(8)
	r.Trust = event.TrustHolder
	err := l.Check(r)
	mustFail(t, err, ErrRefused)
	if !strings.Contains(err.Error(), `noise added by "whoever holds all examples"`) {
		t.Errorf("the refusal does not say whose noise it is: %v", err)
	}
	must(t, l.Close())
}
