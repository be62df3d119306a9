package onnx_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/artifact/onnx"
	"github.com/coterie-fl/coterie/internal/tier"
)

// tolerance is relative to the largest number of an output: of probabilities it is
// stricter than a tolerance of the same size in absolute terms.
const tolerance = 1e-5

// laidOut writes every example's model and inputs into a folder.
func laidOut(t *testing.T) (string, []example) {
	t.Helper()
	folder := t.TempDir()
	examples := append(tableExamples(t), plainExamples(t)...)
	for _, e := range examples {
		var file bytes.Buffer
		if err := onnx.Write(&file, e.graph); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		inputs, err := json.Marshal(e.inputs)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Join(folder, strings.ReplaceAll(e.name, " ", "-"))
		for name, b := range map[string][]byte{base + ".onnx": file.Bytes(), base + ".json": inputs} {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder, examples
}

// compareAll holds what a runtime wrote against Coterie's own answers.
func compareAll(t *testing.T, folder string, examples []example) {
	t.Helper()
	var worst float64
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(folder, strings.ReplaceAll(e.name, " ", "-")+".out.json"))
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]tensor
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			worst = max(worst, compare(t, got, e.want))
		})
	}
	t.Logf("largest difference: %.2g", worst)
}

// compare returns the largest difference of numbers.
func compare(t *testing.T, got, want map[string]tensor) (worst float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for name, w := range want {
		g, ok := got[name]
		if !ok || g.Type != w.Type || !slices.Equal(g.Dims, w.Dims) || len(g.Values) != len(w.Values) {
			t.Errorf("output %q is %s %v of %d values, want %s %v of %d", name, g.Type, g.Dims, len(g.Values), w.Type, w.Dims, len(w.Values))
			continue
		}
		scale := largest(w)
		for i := range w.Values {
			off := difference(g.Values[i], w.Values[i]) / scale
			if off > tolerance {
				t.Errorf("output %q, value %d: %v, want %v", name, i, g.Values[i], w.Values[i])
				break
			}
			worst = max(worst, off)
		}
	}
	return worst
}

// asNumber is a value that is one.
func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case float32:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}

// largest is the largest number of a tensor, 1 if there is none.
func largest(t tensor) float64 {
	var most float64
	for _, v := range t.Values {
		n, _ := asNumber(v)
		most = max(most, math.Abs(n))
	}
	if most == 0 {
		return 1
	}
	return most
}

// difference is infinite for what is not even alike.
func difference(got, want any) float64 {
	g, ok := asNumber(got)
	w, too := asNumber(want)
	switch {
	case got == want: // text, or nothing
		return 0
	case !ok || !too || math.IsNaN(g-w):
		return math.Inf(1)
	}
	return math.Abs(g - w)
}

// TestOnnxruntime runs every example by the reference implementation, onnxruntime.
func TestOnnxruntime(t *testing.T) {
	cache := filepath.Join(tier.Root(), ".cache", "onnx")
	if _, err := os.Stat(filepath.Join(cache, "node_modules", "onnxruntime-node")); err != nil {
		tier.LeaveOut(t, tier.Node, err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		tier.LeaveOut(t, tier.Node, err)
	}
	folder, examples := laidOut(t)
	out, err := exec.Command("node", "testdata/check.js", cache, folder).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", bytes.TrimSpace(out))
	compareAll(t, folder, examples)
}

// TestNumPy runs every example by an evaluator that was written for this test.
func TestNumPy(t *testing.T) {
	python := tier.PythonProgram(t)
	folder, examples := laidOut(t)
	out, err := exec.Command(python, "testdata/onnx_check.py", folder).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", bytes.TrimSpace(out))
	compareAll(t, folder, examples)
}
