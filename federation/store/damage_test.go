package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// spooled are the files of a store's spool that match a pattern.
func spooled(t *testing.T, s Store, pattern string) []string {
	t.Helper()
	spool := s.(*sqlStore).options.Spool
	files, err := fs.Glob(os.DirFS(spool), "*/"+pattern)
	check(t, err)
	for i, file := range files {
		files[i] = filepath.Join(spool, file)
	}
	return files
}

// TestDamageIsNoticed: bytes that changed on the disk are not taken for what was
// recorded.
func TestDamageIsNoticed(t *testing.T) {
	b := backend{address: filepath.Join(t.TempDir(), "store.db")}
	s, ctx := started(t, b), t.Context()
	content := []byte("some bytes")
	_, err := send(ctx, s, updateOf(0, content), content, nil)
	check(t, err)
	files := spooled(t, s, "updates-1/*")
	equal(t, len(files), 1)
	check(t, os.Truncate(files[0], 4))
	if _, err := s.OpenUpdate(ctx, "r", 1, 0); err == nil {
		t.Error("an update that was cut short is opened")
	}
	check(t, s.CloseRound(ctx, "r", 1, []byte("the state"), later))
	files = spooled(t, s, "state-1-*")
	equal(t, len(files), 1)
	check(t, os.WriteFile(files[0], []byte("the stale"), 0o600))
	if _, _, err := s.LatestState(ctx, "r"); err == nil {
		t.Error("another state is taken for the one that was recorded")
	}
}

// TestCrashesLeaveNothingBehind: what no round and no state needs is gone when the
// store is next opened; what may go on is not.
func TestCrashesLeaveNothingBehind(t *testing.T) {
	b := backend{address: filepath.Join(t.TempDir(), "store.db")}
	s, ctx := started(t, b), t.Context()
	up, err := s.Upload(ctx, updateOf(0, []byte("some bytes")))
	check(t, err)
	_, err = up.Write([]byte("some"))
	check(t, err)
	check(t, up.Close())
	check(t, s.OpenRound(ctx, Round{Run: "r", Number: 2}))
	check(t, s.CloseRound(ctx, "r", 2, []byte("the state"), later))
	run := filepath.Dir(spooled(t, s, "state-2-*")[0])
	check(t, s.Close())
	for _, left := range []string{"state-2-00", "state-7-00", "updates-2"} {
		check(t, os.Mkdir(filepath.Join(run, left), 0o700))
	}
	others := filepath.Join(filepath.Dir(run), "others", "state-of-affairs")
	check(t, os.MkdirAll(others, 0o700))
	s = b.open(t)
	equal(t, len(spooled(t, s, "*")), 3) // the open round's uploads, the state, and what is not ours
	check(t, os.Remove(others))
	up, err = s.Upload(ctx, updateOf(0, []byte("some bytes")))
	check(t, err)
	equal(t, up.Offset(), int64(4))
	check(t, up.Close())
	_, state, err := s.LatestState(ctx, "r")
	check(t, err)
	equal(t, string(state), "the state")
}

// TestStoresThatCannotBe are refused with a word, and leave nothing open.
func TestStoresThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, []byte("this is no database, but long enough to be looked at"), 0o600))
	for _, address := range []string{"", "sqlite:", "mysql://localhost/x", file, filepath.Join(file, "below"), "postgres://127.0.0.1:1/none?connect_timeout=2"} {
		if s, err := Open(t.Context(), address, Options{}); err == nil {
			s.Close()
			t.Errorf("%q is opened", address)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), Options{KeepStates: -1}); err == nil {
		t.Error("a store that keeps no state is opened")
	}
}
