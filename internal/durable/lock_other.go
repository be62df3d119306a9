//go:build !unix

package durable

import "os"

// LockExclusive does nothing here: without flock two processes in one folder are not told apart; each file is
// still replaced whole.
func LockExclusive(*os.File) error { return nil }

// SyncDirectory is not possible here: folders cannot be opened for it.
func SyncDirectory(string) error { return nil }
