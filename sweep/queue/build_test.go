package queue

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBuildsHaveNames: programs that differ have different names, with the linker's hash and
// without; the same program has one name wherever it lies.
func TestBuildsHaveNames(t *testing.T) {
	dir := t.TempDir()
	build := func(name, text string, flags ...string) string {
		t.Helper()
		file, out := filepath.Join(dir, name+".go"), filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("package main\nfunc main() { println("+text+") }\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command("go", append(append([]string{"build", "-o", out}, flags...), file)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		of, err := buildOf(out)
		if err != nil {
			t.Fatal(err)
		}
		return of
	}
	one := build("one", "1")
	bare, other := build("bare1", "1", "-ldflags=-buildid="), build("bare2", "2", "-ldflags=-buildid=")
	if two := build("two", "2"); one == two || bare == other || bare == one {
		t.Errorf("names %s and %s; without the linker's hash %s and %s", one, two, bare, other)
	}
	text, err := os.ReadFile(filepath.Join(dir, "one"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "copy"), text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if again, err := buildOf(filepath.Join(dir, "copy")); err != nil || again != one {
		t.Errorf("a copy is %s, %v; want %s", again, err, one)
	}
}
