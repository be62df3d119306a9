package data

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
)

// Folder is where real data lie. It remembers what it has read, so that many runs
// on the same data read them once. A nil Folder has none.
type Folder struct {
	path string
	keep bool // what lies elsewhere, too
	mu   sync.Mutex
	read map[string]any // by type and key

	noting sync.Mutex
	asked  map[string]bool // parts that were looked for: were they there?
}

// NewFolder names a folder; an empty path is no folder.
func NewFolder(path string) *Folder {
	if path == "" {
		return nil
	}
	return &Folder{path: path, read: map[string]any{}}
}

// Keeping is the same folder for many runs: it remembers what they read elsewhere, too,
// such as a table of one's own. A single run has no use for that, and needs the memory.
func (f *Folder) Keeping() *Folder {
	kept := &Folder{keep: true, read: map[string]any{}}
	if f != nil {
		kept.path = f.path
	}
	return kept
}

// Keeps says whether the folder remembers what lies elsewhere: then what Kept returns is
// not the caller's alone.
func (f *Folder) Keeps() bool { return f != nil && f.keep }

// Kept reads something that lies elsewhere: the first time only that it is asked for by a
// key, if the folder keeps it. Nobody may change what such a folder returns.
func Kept[T any](f *Folder, key string, read func() (*T, error)) (*T, error) {
	if !f.Keeps() {
		return read()
	}
	return once(f, "elsewhere "+key, nil, func(string) (*T, error) { return read() })
}

// once reads what lies in some parts of the folder, the first time that it is asked for
// by a key. Nobody may change what it returns.
func once[T any](f *Folder, key string, parts []string, read func(folder string) (*T, error)) (*T, error) {
	if err := f.Has(parts...); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key = fmt.Sprintf("%T %s", (*T)(nil), key)
	if kept, ok := f.read[key]; ok {
		return kept.(*T), nil
	}
	fresh, err := read(f.path)
	if err == nil {
		f.read[key] = fresh
	}
	return fresh, err
}

// Has says what is missing of the folder's parts, and how to get it.
func (f *Folder) Has(parts ...string) error {
	for _, part := range parts {
		if f == nil || f.path == "" {
			return fmt.Errorf("the real data %q are needed: name their folder with --data or COTERIE_DATA (docs/data.md says how to get it)", part)
		}
		_, err := os.Stat(filepath.Join(f.path, part))
		f.note(part, err == nil)
		if err != nil {
			return fmt.Errorf("the real data %q are missing (docs/data.md says how to get them): %w", part, err)
		}
	}
	return nil
}

// Find is where a part of the folder lies; empty: there is no folder, or not that part.
func (f *Folder) Find(part string) string {
	if f.Has(part) != nil {
		return ""
	}
	return filepath.Join(f.path, part)
}

func (f *Folder) note(part string, there bool) {
	f.noting.Lock()
	defer f.noting.Unlock()
	if f.asked == nil {
		f.asked = map[string]bool{}
	}
	f.asked[part] = there
}

// Asked are the parts that were looked for so far, and whether they were there: what runs
// on this folder depended on.
func (f *Folder) Asked() map[string]bool {
	if f == nil {
		return nil
	}
	f.noting.Lock()
	defer f.noting.Unlock()
	return maps.Clone(f.asked)
}

// Path is where the folder lies; empty: there is none.
func (f *Folder) Path() string {
	if f == nil {
		return ""
	}
	return f.path
}
