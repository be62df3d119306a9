//go:build unix

package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func lockExclusive(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}

// checkFolder refuses a folder in which others could put another log.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others can change %s (mode %04o); take their right away: chmod 700 %s", path, mode, path)
	}
	return nil
}

// checkMode refuses a record of what was released that others can read or write.
func checkMode(path string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%w: %s can be used by others (mode %04o); find out who changed it, then: chmod 600 %s", ErrCorrupt, path, mode, path)
	}
	return nil
}
