package ledger

import (
	"fmt"
	"testing"
)

// TestPoisonedUntilReopened: after a write or sync that failed nothing more is done,
// though the disk works again.
func TestPoisonedUntilReopened(t *testing.T) {
	for _, op := range []string{"reserve", "store", "commit", "abandon", "reconcile"} {
		for at := 1; at <= 8; at++ {
			t.Run(fmt.Sprintf("%s, operation %d", op, at), func(t *testing.T) {
				d := newMemDisk()
				l, err := openOn(d, crashPolicy)
				must(t, err)
				must(t, l.Reconcile(testMember, nil))
				must(t, l.Reserve(charge(0, crashRelease)))
				must(t, l.Store(slotAt(0), noised(0)))
				must(t, l.Reserve(charge(1, crashRelease)))
				draft, err := l.Draft(slotAt(0))
				must(t, err)
				receipt, err := Sign(draft, testKey)
				must(t, err)

				fail, failed := d.ops+at, ""
				d.fault = func(n int, kind string) *fault {
					if n == fail {
						failed = kind
						return &fault{}
					}
					return nil
				}
				stranger := testMember
				stranger.Federation = "hospitals"
				err = map[string]func() error{
					"reserve":   func() error { return l.Reserve(charge(2, crashRelease)) },
					"store":     func() error { return l.Store(slotAt(1), noised(1)) },
					"commit":    func() error { return l.Commit(slotAt(0), receipt) },
					"abandon":   func() error { return l.Abandon(slotAt(1), "given up") },
					"reconcile": func() error { return l.Reconcile(stranger, nil) },
				}[op]()
				d.fault = nil
				if failed == "" || failed == "remove" { // it has fewer operations, or one that does not matter
					must(t, err)
					return
				}
				mustFail(t, err, ErrPoisoned)
				before := d.ops
				_, loaded := l.Load(slotAt(0))
				_, drafted := l.Draft(slotAt(0))
				for name, err := range map[string]error{
					"load": loaded, "draft": drafted,
					"reserve": l.Reserve(charge(1, crashRelease)), "store": l.Store(slotAt(1), noised(1)),
					"commit": l.Commit(slotAt(0), receipt), "abandon": l.Abandon(slotAt(1), "given up"),
					"reconcile": l.Reconcile(testMember, nil),
				} {
					if err == nil {
						t.Errorf("%s after a failed %s", name, failed)
						continue
					}
					mustFail(t, err, ErrPoisoned)
				}
				if d.ops != before {
					t.Errorf("%d operations on the disk after a failed %s", d.ops-before, failed)
				}
				must(t, l.Close())
				l, err = openOn(d, crashPolicy)
				must(t, err)
				must(t, l.Reconcile(testMember, nil))
				must(t, l.Commit(slotAt(0), receipt))
			})
		}
	}
}

// TestImpossibleRecordsAreRefused writes records with valid checksums into a chain in
// which they cannot be.
func TestImpossibleRecordsAreRefused(t *testing.T) {
	_, log, last := filledLedger(t)
	start := &Ledger{state: newState()}
	_, err := start.replay(log)
	must(t, err)
	again, stored, unknown := charge(0, metricRelease(5)), slotAt(2), slotAt(77)
	stranger := charge(50, metricRelease(5))
	stranger.Slot.Federation = "hospitals"
	unnamed := charge(50, metricRelease(5))
	unnamed.Release.Claim = "heuristic"
	raised := metricCeiling
	raised.Epsilon = 1000
	bytes := &content{Hash: Hash{1}, Size: 1, Counter: start.state.counters["schools"] + 1}
	skipped := *bytes
	skipped.Counter++
	id := Hash{1}
	for name, r := range map[string]record{
		"founded twice":              {Kind: kindFounded, Identity: &id},
		"slot reserved twice":        {Kind: kindReserve, Charge: &again},
		"reserved without a member":  {Kind: kindReserve, Charge: &stranger},
		"reserved without a ceiling": {Kind: kindReserve, Charge: &unnamed},
		"stored twice":               {Kind: kindStore, Slot: &stored, Content: bytes},
		"stored without a charge":    {Kind: kindStore, Slot: &unknown, Content: bytes},
		"counter skipped":            {Kind: kindStore, Slot: &stored, Content: &skipped},
		"committed twice":            {Kind: kindCommit, Slot: &last.Receipt.Slot, Receipt: &last},
		"someone else's receipt":     {Kind: kindCommit, Slot: &stored, Receipt: &last},
		"abandoned without a charge": {Kind: kindAbandon, Slot: &unknown, Reason: "why"},
		"member twice":               {Kind: kindMember, Membership: &testMember},
		"ceiling raised silently":    {Kind: kindCeiling, Ceiling: &raised},
		"unknown kind":               {Kind: "refund"},
		"no charge":                  {Kind: kindReserve},
		"too much":                   {Kind: kindAbandon, Slot: &stored, Charge: &again},
	} {
		payload, err := r.encode()
		must(t, err)
		framed, _, err := frame(int64(len(log)), start.state.head, payload)
		must(t, err)
		if _, err := (&Ledger{state: newState()}).replay(append(log[:len(log):len(log)], framed...)); err == nil {
			t.Errorf("%s: believed", name)
		} else {
			mustFail(t, err, ErrCorrupt)
		}
	}
}
