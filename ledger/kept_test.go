package ledger

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// released brings a slot all the way, and returns the server's receipt.
func released(t *testing.T, l *Ledger, s Slot, bytes []byte) SignedReceipt {
	t.Helper()
	c := charge(s.Round, metricRelease(40))
	c.Slot = s
	must(t, l.Reserve(c))
	must(t, l.Store(s, bytes))
	draft, err := l.Draft(s)
	must(t, err)
	signed, err := Sign(draft, testKey)
	must(t, err)
	must(t, l.Commit(s, signed))
	return signed
}

// openKept is openTest with room for so many files.
func openKept(t *testing.T, dir string, files int64) *Ledger {
	t.Helper()
	l, err := Open(dir, testPolicy, WithKept(files*block))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	must(t, l.Reconcile(testMember, nil))
	return l
}

// TestRestoredServerGetsTheSameBytes: a server that forgot what it signed for gets the same
// bytes with the same draft and signs the same receipt, also from a ledger that was opened
// anew; nothing is recorded, and nothing else is ever taken for the slot.
func TestRestoredServerGetsTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	l := openKept(t, dir, 8)
	first := released(t, l, slotAt(0), noised(0))
	last := released(t, l, slotAt(1), noised(1))
	spent, err := l.Summary()
	must(t, err)
	for _, open := range []string{"still", "again"} {
		if open == "again" {
			must(t, l.Close())
			l = openKept(t, dir, 8)
			must(t, l.Reconcile(testMember, &first)) // the server's last one, in its backup
		}
		before, records := l.Head()
		got, err := l.Load(slotAt(1))
		if err != nil || string(got) != string(noised(1)) {
			t.Fatalf("%s: %q, %v", open, got, err)
		}
		draft, err := l.Draft(slotAt(1))
		must(t, err)
		signed, err := Sign(draft, testKey)
		must(t, err)
		mine, _ := json.Marshal(last)
		theirs, _ := json.Marshal(signed)
		if string(mine) != string(theirs) {
			t.Fatalf("%s: the receipt is\n%s, was\n%s", open, theirs, mine)
		}
		must(t, l.Commit(slotAt(1), signed))
		mustFail(t, l.Reserve(charge(1, metricRelease(40))), ErrStored)
		mustFail(t, l.Reserve(charge(1, metricRelease(50))), ErrConflict)
		mustFail(t, l.Store(slotAt(1), noised(9)), ErrConflict)
		mustFail(t, l.Abandon(slotAt(1), "asked twice"), ErrConflict)
		if after, more := l.Head(); after != before || more != records {
			t.Errorf("%s: the ledger has %d records, had %d", open, more, records)
		}
	}
	sum, err := l.Summary()
	must(t, err)
	if sum.Budgets[1].Releases != 2 || sum.Budgets[1].Epsilon != spent.Budgets[1].Epsilon {
		t.Errorf("spent %+v, before %+v", sum.Budgets[1], spent.Budgets[1])
	}
}

// TestOldestGoFirst: there is room for so many files, of all runs together, while the
// ledger is open and when it is opened with less room.
func TestOldestGoFirst(t *testing.T) {
	dir := t.TempDir()
	l := openKept(t, dir, 3)
	for round := range 5 {
		released(t, l, slotAt(round), noised(round))
	}
	kept := func(l *Ledger) (rounds []int) {
		for round := range 5 {
			got, err := l.Load(slotAt(round))
			if err == nil && string(got) == string(noised(round)) && l.Keeps(slotAt(round)) {
				rounds = append(rounds, round)
				continue
			}
			mustFail(t, err, ErrGone)
			_, err = l.Draft(slotAt(round))
			mustFail(t, err, ErrGone)
		}
		return rounds
	}
	if got := kept(l); !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("kept are the rounds %v", got)
	}
	for _, room := range []int64{3, 1, 0, 3} {
		must(t, l.Close())
		l = openKept(t, dir, room)
		files, err := os.ReadDir(filepath.Join(dir, contentDir))
		must(t, err)
		want := map[int64][]int{3: {2, 3, 4}, 1: {4}}[room]
		if room == 3 && len(files) == 0 { // there was no room in between
			want = nil
		}
		if got := kept(l); !slices.Equal(got, want) || len(files) != len(want) {
			t.Errorf("with room for %d: kept are the rounds %v, in %d files; want %v", room, got, len(files), want)
		}
	}
}

// TestForgottenRuns: the bytes of a run that has ended go; those of others stay, also where
// they are the same.
func TestForgottenRuns(t *testing.T) {
	dir := t.TempDir()
	l := openKept(t, dir, 8)
	other := Slot{testMember.Federation, "run-2", 0}
	released(t, l, slotAt(0), []byte("same"))
	released(t, l, slotAt(1), noised(1))
	released(t, l, other, []byte("same"))
	l.Forget("elsewhere", "run-1")
	if !l.Keeps(slotAt(0)) || !l.Keeps(slotAt(1)) {
		t.Fatal("another federation's run was ended")
	}
	l.Forget(testMember.Federation, "run-1")
	for range 2 {
		// Round 0 shares its bytes with the other run: opened anew, the ledger finds them.
		if l.Keeps(slotAt(1)) {
			t.Error("the bytes of a run that has ended are kept")
		}
		if got, err := l.Load(other); err != nil || string(got) != "same" {
			t.Errorf("the other run's bytes: %q, %v", got, err)
		}
		must(t, l.Close())
		l = openKept(t, dir, 8)
	}
	l.Forget(testMember.Federation, "run-1")
	l.Forget(testMember.Federation, "run-2")
	if files, err := os.ReadDir(filepath.Join(dir, contentDir)); err != nil || len(files) > 0 {
		t.Errorf("left are %v, %v", files, err)
	}
}

// TestDamagedKeptBytesAreGone: bytes that changed on the disk are never sent, and stop
// nothing else.
func TestDamagedKeptBytesAreGone(t *testing.T) {
	l := openKept(t, t.TempDir(), 8)
	released(t, l, slotAt(0), noised(0))
	released(t, l, slotAt(1), noised(1))
	must(t, os.WriteFile(l.path(contentDir, hashOf(string(noised(0))).String()), []byte("noised bytes of round X"), 0o600))
	for range 2 {
		_, err := l.Load(slotAt(0))
		mustFail(t, err, ErrGone)
	}
	if l.Keeps(slotAt(0)) || !l.Keeps(slotAt(1)) {
		t.Error("damaged bytes are kept, or whole ones are not")
	}
	released(t, l, slotAt(2), noised(2))
}
