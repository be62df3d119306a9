package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is what the ledger needs of a file system. Tests put one in its place that
// fails, or loses what was not synced.
type disk interface {
	// makeDir makes a folder and its parents, durably.
	makeDir(path string) error
	// lock holds the file at path against other processes: ErrBusy if one has it.
	lock(path string) (io.Closer, error)
	// read returns a whole file; fs.ErrNotExist if there is none.
	read(path string, limit int64) ([]byte, error)
	// list names what is in a folder; nothing if there is none.
	list(path string) ([]string, error)
	// create makes a file, or empties it, for writing by its owner alone.
	create(path string) (file, error)
	rename(from, to string) error
	remove(path string) error
	// syncDir makes the names in a folder last through a power loss.
	syncDir(path string) error
}

// file is an open file that is written from its start to its end.
type file interface {
	io.WriteCloser
	Sync() error
}

// replace puts content under a name: whoever looks finds the old file or the new
// one, whole. It returns the new file, open for appending.
func replace(d disk, path string, content []byte) (file, error) {
	fresh := path + newSuffix
	f, err := d.create(fresh)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", fresh, err)
	}
	if err := writeSynced(f, content); err != nil {
		f.Close()
		return nil, fmt.Errorf("write %s: %w", fresh, err)
	}
	if err := d.rename(fresh, path); err != nil {
		f.Close()
		return nil, fmt.Errorf("rename %s: %w", fresh, err)
	}
	if err := d.syncDir(filepath.Dir(path)); err != nil {
		f.Close()
		return nil, fmt.Errorf("sync %s: %w", filepath.Dir(path), err)
	}
	return f, nil
}

// newSuffix marks a file that is not whole yet.
const newSuffix = ".new"

// writeSynced returns nil only if every byte is durable.
func writeSynced(f file, content []byte) error {
	if n, err := f.Write(content); err != nil {
		return err
	} else if n != len(content) {
		return io.ErrShortWrite
	}
	return f.Sync()
}

// systemDisk is the operating system's.
type systemDisk struct{}

func (systemDisk) makeDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if err := (systemDisk{}).makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return systemDisk{}.syncDir(parent)
}

func (systemDisk) lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = checkFolder(filepath.Dir(path))
	if err == nil {
		err = lockExclusive(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (systemDisk) read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has %d bytes; the most is %d", path, info.Size(), limit)
	}
	if err := checkMode(path, info); err != nil {
		return nil, err
	}
	content := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		if errors.Is(err, io.EOF) {
			return content, nil
		}
		if err != nil {
			return nil, err
		}
		if len(content) == cap(content) { // another process appends while we read
			return content, nil
		}
	}
}

func (systemDisk) list(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (systemDisk) create(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (systemDisk) rename(from, to string) error { return os.Rename(from, to) }

func (systemDisk) remove(path string) error { return os.Remove(path) }

func (systemDisk) syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
