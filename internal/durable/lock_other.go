//go:build !unix

package durable

import "os"

// Without flock two processes in one folder are not told apart; each file is
// still replaced whole.
func lockExclusive(*os.File) error { return nil }

// SyncDirectory is not possible here: folders cannot be opened for it.
func SyncDirectory(string) error { return nil }
