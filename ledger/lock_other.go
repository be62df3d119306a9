//go:build !unix

package ledger

import (
	"errors"
	"io/fs"
	"os"
)

// Without a lock two processes could spend one budget twice.
func lockExclusive(*os.File) error {
	return errors.New("a ledger cannot be locked on this system; use one with flock")
}

// checkFolder has nothing to check either.
func checkFolder(string) error { return nil }

// checkMode has nothing to check: file modes do not say who may read here.
func checkMode(string, fs.FileInfo) error { return nil }
