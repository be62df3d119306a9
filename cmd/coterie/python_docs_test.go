package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// programFile is the first line of a Python block that is a file of its own.
var programFile = regexp.MustCompile(`^# (\w+\.py)\n`)

// beforePython has the page's python3 be one that can do what the page needs, without a
// network; the page installs the package.
func beforePython(w *walk) {
	w.usePython()
	w.Setenv("PYTHONPATH", "")
	w.Setenv("PIP_NO_INDEX", "1")
}

// afterPython holds the page's federation against a simulation.
func afterPython(w *walk) {
	t, dir := w.T, w.dir
	rows, err := os.ReadFile(filepath.Join(dir, "patients.csv"))
	if err != nil {
		t.Fatal(err)
	}
	var two strings.Builder
	for i, line := range strings.SplitAfter(string(rows), "\n") {
		if i == 0 || strings.HasPrefix(line, "clinic-01,") || strings.HasPrefix(line, "clinic-02,") {
			two.WriteString(line)
		}
	}
	writeFiles(t, dir, map[string]string{"two.csv": two.String()})
	runJSON(t, "run", filepath.Join(dir, "run.yaml"), "--set", "data.source.path=two.csv", "--out", filepath.Join(dir, "simulated"))
	want := tensorsOf(t, filepath.Join(dir, "simulated", "model.safetensors"))
	for i, name := range []string{"clinic-01", "clinic-02"} {
		own := tensorsOf(t, filepath.Join(dir, name, "out", "personal.safetensors"))["personal.0"]
		if !within(1e-5, want[fmt.Sprintf("client.%d", i)], own) {
			t.Errorf("%s has %v, in simulation %v", name, own, want[fmt.Sprintf("client.%d", i)])
		}
	}
}

// TestTorchPage holds the page's PyTorch trainer against the run file's model that the
// page says goes with it.
func TestTorchPage(t *testing.T) {
	python := tier.TorchProgram(t)
	dir := t.TempDir()
	writeTable(t, dir)
	page := readPage(t, "docs/python.md")
	i := slices.IndexFunc(page.blocks, func(b block) bool { return b.lines[0] == "# torch_train.py" })
	_, network, described := strings.Cut(page.text, "```yaml\nmodel: ")
	network, _, _ = strings.Cut(network, "\n")
	if i < 0 || !described {
		t.Fatal("docs/python.md has no torch_train.py, or no model that goes with it")
	}
	program := strings.Replace(strings.Join(page.blocks[i].lines, "\n"), "client=sys.argv[2]", "client=sys.argv[2], client_column=\"hospital\"", 1)
	writeFiles(t, dir, map[string]string{"torch_train.py": program})
	trainsAsGo(t, dir, []string{python, "torch_train.py", "rows.csv", "south"}, "--set", "model="+network)
}
