// Package cudatest has tests compute on a GPU, or on its emulation.
package cudatest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// left is the folder to clear up; empty: none.
var left string

// parts are what stands in for a program beside coterie, and for a driver's library, which is
// empty on a GPU.
type parts struct{ helper, library string }

// made are both, once for a package's tests.
var made = sync.OnceValues(func() (p parts, err error) {
	folder, err := os.MkdirTemp("", "coterie-cuda-")
	if err != nil {
		return p, err
	}
	left, p.helper = folder, filepath.Join(folder, "coterie-cuda")
	build := exec.Command("go", "build", "-o", p.helper, "./cmd/coterie-cuda")
	build.Dir, build.Env = tier.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return p, fmt.Errorf("%w: %s", err, out)
	}
	if OnDevice() {
		return p, nil
	}
	if err := readSources(); err != nil {
		return p, err
	}
	p.library, err = emulation()
	return p, err
})

// readSources opens what the compilers read, of which the helper's is none of the test's own
// packages: go test takes up an old result only if no file that the test itself opened has changed.
func readSources() error {
	return filepath.WalkDir(filepath.Join(tier.Root(), "internal/cuda"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			_, err = os.Stat(path)
		}
		return err
	})
}

// OnDevice says that COTERIE_CUDA asks for a GPU.
func OnDevice() bool { return os.Getenv("COTERIE_CUDA") != "" }

// Use has what the test starts find the helper, and the emulation in the driver's place
// unless COTERIE_CUDA asks for a GPU; without g++ the test is left out.
func Use(t testing.TB) {
	t.Helper()
	if OnDevice() && os.Getenv("COTERIE_CUDA_PROGRAM") != "" {
		return // where there is no compiler, both are brought along
	}
	if _, err := exec.LookPath("g++"); err != nil && !OnDevice() {
		tier.LeaveOut(t, tier.Compiler, err)
	}
	p, err := made()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COTERIE_CUDA_PROGRAM", p.helper)
	if !OnDevice() {
		t.Setenv("COTERIE_CUDA_LIBRARY", p.library)
	}
}

// Main runs a package's tests and clears up.
func Main(m *testing.M) int {
	code := m.Run()
	if left != "" {
		os.RemoveAll(left)
	}
	return code
}

// Digits is a folder of data with a few pictures in MNIST's place.
func Digits(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "mnist"), 0o755); err != nil {
		t.Fatal(err)
	}
	for part, n := range map[string]int{"train": 60, "t10k": 20} {
		images := []byte{0, 0, 8, 3, 0, 0, 0, byte(n), 0, 0, 0, 28, 0, 0, 0, 28}
		labels := []byte{0, 0, 8, 1, 0, 0, 0, byte(n)}
		for i := range n { // a bar, whose place is its class
			picture := make([]byte, 784)
			for x := range 28 {
				for y := range 3 {
					picture[(2*(i%10)+y)*28+x] = byte(120 + 7*((i+x)%10))
				}
			}
			images, labels = append(images, picture...), append(labels, byte(i%10))
		}
		for name, raw := range map[string][]byte{"-images-idx3-ubyte.gz": images, "-labels-idx1-ubyte.gz": labels} {
			if err := os.WriteFile(filepath.Join(folder, "mnist", part+name), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}
