package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// sharedFiles are files without a name for one conversation, each of which may be the memory that both
// see: one in memory, where the system has a folder for that, and one among other temporary files, for
// what has no room there.
func sharedFiles() (files []*os.File, err error) {
	for _, folder := range []string{"/dev/shm", os.TempDir()} {
		f, fault := os.CreateTemp(folder, "coterie-cuda-")
		if fault == nil {
			files, fault = append(files, f), os.Remove(f.Name())
		}
		err = errors.Join(err, fault)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file to share memory with %s: %w", Program, err)
	}
	return files, nil
}

// share makes the memory that both see, all of it zero.
func (h *helper) share(size int) error {
	var why error
	for i, f := range h.files {
		err := reserve(f, size)
		if err == nil {
			h.shared, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		}
		if err == nil {
			h.which = i
			return nil
		}
		err = errors.Join(fmt.Errorf("%s: %w", filepath.Dir(f.Name()), err), f.Truncate(0))
		if why == nil {
			why = err
		} else {
			why = fmt.Errorf("%w; %w", why, err)
		}
	}
	return fmt.Errorf("%s of memory to share with %s have no room (%w): make /dev/shm larger, in a container with --shm-size, or name a folder with room in TMPDIR", Megabytes(size), Program, why)
}

// unshare forgets the memory.
func (h *helper) unshare() error {
	if h.shared == nil {
		return nil
	}
	err := syscall.Munmap(h.shared)
	h.shared = nil
	return err
}

// release gives the memory back, which nobody sees any more: a helper that waits holds none.
func (h *helper) release() error {
	return errors.Join(h.unshare(), h.files[h.which].Truncate(0))
}

// closeFiles ends what both share.
func (h *helper) closeFiles() error {
	err := h.unshare()
	for _, f := range h.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// fallocate is the system's; tests have others.
var fallocate = syscall.Fallocate

// reserve gives a file a size, with all its room taken: of a file that has it on paper alone, whoever
// writes where there is none is ended by the system, without a word.
func reserve(f *os.File, size int) error {
	if err := errors.Join(f.Truncate(0), f.Truncate(int64(size))); err != nil {
		return err
	}
	const part = 16 << 20 // a signal ends a call, which then has taken nothing
	for at := 0; at < size; {
		n := min(part, size-at)
		switch err := fallocate(int(f.Fd()), 0, int64(at), int64(n)); err {
		case nil:
			at += n
		case syscall.EINTR:
		case syscall.EOPNOTSUPP, syscall.ENOSYS: // this file system writes, or has no room
			return fill(f, at, size)
		default:
			return err
		}
	}
	return nil
}

// fill writes zeros from one place to another.
func fill(f *os.File, at, end int) error {
	zeros := make([]byte, 1<<20)
	for at < end {
		n, err := f.WriteAt(zeros[:min(len(zeros), end-at)], int64(at))
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}
