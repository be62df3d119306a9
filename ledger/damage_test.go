package ledger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// filledLedger is a folder with a ledger in which every kind of record occurs, its
// log, and the last receipt that the server signed.
func filledLedger(t *testing.T) (dir string, log []byte, last SignedReceipt) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "ledger")
	l := openTest(t, dir)
	must(t, release(l, 0, metricRelease(5)))
	must(t, l.Reserve(charge(1, gaussian(5))))
	must(t, l.Abandon(slotAt(1), "too few participants"))
	must(t, l.Reserve(charge(2, metricRelease(5))))
	must(t, l.Store(slotAt(2), noised(2)))
	must(t, release(l, 3, gaussian(5)))
	e, _ := l.Entry(slotAt(3))
	must(t, l.Close())
	log, err := os.ReadFile(filepath.Join(dir, logFile))
	must(t, err)
	return dir, log, *e.Receipt
}

// TestEveryFlippedByteIsDetected flips every bit of every byte of a log.
func TestEveryFlippedByteIsDetected(t *testing.T) {
	_, log, _ := filledLedger(t)
	accept := func([]byte, Hash) error { return nil }
	for i := range log {
		for bit := range 8 {
			log[i] ^= 1 << bit
			if _, err := scan(log, accept); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("bit %d of byte %d of %d: %v", bit, i, len(log), err)
			}
			log[i] ^= 1 << bit
		}
		for _, other := range []byte{0x00, 0xFF, log[i] ^ 0xFF, marker} {
			if other == log[i] {
				continue
			}
			was := log[i]
			log[i] = other
			if _, err := scan(log, accept); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d of %d became %#x: %v", i, len(log), other, err)
			}
			log[i] = was
		}
	}
	t.Logf("%d bytes, each with 8 flipped bits and up to 4 other values: all detected", len(log))
}

// TestFlippedFileIsNotOpened takes the same way through Open and Read for some bytes.
func TestFlippedFileIsNotOpened(t *testing.T) {
	dir, log, _ := filledLedger(t)
	path := filepath.Join(dir, logFile)
	stride := len(log)/60 + 1
	if *soak {
		stride = 1
	}
	for i := 0; i < len(log); i += stride {
		damaged := bytes.Clone(log)
		damaged[i] ^= 0x10
		must(t, os.WriteFile(path, damaged, 0o600))
		_, err := Open(dir, testPolicy)
		mustFail(t, err, ErrCorrupt)
		_, err = Read(dir)
		mustFail(t, err, ErrCorrupt)
		after, err := os.ReadFile(path)
		must(t, err)
		if !bytes.Equal(after, damaged) {
			t.Fatalf("byte %d: a damaged ledger was changed", i)
		}
	}
}

// ends are the offsets at which records end.
func ends(t *testing.T, log []byte) []int {
	t.Helper()
	at, list := len(magic), []int(nil)
	_, err := scan(log, func(payload []byte, _ Hash) error {
		at += headerSize + len(payload) + footerSize
		list = append(list, at)
		return nil
	})
	must(t, err)
	return list
}

// TestTruncationAtEveryLength: what is left of a cut log is the whole records before
// the cut, and nothing if the founding record is not whole.
func TestTruncationAtEveryLength(t *testing.T) {
	_, log, _ := filledLedger(t)
	ends := ends(t, log)
	for length := range len(log) {
		records, whole := 0, 0
		for _, end := range ends {
			if end <= length {
				records, whole = records+1, end
			}
		}
		if records == 0 {
			_, err := (&Ledger{state: newState()}).replay(log[:length])
			mustFail(t, err, ErrCorrupt)
			continue
		}
		found := 0
		got, err := scan(log[:length], func([]byte, Hash) error { found++; return nil })
		if err != nil || int(got) != whole || found != records {
			t.Fatalf("cut at %d: %d bytes, %d records, %v; want %d bytes, %d records", length, got, found, err, whole, records)
		}
	}
}

// TestZeroTailIsCut: some file systems leave zeros for what was not written.
func TestZeroTailIsCut(t *testing.T) {
	_, log, _ := filledLedger(t)
	for _, end := range ends(t, log) {
		for _, zeros := range []int{1, headerSize, 100, 5000} {
			l := &Ledger{state: newState()}
			whole, err := l.replay(append(bytes.Clone(log[:end]), make([]byte, zeros)...))
			if err != nil || int(whole) != end {
				t.Fatalf("%d zeros after byte %d: %d, %v", zeros, end, whole, err)
			}
		}
	}
	// A whole record that lost its content was acknowledged: it is not cut.
	last := ends(t, log)
	blank := bytes.Clone(log)
	clear(blank[last[len(last)-2]+headerSize:])
	_, err := (&Ledger{state: newState()}).replay(blank)
	mustFail(t, err, ErrCorrupt)
}

// TestRecordsNeverEndWithASector is what the zero tail's argument rests on.
func TestRecordsNeverEndWithASector(t *testing.T) {
	for size := range 3 * sector {
		for _, offset := range []int64{int64(len(magic)), 511, 512, 1000} {
			framed, _, err := frame(offset, origin(), bytes.Repeat([]byte{'x'}, size))
			must(t, err)
			if (offset+int64(len(framed)))%sector == 0 {
				t.Fatalf("a record of %d bytes at %d ends with a sector", size, offset)
			}
		}
	}
}

// TestCutIsVisible: a torn record is removed once, and the ledger says so.
func TestCutIsVisible(t *testing.T) {
	dir, log, _ := filledLedger(t)
	path := filepath.Join(dir, logFile)
	must(t, os.WriteFile(path, log[:len(log)-1], 0o600))
	for range 2 {
		l, err := Open(dir, testPolicy)
		must(t, err)
		sum, err := l.Summary()
		must(t, err)
		if len(sum.Notes) != 1 {
			t.Fatalf("notes %v, want the cut alone", sum.Notes)
		}
		must(t, l.Close())
	}
}

// TestMovedRecordsAreDetected: records that are whole but not in their place.
func TestMovedRecordsAreDetected(t *testing.T) {
	_, log, _ := filledLedger(t)
	ends := ends(t, log)
	cut := func(i int) []byte { return log[ends[i-1]:ends[i]] }
	for i := 1; i+1 < len(ends); i++ {
		removed := append(bytes.Clone(log[:ends[i-1]]), log[ends[i]:]...)
		doubled := append(append(bytes.Clone(log[:ends[i]]), cut(i)...), log[ends[i]:]...)
		swapped := append(append(append(bytes.Clone(log[:ends[i-1]]), cut(i+1)...), cut(i)...), log[ends[i+1]:]...)
		for name, changed := range map[string][]byte{"removed": removed, "doubled": doubled, "swapped": swapped} {
			_, err := (&Ledger{state: newState()}).replay(changed)
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("record %d %s: %v", i, name, err)
			}
		}
	}
}

// TestMissingLogIsNotANewLedger: a folder that had a ledger does not start anew.
func TestMissingLogIsNotANewLedger(t *testing.T) {
	dir, _, _ := filledLedger(t)
	must(t, os.Remove(filepath.Join(dir, logFile)))
	_, err := Open(dir, testPolicy)
	mustFail(t, err, ErrCorrupt)
}

// TestOthersCannotUseTheLedger checks file modes.
func TestOthersCannotUseTheLedger(t *testing.T) {
	dir, _, _ := filledLedger(t)
	for _, name := range []string{logFile, lockFile, filepath.Join(contentDir, hashOf(string(noised(2))).String())} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %04o", name, info.Mode().Perm())
		}
	}
	must(t, os.Chmod(filepath.Join(dir, logFile), 0o644))
	_, err := Open(dir, testPolicy)
	mustFail(t, err, ErrCorrupt)
	must(t, os.Chmod(filepath.Join(dir, logFile), 0o600))
	must(t, os.Chmod(dir, 0o777))
	if _, err := Open(dir, testPolicy); err == nil {
		t.Error("a folder that everybody can write to was taken")
	}
}

// TestLostContentStopsItsSlotAlone: stored bytes that are gone are never sent anew.
func TestLostContentStopsItsSlotAlone(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"changed": func(path string) error { return os.WriteFile(path, []byte("other bytes of the slot"), 0o600) },
		"longer":  func(path string) error { return os.WriteFile(path, append(noised(2), '!'), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, last := filledLedger(t)
			must(t, harm(filepath.Join(dir, contentDir, hashOf(string(noised(2))).String())))
			l := openTest(t, dir)
			must(t, l.Reconcile(testMember, &last))
			_, err := l.Load(slotAt(2))
			mustFail(t, err, ErrCorrupt)
			mustFail(t, l.Reserve(charge(2, metricRelease(5))), ErrStored)
			mustFail(t, l.Store(slotAt(2), noised(7)), ErrConflict)
			must(t, l.Abandon(slotAt(2), "the stored bytes are lost"))
			must(t, release(l, 9, metricRelease(5)))
		})
	}
}
