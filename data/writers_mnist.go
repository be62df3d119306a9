package data

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
)

// LoadMNISTWriters reads part "train" or "test" of MNIST with the writer of every
// digit from the folder of real data. A writer is a pair of NIST's partition
// (hsf) and its number there; writers come in that order.
func LoadMNISTWriters(folder, part string) (*WriterImages, error) {
	files := map[string]string{"train": "train", "test": "t10k"}
	if files[part] == "" {
		return nil, fmt.Errorf("mnist by writer: part %q; allowed: train, test", part)
	}
	im, err := LoadIDXImages(folder, "mnist", files[part], 10)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "mnist-by-writer", "mnist_writers.csv.gz")
	return readFile(path, func(name string, r io.Reader) (*WriterImages, error) { return ReadMNISTWriters(name, r, im, part) })
}

// ReadMNISTWriters reads a table with the columns split, index, label, hsf and
// writer, and takes the rows of one part. Every picture must have one row there,
// with its own label. The name is for errors.
func ReadMNISTWriters(name string, r io.Reader, im *Images, part string) (*WriterImages, error) {
	t, at, err := openTable(name, r, "split", "index", "label", "hsf", "writer")
	if err != nil {
		return nil, err
	}
	report := LoadReport{Source: name}
	type key struct{ hsf, writer int }
	pictures := map[key][]int{}
	seen := make([]int, im.Len()) // line
	for row, err := range t.rows() {
		if err != nil {
			return nil, err
		}
		report.Rows++
		which, err := row.choice(at[0], []string{"train", "test"})
		if err != nil {
			return nil, err
		}
		if (which == 0) != (part == "train") {
			report.leaveOut("of the other part", "")
			continue
		}
		index, err := row.integer(at[1], 0, im.Len()-1)
		if err != nil {
			return nil, err
		}
		if seen[index] != 0 {
			return nil, row.faultf(at[1], "picture %d was on line %d already", index, seen[index])
		}
		seen[index] = t.line
		if _, err := row.integer(at[2], im.Labels[index], im.Labels[index]); err != nil {
			return nil, fmt.Errorf("%w: picture %d has that label", err, index)
		}
		var k key
		if k.hsf, err = row.integer(at[3], 0, 9); err != nil {
			return nil, err
		}
		if k.writer, err = row.integer(at[4], 0, 1<<20); err != nil {
			return nil, err
		}
		pictures[k] = append(pictures[k], index)
		report.Kept++
	}
	if i := slices.Index(seen, 0); i >= 0 {
		return nil, fmt.Errorf("%s: picture %d of part %s has no row", name, i, part)
	}
	keys := slices.SortedFunc(maps.Keys(pictures), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.hsf, b.hsf), cmp.Compare(a.writer, b.writer))
	})
	writers := make([]Writer, len(keys))
	for i, k := range keys {
		slices.Sort(pictures[k])
		writers[i] = Writer{Name: fmt.Sprintf("hsf%d-%d", k.hsf, k.writer), Index: pictures[k]}
	}
	w, err := NewWriterImages(im, 10, writers)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w.Report = report
	return w, nil
}
