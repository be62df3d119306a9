package kernels

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPTXIsOfTheSource: whoever changes a kernel makes the PTX anew (scripts/cuda-kernels).
func TestPTXIsOfTheSource(t *testing.T) {
	ptx := PTX()
	if Source(ptx) != Hash() {
		t.Errorf("kernels.ptx.gz is of the source %s, the source here is %s: run scripts/cuda-kernels where there is nvcc", Source(ptx), Hash())
	}
	if !strings.Contains(ptx, ".target sm_75") || !strings.Contains(ptx, ".version 7.5") {
		t.Error("kernels.ptx.gz is for other devices or drivers than docs/gpu.md says")
	}
	if regexp.MustCompile(`\b(atom|red)\.`).MatchString(ptx) {
		t.Error("a kernel has atomic operations: sums must have a fixed order")
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if (strings.HasSuffix(f.Name(), ".cu") || strings.HasSuffix(f.Name(), ".cuh")) && !slices.Contains(Names, f.Name()) {
			t.Errorf("%s is not hashed", f.Name())
		}
	}
	script, err := os.ReadFile("../../../scripts/cuda-kernels")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "cat "+strings.Join(Names, " ")) {
		t.Error("scripts/cuda-kernels hashes other files, or in another order")
	}
}
