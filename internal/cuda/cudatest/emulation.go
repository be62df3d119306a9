package cudatest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/internal/tier"
)

// emulation is the library in the driver's place. To compile it takes longer than most tests
// that use it: it is kept in the checkout's .cache, under a hash of all that it is made of,
// and the first package that needs it has the others wait.
func emulation() (library string, err error) {
	name, err := emulationName()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(tier.Root(), ".cache", "emulation")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	lock, err := durable.Lock(filepath.Join(folder, "lock"), 5*time.Minute)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	library = filepath.Join(folder, name)
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	of, err := filepath.Glob(filepath.Join(folder, "*.so")) // an earlier source
	if err != nil {
		return "", err
	}
	for _, old := range of {
		if err := os.Remove(old); err != nil {
			return "", err
		}
	}
	made := library + ".new"
	build := exec.Command("g++", append(slices.Clone(flags), "-o", made, filepath.Join("internal/cuda/kernels", "emu", "emu.cc"))...)
	build.Dir = tier.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return library, os.Rename(made, library)
}

var flags = []string{"-O2", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden"}

// emulationName says what it is made of, and by which compiler.
func emulationName() (string, error) {
	compiler, err := exec.Command("g++", "-dumpfullversion").Output()
	if err != nil {
		return "", fmt.Errorf("g++: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %s", flags, compiler)
	for _, pattern := range []string{"*.cu", "*.cuh", "emu/*"} {
		files, err := filepath.Glob(filepath.Join(tier.Root(), "internal/cuda/kernels", pattern))
		if err != nil {
			return "", err
		}
		for _, file := range files { // in the order of their names
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(file), len(text), text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]) + ".so", nil
}
