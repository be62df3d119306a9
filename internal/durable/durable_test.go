package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWriteFileReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	for _, text := range []string{"first, and longer", "second"} {
		if err := WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	absent := filepath.Join(dir, "absent", "key")
	if err := WriteFile(absent, nil, 0o600); !errors.Is(err, os.ErrNotExist) || err.Error() != "write "+absent+": no such file or directory" {
		t.Errorf("got %v", err)
	}
	if err := WriteFile(dir, nil, 0o600); err == nil || err.Error() != "write "+dir+": it is a folder; name a file in it" {
		t.Errorf("got %v", err)
	}
}

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrBusy) {
		t.Errorf("a second lock: %v", err)
	}
	if _, err := Lock(path, 0); !errors.Is(err, ErrBusy) {
		t.Errorf("a second lock without patience: %v", err)
	}
	got := make(chan error)
	go func() {
		f, err := Lock(path, time.Minute)
		if err == nil {
			err = f.Close()
		}
		got <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}
