package data

import (
	"fmt"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
)

func init() {
	register(Kind{
		Name: "writers", Keys: []string{"set", "rotated", "train_share", "ink"},
		// The set decides about classes.
		Shape: func(config.Data) (Shape, bool) { return Shape{Height: 28, Width: 28}, false },
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			w, err := f.writerImages(d.Set)
			if err != nil {
				return nil, err
			}
			fed, err := w.Federation(WriterOptions{Seed: seed, HeldOut: 1 - d.TrainShare, Rotated: d.Rotated, InkLow: d.Ink != "light"})
			if err != nil {
				return nil, err
			}
			fed.Classes = w.Classes
			return fed, nil
		},
		Words: func(d config.Data) string {
			set := map[string]string{"unipen": "UNIPEN, 62 classes", "mnist": "MNIST, 10 classes", "femnist": "FEMNIST, 62 classes"}[d.Set]
			return fmt.Sprintf("Handwriting (%s): every writer is a client; a writer’s pictures are turned by 90 degrees with probability %v", set, d.Rotated)
		},
	})
}

// writerImages reads a set of handwriting once.
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
