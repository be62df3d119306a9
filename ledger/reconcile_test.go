package ledger

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReconcile(t *testing.T) {
	dir, _, last := filledLedger(t)
	open := func(t *testing.T) *Ledger {
		l, err := Open(dir, testPolicy)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	t.Run("needed", func(t *testing.T) {
		mustFail(t, open(t).Reserve(charge(7, metricRelease(5))), ErrStranger)
	})
	t.Run("known receipt", func(t *testing.T) {
		l := open(t)
		must(t, l.Reconcile(testMember, &last))
		must(t, l.Contains(last))
	})
	t.Run("a server that lost its receipts", func(t *testing.T) {
		must(t, open(t).Reconcile(testMember, nil))
	})
	t.Run("another key", func(t *testing.T) {
		m := testMember
		m.Key[0] ^= 1
		mustFail(t, open(t).Reconcile(m, nil), ErrStranger)
	})
	t.Run("another name", func(t *testing.T) {
		m := testMember
		m.Participant = "school-2"
		mustFail(t, open(t).Reconcile(m, nil), ErrStranger)
	})
	t.Run("no key", func(t *testing.T) {
		if err := open(t).Reconcile(Membership{Federation: "new", Participant: "school-1"}, nil); err == nil {
			t.Error("a federation without a key was taken")
		}
	})
	t.Run("someone else's receipt", func(t *testing.T) {
		other := last.Receipt
		other.Participant = "school-2"
		signed, err := Sign(other, testKey)
		must(t, err)
		mustFail(t, open(t).Reconcile(testMember, &signed), ErrReceipt)
	})
	t.Run("a receipt from the future", func(t *testing.T) {
		next := last.Receipt
		next.Round, next.Counter, next.Head = 8, next.Counter+1, Hash{1}
		signed, err := Sign(next, testKey)
		must(t, err)
		l := open(t)
		mustFail(t, l.Reconcile(testMember, &signed), ErrRollback)
		mustFail(t, l.Reserve(charge(7, metricRelease(5))), ErrRollback)
		mustFail(t, l.Reconcile(testMember, &last), ErrRollback) // until it is opened again
	})
	t.Run("lost acknowledgement", func(t *testing.T) {
		l := open(t)
		draft, err := l.Draft(slotAt(2))
		must(t, err)
		signed, err := Sign(draft, testKey)
		must(t, err)
		must(t, l.Reconcile(testMember, &signed))
		if e, _ := l.Entry(slotAt(2)); e.Status != Committed {
			t.Errorf("%s", e.Status)
		}
	})
}

// TestRestoredCopyIsDetected takes a copy after every release and puts it back after
// all of them.
func TestRestoredCopyIsDetected(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ledger")
	l := openTest(t, dir)
	rounds, refused := 8, 0
	var copies [][]byte
	for round := range rounds {
		log, err := os.ReadFile(filepath.Join(dir, logFile))
		must(t, err)
		copies = append(copies, log)
		must(t, release(l, round, metricRelease(5)))
	}
	e, _ := l.Entry(slotAt(rounds - 1))
	must(t, l.Close())
	for _, log := range copies {
		must(t, os.WriteFile(filepath.Join(dir, logFile), log, 0o600))
		l, err := Open(dir, testPolicy)
		must(t, err)
		mustFail(t, l.Reconcile(testMember, e.Receipt), ErrRollback)
		mustFail(t, l.Reserve(charge(20, metricRelease(5))), ErrRollback)
		refused++
		must(t, l.Close())
	}
	// A new ledger in place of the old one is found out as well.
	fresh, err := Open(t.TempDir(), testPolicy)
	must(t, err)
	defer fresh.Close()
	mustFail(t, fresh.Reconcile(testMember, e.Receipt), ErrRollback)
	t.Logf("%d old copies put back, %d refused", len(copies), refused)
}
