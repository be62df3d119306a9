package data

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/coterie-fl/coterie/config"
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

// Load draws or reads the run file's data.
func (f *Folder) Load(d config.Data, seed uint64) (*Federation, error) {
	switch d.Kind {
	case "synthetic":
		return Synthetic(d, seed), nil
	case "hospital":
		h, err := f.hospital(d)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		return h.Split(seed, d.TrainShare)
	case "writers":
		w, err := f.writerImages(d.Set)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		fed, err := w.Federation(WriterOptions{Seed: seed, HeldOut: 1 - d.TrainShare, Rotated: d.Rotated, InkLow: d.Ink != "light"})
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		fed.Classes = w.Classes
		return fed, nil
	case "adult", "compas":
		fed, err := f.tabular(d, seed)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		return fed, nil
	case "school", "vehicle", "gleam", "rotated-mnist", "cifar10-silos", "adni":
		fed, err := f.siloFederation(d, seed)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		return fed, nil
	}
	return nil, fmt.Errorf("data.kind %q is not known", d.Kind)
}

func (f *Folder) hospital(d config.Data) (*Hospital, error) {
	if err := f.Has("hospital", "zip"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o := HospitalOptions{File: Hospital2016, DRGs: d.DRGs}
	if d.Year == 2011 {
		o.File = Hospital2011
	}
	if d.Index == "code" {
		o.Index = ByCode
	}
	key := fmt.Sprint(o)
	if h := f.hospitals[key]; h != nil {
		return h, nil
	}
	h, err := LoadHospital(f.path, o)
	if err == nil {
		f.hospitals[key] = h
	}
	return h, err
}

func (f *Folder) writerImages(set string) (*WriterImages, error) {
	need, load := []string{"unipen-by-writer"}, LoadUNIPEN
	if set == "mnist" {
		need = []string{"mnist", "mnist-by-writer"}
		load = func(path string) (*WriterImages, error) { return LoadMNISTWriters(path, "train") }
	}
	if set == "femnist" {
		need = []string{"femnist"}
		load = func(path string) (*WriterImages, error) { return LoadLEAF(filepath.Join(path, "femnist")) }
	}
	if err := f.Has(need...); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.writers[set]; w != nil {
		return w, nil
	}
	w, err := load(f.path)
	if err == nil {
		f.writers[set] = w
	}
	return w, err
}
