package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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

// TestPythonPage executes docs/python.md from top to bottom, without a network, and
// holds its federation against a simulation.
func TestPythonPage(t *testing.T) {
	python := tier.PythonProgram(t)
	t.Setenv("PYTHONPATH", "") // the page installs the package
	l, err := net.Listen("tcp", "127.0.0.1:7445")
	if err != nil {
		t.Skipf("the page's port is in use here: %v", err)
	}
	l.Close()
	dir, programs := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "python"), os.DirFS(filepath.Join(tier.Root(), "python"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(python, filepath.Join(programs, "python3")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-c", pythonPage(t))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PIP_NO_INDEX=1", "PATH="+programs+":"+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "server.log"))
		t.Fatalf("%v\n%s\nserver: %s", err, out, log)
	}
	for _, want := range []string{"proved 1.99", "algorithm.rounds", "clinic-04", "'ward=surgery': "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the page prints no %q:\n%s", want, out)
		}
	}
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
