package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// fuzzLog is the log of a small ledger.
func fuzzLog(f *testing.F) []byte {
	f.Helper()
	dir := filepath.Join(f.TempDir(), "ledger")
	l := openTest(f, dir)
	for round := range 2 {
		if err := release(l, round, metricRelease(5)); err != nil {
			f.Fatal(err)
		}
	}
	if err := l.Reserve(charge(2, gaussian(4))); err != nil {
		f.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil {
		f.Fatal(err)
	}
	return log
}

// allocatesLittle holds the memory that reading takes against the length of the text.
func allocatesLittle(t *testing.T, length int, read func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(500*length)+1<<20 {
		t.Fatalf("%d bytes of text took %d bytes of memory", length, took)
	}
}

// FuzzLog: no log makes the reader panic, and only whole records in their chain are
// believed.
func FuzzLog(f *testing.F) {
	log := fuzzLog(f)
	f.Add(log)
	f.Add(log[:len(log)-7])
	f.Add([]byte(magic))
	f.Add(append([]byte(magic), 0xC7, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, log []byte) {
		l := &Ledger{state: newState()}
		var whole int64
		var err error
		allocatesLittle(t, len(log), func() { whole, err = l.replay(log) })
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if whole > int64(len(log)) || l.state.records == 0 {
			t.Fatalf("%d whole bytes of %d, %d records", whole, len(log), l.state.records)
		}
		again := &Ledger{state: newState()}
		if n, err := again.replay(log[:whole]); err != nil || n != whole || again.state.head != l.state.head {
			t.Fatalf("the whole part reads differently: %d of %d, %v", n, whole, err)
		}
	})
}

// FuzzRecords puts hostile payloads into valid frames: what a chain cannot catch.
func FuzzRecords(f *testing.F) {
	if _, err := scan(fuzzLog(f), func(payload []byte, _ Hash) error { f.Add(payload); return nil }); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"kind":"reserve"}`))
	f.Add([]byte(`{"kind":"store","slot":{"federation":"schools","run":"run-1","round":2},"content":{"bytes":-1,"counter":3}}`))
	start := fuzzLog(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) > maxPayload {
			return
		}
		l := &Ledger{state: newState()}
		if _, err := l.replay(start); err != nil {
			t.Fatal(err)
		}
		framed, _, err := frame(int64(len(start)), l.state.head, payload)
		if err != nil {
			t.Fatal(err)
		}
		again := &Ledger{state: newState()}
		if _, err := again.replay(append(bytes.Clone(start), framed...)); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if _, err := again.state.summary(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzReceipt: a receipt that is accepted is written again as it was.
func FuzzReceipt(f *testing.F) {
	l := openTest(f, f.TempDir())
	if err := release(l, 0, metricRelease(5)); err != nil {
		f.Fatal(err)
	}
	e, _ := l.Entry(slotAt(0))
	text, err := json.Marshal(e.Receipt)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"receipt":{"release":{"what":{"kind":"composed","parts":[]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r SignedReceipt
		var err error
		allocatesLittle(t, len(text), func() { r, err = ParseSignedReceipt(text) })
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil || !bytes.Equal(compact.Bytes(), again) {
			t.Fatalf("%s is read as %s", text, again)
		}
		_ = r.Verify()
	})
}
