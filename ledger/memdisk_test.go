package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// errCrashed ends whatever runs when the machine stops.
var errCrashed = errors.New("the machine stopped")

// memDisk is a disk in memory that knows what a power loss would leave: contents
// that were synced, and names in folders that were synced.
type memDisk struct {
	names   map[string]*inode // as running programs see them
	durable map[string]*inode // as a power loss leaves them
	locked  map[string]bool
	ops     int
	trace   []string
	fault   func(op int, kind string) *fault
	crashed bool

	witness string // of ledgers on this disk; empty: none
	keeps   int64  // of committed releases' bytes, by ledgers on this disk

	ignoreSync, ignoreSyncDir bool // planted bugs: what a missing sync would do
}

// fault is what goes wrong at one operation.
type fault struct {
	crash  bool // the machine stops; otherwise the operation fails
	after  bool // the operation was carried out all the same
	prefix int  // bytes of a write that were carried out
}

type inode struct {
	data   []byte
	synced []byte
	failed bool // a sync failed: what was written before will not reach the disk any more
}

func newMemDisk() *memDisk {
	return &memDisk{names: map[string]*inode{}, durable: map[string]*inode{}, locked: map[string]bool{}}
}

var errDisk = fmt.Errorf("injected: %w", syscall.EIO)

// do counts an operation and carries it out, unless a fault is planned for it.
func (d *memDisk) do(kind string, carryOut func()) error {
	if d.crashed {
		return errCrashed
	}
	d.ops++
	d.trace = append(d.trace, kind)
	var f *fault
	if d.fault != nil {
		f = d.fault(d.ops, kind)
	}
	if f == nil || f.after {
		carryOut()
	}
	switch {
	case f == nil:
		return nil
	case f.crash:
		d.crashed = true
		return errCrashed
	}
	return errDisk
}

func (d *memDisk) makeDir(path string) error { return d.do("makeDir", func() {}) }

type memLock struct {
	d    *memDisk
	path string
}

func (l memLock) Close() error { delete(l.d.locked, l.path); return nil }

func (d *memDisk) lock(path string) (io.Closer, error) {
	if d.locked[path] {
		return nil, ErrBusy
	}
	if err := d.do("lock", func() { d.locked[path] = true }); err != nil {
		return nil, err
	}
	return memLock{d, path}, nil
}

func (d *memDisk) read(path string, limit int64) (out []byte, err error) {
	err = d.do("read", func() {})
	if err != nil {
		return nil, err
	}
	n, ok := d.names[path]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case int64(len(n.data)) > limit:
		return nil, fmt.Errorf("too large")
	}
	return slices.Clone(n.data), nil
}

func (d *memDisk) list(path string) (names []string, err error) {
	err = d.do("list", func() {
		for name := range d.names {
			if rest, ok := strings.CutPrefix(name, path+"/"); ok {
				first, _, _ := strings.Cut(rest, "/")
				if !slices.Contains(names, first) {
					names = append(names, first)
				}
			}
		}
	})
	return names, err
}

func (d *memDisk) create(path string) (file, error) {
	f := &memFile{d: d}
	err := d.do("create", func() {
		f.n = &inode{}
		d.names[path] = f.n
	})
	return f, err
}

func (d *memDisk) rename(from, to string) error {
	return d.do("rename", func() {
		d.names[to] = d.names[from]
		delete(d.names, from)
	})
}

func (d *memDisk) remove(path string) error {
	return d.do("remove", func() { delete(d.names, path) })
}

func (d *memDisk) syncDir(path string) error {
	return d.do("syncDir", func() {
		if d.ignoreSyncDir {
			return
		}
		for name, n := range d.names {
			if filepath.Dir(name) == path {
				d.durable[name] = n
			}
		}
		for name := range d.durable {
			if _, there := d.names[name]; !there && filepath.Dir(name) == path {
				delete(d.durable, name)
			}
		}
	})
}

type memFile struct {
	d *memDisk
	n *inode
}

func (f *memFile) Write(b []byte) (int, error) {
	var planned *fault
	if plan := f.d.fault; plan != nil {
		f.d.fault = func(op int, kind string) *fault { planned = plan(op, kind); return planned }
		defer func() { f.d.fault = plan }()
	}
	err := f.d.do(fmt.Sprintf("write %d", len(b)), func() { f.n.data = append(f.n.data, b...) })
	if err != nil && planned != nil && !planned.after {
		f.n.data = append(f.n.data, b[:min(planned.prefix, len(b))]...)
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Sync that fails leaves the pages clean: they are seen, and never written again.
func (f *memFile) Sync() error {
	err := f.d.do("sync", func() {
		if !f.d.ignoreSync && !f.n.failed {
			f.n.synced = slices.Clone(f.n.data)
		}
	})
	if err != nil && !f.d.crashed {
		f.n.failed = true
	}
	return err
}

func (f *memFile) Close() error { return nil }

// survivors are the disks that a machine may find when it starts again.
func (d *memDisk) survivors() map[string]*memDisk {
	out := map[string]*memDisk{
		"kill":               d.restart(d.names, func(n *inode) []byte { return n.data }),
		"power, synced only": d.restart(d.durable, func(n *inode) []byte { return n.synced }),
		"power, new names":   d.restart(d.names, func(n *inode) []byte { return n.synced }),
		"power, old names":   d.restart(d.durable, func(n *inode) []byte { return n.data }),
	}
	for part, share := range map[string]int{"a third": 3, "half": 2, "all but one byte": 0} {
		keep := func(n *inode) int {
			fresh := len(n.data) - len(n.synced)
			if share == 0 {
				return len(n.synced) + max(0, fresh-1)
			}
			return len(n.synced) + fresh/share
		}
		out["power, torn: "+part] = d.restart(d.durable, func(n *inode) []byte { return n.data[:keep(n)] })
		out["power, zeros: "+part] = d.restart(d.durable, func(n *inode) []byte {
			return append(slices.Clone(n.synced), make([]byte, keep(n)-len(n.synced))...)
		})
	}
	return out
}

// restart is a disk that holds these names and contents, all of them durable.
func (d *memDisk) restart(names map[string]*inode, content func(*inode) []byte) *memDisk {
	next := newMemDisk()
	next.witness, next.keeps, next.ignoreSync, next.ignoreSyncDir = d.witness, d.keeps, d.ignoreSync, d.ignoreSyncDir
	copies := map[*inode]*inode{}
	for name, n := range names {
		if copies[n] == nil {
			data := slices.Clone(content(n))
			copies[n] = &inode{data: data, synced: data}
		}
		next.names[name] = copies[n]
	}
	next.durable = maps.Clone(next.names)
	return next
}
