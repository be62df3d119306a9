package main

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// TestPythonPredictsAsGo: the package's answers are those of `coterie predict`, for every
// task, for scaled inputs and networks, for those who took part and for newcomers.
func TestPythonPredictsAsGo(t *testing.T) {
	python := tier.PythonProgram(t)
	network := "model={kind: network, layers: [{kind: linear, units: 3}, {kind: tanh}, {kind: linear, units: 3}]}"
	for name, set := range map[string][]string{
		"yes or no": nil,
		"paid":      {"data.standardise=paid"},
		"hinge":     {"algorithm.local.loss=hinge"},
		"focal":     {"algorithm.local.loss=focal"},
		"squares":   {"algorithm.local.loss=squared-error"},
		"one model": {"algorithm={kind: fedavg, mode: sound, rounds: 3}"},
		"alone":     {"algorithm={kind: local, mode: sound, rounds: 3}"},
		"number": {"data.task=number", "data.target=height", "data.target_range=[90, 230]",
			"data.features=[{name: age, type: number, range: [0, 120]}, {name: colour, type: category, values: [blue]}]"},
		"softmax regression": {"data.task=classes", "data.target=ward", "data.classes=[3, A, D]", "data.target_missing=leave-out",
			"data.features=[{name: bmi, type: number, range: [10, 70], missing: indicator}]"},
		"classes": {"data.task=classes", "data.target=ward", "data.classes=[3, A, D]", "data.target_missing=leave-out", network,
			"data.features=[{name: bmi, type: number, range: [10, 70], missing: indicator}]"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTable(t, dir)
			if slices.Contains(set, "data.task=classes") { // a class that is not on the list is a fault
				text, err := os.ReadFile(filepath.Join(dir, "rows.csv"))
				if err != nil {
					t.Fatal(err)
				}
				writeFiles(t, dir, map[string]string{"rows.csv": strings.ReplaceAll(string(text), `"B 1"`, "A")})
			}
			args := []string{"run", filepath.Join(dir, "run.yaml"), "--out", filepath.Join(dir, "out")}
			for _, s := range set {
				args = append(args, "--set", s)
			}
			runJSON(t, args...)
			for _, client := range []string{"", "west"} {
				args := []string{"predict", filepath.Join(dir, "out"), "--data", filepath.Join(dir, "rows.csv"), "--out", filepath.Join(dir, "answers.csv")}
				if client != "" {
					args = append(args, "--client", client)
				}
				if _, errs, code := coterie(t, args...); code != 0 {
					t.Fatalf("%v: exit %d: %s", args, code, errs)
				}
				want := answersIn(t, filepath.Join(dir, "answers.csv"))
				out := runPython(t, python, "-c", `
import json, sys, coterie, numpy
m, columns = coterie.load(sys.argv[1]), coterie.read_csv(sys.argv[2])
p = m.predict(columns, client=sys.argv[3] or None)
if m.task == "yes/no":
    p = numpy.column_stack([1 - p, p])
print(json.dumps(p.reshape(len(columns["age"]), -1).tolist()))`, filepath.Join(dir, "out"), filepath.Join(dir, "rows.csv"), client)
				var got [][]float64
				if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != len(want) || len(got) != 400 {
					t.Fatalf("%d answers, want %d (%v)", len(got), len(want), err)
				}
				for i := range want {
					for k := range want[i] {
						if math.Abs(want[i][k]-got[i][k]) > 1e-6*math.Max(1, math.Abs(want[i][k])) {
							t.Fatalf("client %q, row %d: Python says %v, Go %v", client, i, got[i], want[i])
						}
					}
				}
			}
		})
	}
}

// answersIn are the numbers of a file of predictions: probabilities, or predicted values.
func answersIn(t *testing.T, path string) [][]float64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var columns []int
	for i, name := range rows[0] {
		if strings.HasPrefix(name, "probability ") {
			columns = append(columns, i)
		}
	}
	if len(columns) == 0 { // numbers
		columns = []int{1}
	}
	var out [][]float64
	for _, row := range rows[1:] {
		var one []float64
		for _, i := range columns {
			v, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			one = append(one, v)
		}
		out = append(out, one)
	}
	return out
}
