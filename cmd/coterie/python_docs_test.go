package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// fenced finds the blocks of a page: the language and the text.
var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// programFile is the first line of a Python block that is a file of its own.
var programFile = regexp.MustCompile(`^# (\w+\.py)\n`)

// pythonPage is docs/python.md as one shell script: what it says in Python is a file that
// is run, or only written where it is a program for later.
func pythonPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tier.Root(), "docs", "python.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for i, block := range fenced.FindAllStringSubmatch(string(text), -1) {
		switch language, body := block[1], block[2]; language {
		case "sh":
			script.WriteString(body)
		case "python":
			name, run := fmt.Sprintf("block%d.py", i), true
			if m := programFile.FindStringSubmatch(body); m != nil {
				name, run = m[1], false
			}
			fmt.Fprintf(&script, "cat >%s <<'PYTHON'\n%sPYTHON\n", name, body)
			if run {
				fmt.Fprintf(&script, "python3 %s\n", name)
			}
		}
	}
	return script.String()
}

// TestTorchPage holds the page's PyTorch trainer against the run file's model that the
// page says goes with it.
func TestTorchPage(t *testing.T) {
	python := tier.TorchProgram(t)
	dir := t.TempDir()
	writeTable(t, dir)
	_, program, found := strings.Cut(pythonPage(t), "cat >torch_train.py <<'PYTHON'\n")
	program, _, closed := strings.Cut(program, "PYTHON\n")
	text, err := os.ReadFile(filepath.Join(tier.Root(), "docs", "python.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, network, described := strings.Cut(string(text), "```yaml\nmodel: ")
	network, _, _ = strings.Cut(network, "\n")
	if !found || !closed || !described {
		t.Fatal("docs/python.md has no torch_train.py, or no model that goes with it")
	}
	program = strings.Replace(program, "client=sys.argv[2]", "client=sys.argv[2], client_column=\"hospital\"", 1)
	writeFiles(t, dir, map[string]string{"torch_train.py": program})
	trainsAsGo(t, dir, []string{python, "torch_train.py", "rows.csv", "south"}, "--set", "model="+network)
}
