package kernels

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// atomic is an operation that other threads' may be between.
var atomic = regexp.MustCompile(`(?m)(^|\s)(atom|red)\.\S+`)

// TestPTXIsOfTheSource: whoever changes a kernel makes the PTX anew (scripts/cuda-kernels).
func TestPTXIsOfTheSource(t *testing.T) {
	for _, of := range []struct{ name, ptx, target, version string }{{"kernels.ptx.gz", PTX(), "sm_75", "7.5"}, {"tensor.ptx.gz", TensorPTX(), "sm_80", "7.5"}, {"groups.ptx.gz", GroupsPTX(), "sm_90a", "8.0"}} {
		if Source(of.ptx) != Hash() {
			t.Errorf("%s is of the source %s, the source here is %s: run scripts/cuda-kernels where there is nvcc", of.name, Source(of.ptx), Hash())
		}
		if !strings.Contains(of.ptx, ".target "+of.target) || !strings.Contains(of.ptx, ".version "+of.version) {
			t.Errorf("%s is for other devices or drivers than docs/gpu.md says", of.name)
		}
		for _, kernel := range strings.Split(of.ptx, ".entry ") {
			name, _, _ := strings.Cut(kernel, "(")
			for _, found := range atomic.FindAllString(kernel, -1) {
				found = strings.TrimSpace(found)
				if whole := slices.Contains([]string{"whole_rows", "whole_products", "formed_sum"}, name); !whole || found != "red.global.add.f64" {
					t.Errorf("%s: %s has %s: sums must have a fixed order, but those of whole numbers", of.name, name, found)
				}
			}
		}
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
