package data

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Folder is where real data lie. It remembers what it has read, so that many runs
// on the same data read them once. A nil Folder has none.
type Folder struct {
	path      string
	mu        sync.Mutex
	hospitals map[string]*Hospital
	writers   map[string]*WriterImages
	tables    map[string]*Tabular
	silos     map[string]*Silos
	pictures  map[string]*twoParts
}

// NewFolder names a folder; an empty path is no folder.
func NewFolder(path string) *Folder {
	if path == "" {
		return nil
	}
	return &Folder{path: path, hospitals: map[string]*Hospital{}, writers: map[string]*WriterImages{}, tables: map[string]*Tabular{}, silos: map[string]*Silos{}, pictures: map[string]*twoParts{}}
}

// Has says what is missing of the folder's parts, and how to get it.
func (f *Folder) Has(parts ...string) error {
	for _, part := range parts {
		if f == nil {
			return fmt.Errorf("the real data %q are needed: name their folder with --data or COTERIE_DATA (docs/data.md says how to get it)", part)
		}
		if _, err := os.Stat(filepath.Join(f.path, part)); err != nil {
			return fmt.Errorf("the real data %q are missing (docs/data.md says how to get them): %w", part, err)
		}
	}
	return nil
}
