package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// laidOut puts a copy where a store would be, and opens it.
func laidOut(t *testing.T, c *Copy) Store {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	check(t, os.Rename(c.Database, path))
	for _, content := range c.Contents {
		// Copies have the names of the store that they are of.
		_, inside, _ := strings.Cut(filepath.ToSlash(content.Name), "/")
		to := filepath.Join(spoolOf(path), filepath.FromSlash(inside))
		check(t, os.MkdirAll(filepath.Dir(to), 0o700))
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		check(t, err)
		_, err = content.WriteTo(f)
		check(t, errors.Join(err, f.Close()))
	}
	check(t, c.Close())
	return backend{address: path}.open(t)
}

// writing starts a process that writes to a store without a pause. When it is stopped it
// must not have failed.
func writing(t *testing.T, b backend) (stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "COTERIE_STORE_WRITER="+b.address, "COTERIE_STORE_SPOOL="+b.options.Spool)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test failed
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "opened 1" {
		t.Fatalf("the writer says %q", lines.Text())
	}
	failed := make(chan string, 1)
	go func() {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "failed") {
				failed <- lines.Text()
			}
		}
		close(failed)
	}()
	return func() {
		check(t, cmd.Process.Kill())
		if said := <-failed; said != "" {
			t.Errorf("the writer: %s", said)
		}
	}
}

// TestCopyWhileItIsWritten: every copy of a store that another process writes to without a
// pause is the store of one instant, whole; a server can go on from it.
func TestCopyWhileItIsWritten(t *testing.T) {
	copies, most := 12, 300 // more if chance gave no round that was half answered
	if *soak {
		copies = most
	}
	b := backend{address: filepath.Join(t.TempDir(), "a [#1? store%20.db")}
	stop := writing(t, b)
	seen, half := map[int]bool{}, 0
	for i := 0; i < copies || i < most && (half == 0 || len(seen) < 3); i++ {
		c, err := CopySQLite(t.Context(), b.address, filepath.Join(t.TempDir(), "copy"))
		if err != nil {
			t.Fatalf("copy %d: %v", i, err)
		}
		if info, err := os.Stat(c.Database); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		run, rounds, released := c.Run, c.Rounds, c.Released
		s := laidOut(t, c)
		last, err := s.LatestRound(t.Context(), "r")
		check(t, err)
		if run.ID != "r" || rounds != last.Number {
			t.Errorf("copy %d is of run %q with %d rounds; it has %d", i, run.ID, rounds, last.Number)
		}
		accepted := checkWritten(t, s, last)
		if accepted != released {
			t.Errorf("copy %d says %d releases; its open round has %d", i, released, accepted)
		}
		if accepted > 0 && accepted < writerClients {
			half++
		}
		seen[last.Number] = true
		check(t, writeRound(t.Context(), s, false)) // it can go on
		check(t, s.Close())
	}
	stop()
	if len(seen) < 3 || half == 0 {
		t.Errorf("%d copies are of %d rounds, %d of them half answered: too few to show anything", copies, len(seen), half)
	}
}

// checkWritten holds a store against what the writer writes, and counts the releases of its
// open round.
func checkWritten(t *testing.T, s Store, last Round) (accepted int) {
	t.Helper()
	number, state, err := s.LatestState(t.Context(), "r")
	if err != nil && !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	var want []byte
	for n := 1; n <= number; n++ {
		want = writerState(want, writerUpdates(n)...)
	}
	if !bytes.Equal(state, want) {
		t.Errorf("the state after round %d is not the writer's", number)
	}
	if last.Status != RoundOpen {
		return 0
	}
	answers, err := s.Answers(t.Context(), "r", last.Number)
	check(t, err)
	for _, a := range answers {
		if a.Kind != Released {
			continue
		}
		accepted++
		blob, err := s.OpenUpdate(t.Context(), "r", last.Number, a.Participant)
		check(t, err)
		content, err := io.ReadAll(blob)
		check(t, errors.Join(err, blob.Close()))
		if !bytes.Equal(content, writerUpdate(last.Number, a.Participant)) {
			t.Errorf("the release of %d in round %d is another one", a.Participant, last.Number)
		}
		if _, err := s.Receipt(t.Context(), "r", last.Number, fmt.Sprint(a.Participant)); err != nil {
			t.Error(err)
		}
	}
	return accepted
}

// TestCopyRefuses: what is not there is not made, what is damaged is not copied as if it
// were whole, and nothing is overwritten.
func TestCopyRefuses(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "copy")
	_, err := CopySQLite(t.Context(), filepath.Join(dir, "store.db"), to)
	wantError(t, err, fs.ErrNotExist)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}

	b := backend{address: filepath.Join(dir, "store.db")}
	s := started(t, b)
	content := []byte("some bytes")
	_, err = send(t.Context(), s, updateOf(0, content), content, nil)
	check(t, err)
	c, err := CopySQLite(t.Context(), b.address, to)
	check(t, err)
	equal(t, len(c.Contents), 1)
	equal(t, c.Contents[0].SHA256, sha256.Sum256(content))
	check(t, c.Close())
	if _, err := CopySQLite(t.Context(), b.address, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a copy was written over another one: %v", err)
	}

	file := spooled(t, s, "updates-1/*")[0]
	check(t, os.WriteFile(file, []byte("same bytes"), 0o600))
	c, err = CopySQLite(t.Context(), b.address, to+"2")
	check(t, err)
	_, err = c.Contents[0].WriteTo(io.Discard)
	wantError(t, err, ErrDamaged)
	check(t, c.Close())
	check(t, os.Truncate(file, 3))
	_, err = CopySQLite(t.Context(), b.address, to+"3")
	wantError(t, err, ErrDamaged)
	check(t, os.Remove(file))
	_, err = CopySQLite(t.Context(), b.address, to+"4")
	wantError(t, err, ErrDamaged)
	check(t, os.WriteFile(b.address+"x", []byte("no database"), 0o600))
	if _, err := CopySQLite(t.Context(), b.address+"x", to+"5"); err == nil {
		t.Error("a file that is no database was copied")
	}
}

// TestDumpOfPostgreSQL: what docs/operations.md says of PostgreSQL's own tools holds: a dump
// that is taken while a server writes is the store of one instant.
func TestDumpOfPostgreSQL(t *testing.T) {
	b := backend{address: postgresAddress(t), options: Options{Spool: t.TempDir()}}
	tool, err := exec.LookPath("pg_dump")
	skipWithoutPostgres(t, err)
	stop := writing(t, b)
	dump := filepath.Join(t.TempDir(), "store.dump")
	if out, err := exec.Command(tool, "--format=custom", "--file="+dump, b.address).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stop()
	to := postgresAddress(t)
	if out, err := exec.Command("pg_restore", "--clean", "--if-exists", "--dbname="+to, dump).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := backend{address: to, options: Options{Spool: t.TempDir()}}.open(t)
	last, err := s.LatestRound(t.Context(), "r")
	check(t, err)
	accepted := checkWritten(t, s, last)
	check(t, writeRound(t.Context(), s, false))
	t.Logf("round %d, %d releases of it", last.Number, accepted)
}

// TestCopyWhileAServerStarts: whoever backs up a store at the instant in which a server
// makes it waits for the tables, and the server for whoever looks.
func TestCopyWhileAServerStarts(t *testing.T) {
	for i := range 20 {
		path := filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		copied := make(chan error, 2)
		for j := range 2 {
			go func() {
				c, err := CopySQLite(t.Context(), path, fmt.Sprintf("%s.copy%d", path, j))
				if err == nil {
					err = c.Close()
				}
				copied <- err
			}()
		}
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		for range 2 {
			if err := <-copied; err != nil {
				t.Fatalf("copy %d: %v", i, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenWaits for somebody who holds the file's lock for a moment, also where SQLite
// itself would not: when the journal is changed.
func TestOpenWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	holder, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := holder.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), path, Options{})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if _, err := holder.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
