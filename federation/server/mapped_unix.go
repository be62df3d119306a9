//go:build unix

package server

import (
	"fmt"
	"os"
	"syscall"
)

// mapFile maps a file that has no name any more: it is gone when it is freed.
func mapFile(dir string, size int) ([]byte, func(), error) {
	f, err := os.CreateTemp(dir, ".round-")
	if err != nil {
		return nil, nil, fmt.Errorf("make room for a round's releases: %w", err)
	}
	defer f.Close()
	defer os.Remove(f.Name())
	if err := f.Truncate(int64(size)); err != nil {
		return nil, nil, fmt.Errorf("make room for a round's releases: %w", err)
	}
	raw, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map a round's releases: %w", err)
	}
	return raw, func() { _ = syscall.Munmap(raw) }, nil
}
