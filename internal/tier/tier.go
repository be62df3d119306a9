// Package tier says which tests that need other programs run here. scripts/test installs
// the parts that it is asked for and names them in COTERIE_TIER; a part that was asked
// for and is missing is a failure, one that was not is left out and counted.
package tier

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The parts. What is there runs, asked for or not.
const (
	Python     = "python"     // python3 with numpy and pip
	Torch      = "torch"      // python3 with numpy and PyTorch
	PostgreSQL = "postgresql" // postgres and initdb
	Node       = "node"       // node with onnxruntime-node
	Containers = "containers" // podman with what it needs, podman-compose, and root
	Systemd    = "systemd"    // systemd-analyze
	Chromium   = "chromium"   // a browser
	NATS       = "nats"       // nats-server
	Compiler   = "compiler"   // g++
)

// LeaveOut ends a test whose part is not there: why says what is missing.
func LeaveOut(t testing.TB, part string, why error) {
	t.Helper()
	asked := strings.Fields(strings.ReplaceAll(os.Getenv("COTERIE_TIER"), ",", " "))
	if slices.Contains(asked, part) || slices.Contains(asked, "all") {
		t.Fatalf("COTERIE_TIER asks for %s, which is not here: %v", part, why)
	}
	t.Skipf("left out: %s: %v (./scripts/test %s installs it)", part, why, part)
}

// PythonProgram is a Python 3 with numpy and pip, or the test is left out. Programs that it
// starts find the package coterie of this checkout, and leave no compiled files in it.
func PythonProgram(t testing.TB) string {
	t.Helper()
	return python(t, Python, "numpy, pip, venv")
}

// TorchProgram is one with numpy and PyTorch.
func TorchProgram(t testing.TB) string {
	t.Helper()
	return python(t, Torch, "numpy, torch")
}

func python(t testing.TB, part, modules string) string {
	t.Helper()
	var err error
	for _, name := range []string{"python3", "/usr/bin/python3"} { // the system's may have what the first one has not
		var path string
		if path, err = exec.LookPath(name); err != nil {
			continue
		}
		var out []byte
		if out, err = exec.Command(path, "-c", "import "+modules).CombinedOutput(); err != nil {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			err = fmt.Errorf("%s: %s", path, lines[len(lines)-1])
			continue
		}
		t.Setenv("PYTHONPATH", filepath.Join(Root(), "python"))
		t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
		return path
	}
	LeaveOut(t, part, err)
	return ""
}

// Environment is what a trainer of a test must be allowed to see.
func Environment() []string { return []string{"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"} }

// Root is the checkout.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}
