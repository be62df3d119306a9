package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coterie-fl/coterie/internal/tier"
)

// left is a check that files are there and hold something.
func left(names ...string) func(*walk) {
	return func(w *walk) {
		for _, name := range names {
			if info, err := os.Stat(w.path(name)); err != nil || info.Size() == 0 {
				w.Errorf("%s is not there, or empty (%v)", name, err)
			}
		}
	}
}

func (w *walk) write(name, text string) {
	w.Helper()
	writeFiles(w.T, w.dir, map[string]string{name: text})
}

// writeBlocks leaves the run files of a page whose first line names them.
func (w *walk) writeBlocks(page string, names ...string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(tier.Root(), filepath.FromSlash(page)))
	if err != nil {
		w.Fatal(err)
	}
	for _, name := range names {
		_, rest, ok := strings.Cut(string(text), "```yaml\n# "+name+"\n")
		block, _, closed := strings.Cut(rest, "```")
		if !ok || !closed {
			w.Fatalf("%s has no %s", page, name)
		}
		w.write(name, block)
	}
}

// beforeLedger leaves a ledger that has seen several runs, and releases of before spreads
// were recorded, for its owner alone.
func beforeLedger(w *walk) {
	if err := os.CopyFS(w.path("my-ledger"), os.DirFS(filepath.Join(tier.Root(), "ledger", "testdata", "version-1-metric"))); err != nil {
		w.Fatal(err)
	}
	err := filepath.WalkDir(w.path("my-ledger"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()])
	})
	if err != nil {
		w.Fatal(err)
	}
}

// h5py is what the page's program asks of the real one, which is rarely installed: a file
// of groups of arrays, here three writers with two pictures each.
const h5py = `import numpy

class Array:
    def __init__(self, values): self.values = values
    def __getitem__(self, key): assert key == (); return self.values

class File(dict):
    def __init__(self, path, mode):
        open(path).close()
        assert mode == "r"
        self["examples"] = {f"writer{k}": {"pixels": Array(numpy.full((2, 28, 28), k / 4)), "label": Array(numpy.array([k, 7]))} for k in range(3)}
    def __enter__(self): return self
    def __exit__(self, *_): pass
`

// usePython has python3 be a Python with numpy, pip and this checkout's package, or leaves
// the walk out.
func (w *walk) usePython() {
	w.Helper()
	if err := os.Symlink(tier.PythonProgram(w.T), filepath.Join(w.bin, "python3")); err != nil {
		w.Fatal(err)
	}
}

// beforeEMNIST has a file for the page's program to read.
func beforeEMNIST(w *walk) {
	w.usePython()
	w.write("h5py.py", h5py)
	w.write("fed_emnist_train.h5", "")
}

// afterEMNIST: the program's file is what LEAF writes, picture by picture.
func afterEMNIST(w *walk) {
	text, err := os.ReadFile(w.path("femnist", "all_data_0.json"))
	var leaf struct {
		Users []string `json:"users"`
		Data  map[string]struct {
			X [][]float64 `json:"x"`
			Y []int       `json:"y"`
		} `json:"user_data"`
	}
	if err == nil {
		err = json.Unmarshal(text, &leaf)
	}
	if err != nil || len(leaf.Users) != 3 {
		w.Fatalf("users %v (%v)", leaf.Users, err)
	}
	last := leaf.Data["writer2"]
	if len(last.X) != 2 || len(last.X[1]) != 784 || last.X[1][783] != 0.5 || last.Y[0] != 2 || last.Y[1] != 7 {
		w.Errorf("the last writer's pictures are %v", last)
	}
}
