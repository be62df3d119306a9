// Package durable writes files that are there whole after a power loss, or not at all, and locks them between processes.
package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrBusy: another process holds the lock.
var ErrBusy = errors.New("in use by another process")

// WriteFile replaces path by data in one step.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	return Replace(path, mode, func(w io.Writer) error {
		if _, err := w.Write(data); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	})
}

// Replace replaces path, in one step, by what write writes; if that fails, path is as
// it was. The error of write is returned as it is.
func Replace(path string, mode os.FileMode, write func(w io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("write %s: it is a folder; name a file in it", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-")
	if err != nil {
		var where *os.PathError
		if errors.As(err, &where) {
			err = where.Err // nobody knows the new file's own name
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // nothing is left there once it has been renamed
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	err = errors.Join(f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDirectory(filepath.Dir(path))
}

// TryLock locks path, creating it, until the file is closed or the process ends.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := LockExclusive(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// Lock is TryLock that waits for a while.
func Lock(path string, patience time.Duration) (*os.File, error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		f, err := TryLock(path)
		if !errors.Is(err, ErrBusy) || time.Now().After(end) {
			return f, err
		}
	}
}
