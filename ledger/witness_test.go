package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// witnessed opens a ledger with a witness and reconciles it with a server that has
// lost everything.
func witnessed(t *testing.T, dir, witness string) *Ledger {
	t.Helper()
	l, err := Open(dir, testPolicy, WithWitness(witness))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	must(t, l.Reconcile(testMember, nil))
	return l
}

// TestWitnessFindsOldCopies: the server's store is lost, so that no receipt tells of
// the releases that an old copy of the ledger has forgotten.
func TestWitnessFindsOldCopies(t *testing.T) {
	dir, witness := filepath.Join(t.TempDir(), "ledger"), filepath.Join(t.TempDir(), "witness")
	log := filepath.Join(dir, logFile)
	l := witnessed(t, dir, witness)
	must(t, release(l, 0, metricRelease(5)))
	old, err := os.ReadFile(log)
	must(t, err)
	must(t, l.Reserve(charge(1, metricRelease(5)))) // noise may be drawn from here on
	must(t, l.Close())
	newest, err := os.ReadFile(log)
	must(t, err)

	must(t, os.WriteFile(log, old, 0o600))
	_, err = Open(dir, testPolicy, WithWitness(witness))
	mustFail(t, err, ErrRollback)
	_, err = Read(dir, WithWitness(witness))
	mustFail(t, err, ErrRollback)
	if alone, err := Open(dir, testPolicy); err != nil { // as it was without a witness
		t.Error(err)
	} else {
		must(t, alone.Close())
	}

	// Cut in the midst of its last record, which reads like a write that never ended.
	must(t, os.WriteFile(log, newest[:len(newest)-7], 0o600))
	_, err = Open(dir, testPolicy, WithWitness(witness))
	mustFail(t, err, ErrRollback)
	if cut, err := Read(dir); err != nil || cut.torn == 0 {
		t.Errorf("a cut log reads as whole: %v", err)
	}

	// Another ledger, or none at all, in its place.
	must(t, os.RemoveAll(dir))
	_, err = Open(dir, testPolicy, WithWitness(witness))
	mustFail(t, err, ErrRollback)
	must(t, os.RemoveAll(dir))
	other := openTest(t, dir)
	for round := range 5 {
		must(t, release(other, round, metricRelease(50)))
	}
	must(t, other.Close())
	_, err = Open(dir, testPolicy, WithWitness(witness))
	mustFail(t, err, ErrRollback)

	must(t, os.WriteFile(log, newest, 0o600))
	l = witnessed(t, dir, witness)
	if !l.Witnessed() {
		t.Error("the newest copy is not known as such")
	}
	must(t, l.Reserve(charge(1, metricRelease(5))))
	must(t, l.Close())
	// The ledger may be ahead of its witness, which was put back itself.
	l = openTest(t, dir)
	must(t, release(l, 2, metricRelease(5)))
	must(t, l.Close())
	must(t, witnessed(t, dir, witness).Close())
}

// TestWitnessIsNotMadeUp: a disk that is not mounted must not pass for a new witness.
func TestWitnessIsNotMadeUp(t *testing.T) {
	dir, witness := filepath.Join(t.TempDir(), "ledger"), filepath.Join(t.TempDir(), "witness")
	l := openTest(t, dir)
	must(t, release(l, 0, metricRelease(5)))
	must(t, l.Close())
	_, err := Open(dir, testPolicy, WithWitness(witness))
	mustFail(t, err, ErrRollback)
	if !strings.Contains(err.Error(), "coterie ledger witness") {
		t.Errorf("it is not said what to do: %v", err)
	}
	must(t, CallWitness(dir, witness))
	if err := CallWitness(dir, witness); err == nil {
		t.Error("called twice")
	}
	l = witnessed(t, dir, witness)
	must(t, release(l, 1, metricRelease(5)))
	must(t, l.Close())
	must(t, os.WriteFile(witness, []byte("{}"), 0o600))
	_, err = Open(dir, testPolicy, WithWitness(witness))
	mustFail(t, err, ErrCorrupt)
	if err := CallWitness(filepath.Join(t.TempDir(), "nothing"), witness+"2"); err == nil {
		t.Error("a ledger that is not there has a witness")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "new"), testPolicy, WithWitness(filepath.Join(t.TempDir(), "unmounted", "witness"))); err == nil {
		t.Error("a folder that is not there was made")
	}
}

// TestNoNoiseBeforeTheWitness: a witness that cannot be written stops the release.
func TestNoNoiseBeforeTheWitness(t *testing.T) {
	d := newMemDisk()
	d.witness = "elsewhere/witness"
	l, err := openOn(d, testPolicy)
	must(t, err)
	defer l.Close()
	must(t, l.Reconcile(testMember, nil))
	for name := range d.names {
		if strings.HasPrefix(name, "elsewhere/") {
			d.fault = func(_ int, kind string) *fault {
				if kind == "create" {
					return &fault{}
				}
				return nil
			}
		}
	}
	if err := l.Reserve(charge(0, metricRelease(5))); !errors.Is(err, ErrPoisoned) {
		t.Errorf("paid without the witness: %v", err)
	}
	d.fault = nil
	if err := l.Reserve(charge(0, metricRelease(5))); !errors.Is(err, ErrPoisoned) {
		t.Errorf("went on: %v", err)
	}
}
