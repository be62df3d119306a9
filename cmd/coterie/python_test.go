package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/source"
	"github.com/coterie-fl/coterie/internal/tier"
	"github.com/coterie-fl/coterie/model"
)

// TestPython runs the package's own tests, and its tutorial. None may be skipped.
func TestPython(t *testing.T) {
	python := tier.PythonProgram(t)
	files, err := filepath.Glob(filepath.Join(tier.Root(), "python", "tests", "test_*.py"))
	if err != nil || len(files) < 5 {
		t.Fatalf("the package's tests: %v, %v", files, err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".py"); name != "test_torch" {
			t.Run(name, func(t *testing.T) { pythonTests(t, python, name) })
		}
	}
	t.Run("tutorial", func(t *testing.T) {
		out := runPython(t, python, filepath.Join(tier.Root(), "python", "examples", "tutorial.py"))
		for _, want := range []string{"claim: proved", "refused: ['algorithm.rounds']", "newcomers get mean", "a hospital that was not there:", "rows: 1800"} {
			if !strings.Contains(out, want) {
				t.Errorf("the tutorial does not print %q:\n%s", want, out)
			}
		}
	})
}

// TestTorch runs the tests of the PyTorch adapter.
func TestTorch(t *testing.T) { pythonTests(t, tier.TorchProgram(t), "test_torch") }

func pythonTests(t *testing.T, python, module string) {
	t.Helper()
	out := runPython(t, python, "-m", "unittest", "-v", "tests."+module)
	if strings.Contains(out, "skipped") || !strings.Contains(out, "... ok") {
		t.Errorf("tests of %s were skipped, or there are none:\n%s", module, out)
	}
}

// runPython runs a Python that must succeed, in the package's folder.
func runPython(t *testing.T, python string, args ...string) string {
	t.Helper()
	cmd := exec.Command(python, args...)
	cmd.Dir = filepath.Join(tier.Root(), "python")
	cmd.Env = append(os.Environ(), "COTERIE_BINARY="+binary)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// tableRun is a table with every type of column and every rule for missing cells.
const tableRun = `seed: 11
data:
  kind: table
  source: {path: rows.csv, client: hospital}
  target: readmitted
  task: yes/no
  target_missing: leave-out
  features:
    - {name: age, type: number, range: [0, 120]}
    - {name: bmi, type: number, range: [10.3, 60.7], missing: indicator}
    - {name: height, type: number, range: [100, 220], missing: constant, constant: 170}
    - {name: ward, type: category, values: [A, "B 1", 3], missing: indicator}
    - {name: colour, type: category, values: [red, blue]}
    - {name: smoker, type: yes/no, missing: constant, constant: no}
    - {name: married, type: yes/no, values: [single, married]}
algorithm: {kind: mr-mtl, mode: sound, rounds: 3, local: {step: 0.5}}
privacy: {epsilon: 2, delta: 1.0e-5, public_size: 40}
`

// writeTable writes rows of three hospitals with all that may stand in a cell.
func writeTable(t *testing.T, dir string) {
	t.Helper()
	draw := rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) string { return of[draw.IntN(len(of))] }
	text := "\ufeffhospital, age,bmi,height,ward,colour,smoker,married,readmitted\n"
	for range 400 {
		text += strings.Join([]string{one("north", "south", "west"), one(fmt.Sprintf("%.1f", 130*draw.Float64()), "-0", "1e1", "7.", "  33 "),
			one("", "NA", fmt.Sprint(10+60*draw.Float64())), one("?", "171", "98.25", "250"), one("A", `"B 1"`, "3", "D", "null"), one("red", "blue", `"gre,en"`),
			one("yes", "No", "T", "0", ""), one("single", "married"), one("yes", "no", "1", "FALSE", "")}, ",") + "\n"
	}
	writeFiles(t, dir, map[string]string{"rows.csv": text, "run.yaml": tableRun})
}

// TestPythonHoldsOutTheSameRows: coterie.trainer.TableRows has the inputs, targets and
// split of a participant in Go, bit for bit.
func TestPythonHoldsOutTheSameRows(t *testing.T) {
	python := tier.PythonProgram(t)
	for name, change := range map[string][]string{
		"hash":  nil,
		"limit": {"--set", "data.train_limit=60", "--set", "privacy.relation=replace-one"},
		"number": {"--set", "data.task=number", "--set", "data.target=age", "--set", "data.target_range=[5, 90.1]",
			"--set", "data.features=[{name: bmi, type: number, range: [10, 70.7], missing: indicator}, {name: smoker, type: yes/no, missing: indicator}]"},
		"column": {"--set", "data.test={column: colour, value: red}"},
		"seed":   {"--set", "seed=18446744073709551615", "--set", "data.test_share=0.63"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTable(t, dir)
			encoding := encodingFile(t, dir, change...)
			out := runPython(t, python, "-c", `
import json, sys
from coterie.trainer import TableRows
r = TableRows(sys.argv[1], sys.argv[2], "south", "hospital")
bits = lambda a: a.astype("<f8").view("<u8").ravel().tolist()
print(json.dumps([bits(r.x), bits(r.y), bits(r.held_x), bits(r.held_y)]))`, encoding, filepath.Join(dir, "rows.csv"))
			var got [4][]uint64
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			run := resolved(t, dir, change)
			f, err := source.LoadTable(run.Data, run.Seed, "south")
			if err != nil {
				t.Fatal(err)
			}
			c := f.Train[0]
			if c.Held.Len() < 10 || c.Len() < 10 {
				t.Fatalf("%d rows train, %d are held out: too few to tell", c.Len(), c.Held.Len())
			}
			for i, want := range [][]float64{c.X, c.Y, c.Held.X, c.Held.Y} {
				if len(want) != len(got[i]) {
					t.Fatalf("part %d: Python has %d values, Go %d", i, len(got[i]), len(want))
				}
				for k, v := range want {
					if math.Float64bits(v) != got[i][k] {
						t.Fatalf("part %d, value %d: Python has %v, Go %v", i, k, math.Float64frombits(got[i][k]), v)
					}
				}
			}
		})
	}
}

// encodingFile is what `data encoding` prints of run.yaml, in a file.
func encodingFile(t *testing.T, dir string, change ...string) string {
	t.Helper()
	out, errs, code := coterie(t, append([]string{"data", "encoding", filepath.Join(dir, "run.yaml")}, change...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	writeFiles(t, dir, map[string]string{"encoding.json": out})
	return filepath.Join(dir, "encoding.json")
}

// resolved is run.yaml as the commands read it.
func resolved(t *testing.T, dir string, change []string) config.Run {
	t.Helper()
	var set []string
	for i := 1; i < len(change); i += 2 {
		set = append(set, change[i])
	}
	text, err := os.ReadFile(filepath.Join(dir, "run.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := config.Resolve(text, set)
	if err != nil {
		t.Fatal(err)
	}
	if run.Data, err = run.Data.Under(dir); err != nil {
		t.Fatal(err)
	}
	return run
}

// TestPythonNetworksAsGo: networks of all kinds of layers that the package knows give
// what they give here.
func TestPythonNetworksAsGo(t *testing.T) {
	python := tier.PythonProgram(t)
	layers := func(l ...model.Layer) []model.Layer { return l }
	for name, c := range map[string]struct {
		input  model.Shape
		layers []model.Layer
	}{
		"dense": {model.Shape{Height: 1, Width: 1, Channels: 5}, layers(model.Layer{Kind: "linear", Units: 4}, model.Layer{Kind: "tanh"},
			model.Layer{Kind: "residual", Inner: layers(model.Layer{Kind: "linear", Units: 4, NoBias: true}, model.Layer{Kind: "leaky-relu", Slope: 0.2})},
			model.Layer{Kind: "sigmoid"}, model.Layer{Kind: "linear", Units: 3})},
		"convolutions": {model.Shape{Height: 9, Width: 8, Channels: 2}, layers(model.Layer{Kind: "conv", Channels: 3, Kernel: 3, Padding: 1}, model.Layer{Kind: "relu"},
			model.Layer{Kind: "max-pool", Kernel: 3, Stride: 2, Padding: 1}, model.Layer{Kind: "conv", Channels: 4, Kernel: 2, Stride: 2, NoBias: true}, model.Layer{Kind: "leaky-relu"},
			model.Layer{Kind: "mean-pool", Kernel: 2, Stride: 1, Padding: 1}, model.Layer{Kind: "flatten"}, model.Layer{Kind: "linear", Units: 3}, model.Layer{Kind: "relu"})},
		"norms": {model.Shape{Height: 7, Width: 8, Channels: 2}, layers(
			model.Layer{Kind: "residual",
				Inner:    layers(model.Layer{Kind: "conv", Channels: 6, Kernel: 3, Stride: 2, Padding: 1}, model.Layer{Kind: "group-norm", Groups: 3}, model.Layer{Kind: "relu"}),
				Shortcut: layers(model.Layer{Kind: "conv", Channels: 6, Kernel: 1, Stride: 2, NoBias: true}, model.Layer{Kind: "group-norm"})},
			model.Layer{Kind: "layer-norm"}, model.Layer{Kind: "tanh"}, model.Layer{Kind: "mean-pool"}, model.Layer{Kind: "linear", Units: 3})},
		"words": {model.Shape{Height: 1, Width: 1, Channels: 6}, layers(model.Layer{Kind: "embedding", Vocabulary: 5, Units: 3}, model.Layer{Kind: "layer-norm"}, model.Layer{Kind: "linear", Units: 3})},
	} {
		t.Run(name, func(t *testing.T) {
			net, err := model.Build[float64](c.input, c.layers)
			if err != nil {
				t.Fatal(err)
			}
			draw := rand.New(rand.NewPCG(3, 4))
			theta, x := make([]float64, net.Parameters()), make([]float64, 7*c.input.Len())
			for _, values := range [][]float64{theta, x} {
				for i := range values {
					values[i] = draw.NormFloat64()
				}
			}
			for i := range x {
				if c.layers[0].Kind == "embedding" {
					x[i] = float64(draw.IntN(c.layers[0].Vocabulary))
				}
			}
			objective, err := model.NewObjective[float64]("cross-entropy")
			if err != nil {
				t.Fatal(err)
			}
			engine, err := model.NewEngine(net, objective, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]float64, 7*net.Output().Len())
			if err := engine.Outputs(want, theta, model.Examples[float64]{X: x, Labels: make([]int, 7)}, []int{0, 1, 2, 3, 4, 5, 6}); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(map[string]any{
				"model": config.Model{Kind: "network", Layers: c.layers}, "theta": theta, "x": x,
				"shape": data.Shape{Height: c.input.Height, Width: c.input.Width, Channels: c.input.Channels},
			})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "network.json")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			out := runPython(t, python, "-c", `
import json, sys, numpy
from coterie.network import outputs
a = json.load(open(sys.argv[1]))
print(json.dumps(outputs(a["model"], a["shape"], numpy.array(a["theta"]), numpy.array(a["x"]).reshape(7, -1)).ravel().tolist()))`, file)
			var got []float64
			if err := json.NewDecoder(bytes.NewBufferString(out)).Decode(&got); err != nil || len(got) != len(want) {
				t.Fatalf("%d outputs, want %d (%v)", len(got), len(want), err)
			}
			for i := range want {
				if math.Abs(got[i]-want[i]) > 1e-9*(1+math.Abs(want[i])) {
					t.Fatalf("output %d is %v, here %v", i, got[i], want[i])
				}
			}
		})
	}
}
