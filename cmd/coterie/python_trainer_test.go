package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/data/source"
	"github.com/coterie-fl/coterie/federation/trainer"
	"github.com/coterie-fl/coterie/internal/tier"
	"github.com/coterie-fl/coterie/model"
)

// tableTrainer is a trainer on a table, in Python.
const tableTrainer = `import sys
from coterie.trainer import Table, serve
serve(Table(sys.argv[1], sys.argv[2], client=sys.argv[3], client_column="hospital"))
`

// TestPythonGradientsAsGo: every example's gradient and loss from coterie.trainer.Table
// is the linear model's here, for every loss, within what float32 leaves.
func TestPythonGradientsAsGo(t *testing.T) {
	python := tier.PythonProgram(t)
	for _, loss := range []string{"cross-entropy", "hinge", "squared-error", "half-squared-error"} {
		t.Run(loss, func(t *testing.T) {
			dir := t.TempDir()
			writeTable(t, dir)
			writeFiles(t, dir, map[string]string{"train.py": tableTrainer})
			trainsAsGo(t, dir, []string{python, "train.py", "encoding.json", "rows.csv", "south"}, "--set", "algorithm.local.loss="+loss)
		})
	}
	for name, classes := range map[string]string{
		"classes": "{kind: network, layers: [{kind: linear, units: 3}]}", "softmax regression": "{kind: linear}", "softmax regression without intercept": "{kind: linear, intercept: false}",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTable(t, dir)
			writeFiles(t, dir, map[string]string{"train.py": tableTrainer})
			trainsAsGo(t, dir, []string{python, "train.py", "encoding.json", "rows.csv", "south"}, "--set", "model="+classes,
				"--set", "data.task=classes", "--set", "data.target=colour", "--set", `data.classes=[blue, red, "gre,en"]`,
				"--set", "data.features=[{name: age, type: number, range: [0, 120]}, {name: bmi, type: number, range: [10, 70], missing: indicator}]")
		})
	}
}

// trainsAsGo holds a trainer in a folder with run.yaml and rows.csv, of the rows of south,
// against the run file's model in Go.
func trainsAsGo(t *testing.T, dir string, command []string, change ...string) {
	t.Helper()
	encodingFile(t, dir, change...)
	run := resolved(t, dir, change)
	f, err := source.LoadTable(run.Data, run.Seed, "south")
	if err != nil {
		t.Fatal(err)
	}
	here := &f.Train[0]
	m, err := model.Of(run, f.Shape())
	if err != nil {
		t.Fatal(err)
	}
	child, err := trainer.Start(context.Background(), trainer.Spec{
		Command: command, Directory: dir, Environment: tier.Environment(), Mode: trainer.ModeMethod,
	}, m.Parameters())
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if child.Examples() != here.Len() {
		t.Fatalf("Python has %d examples, Go %d", child.Examples(), here.Len())
	}
	theta := make([]float64, m.Parameters())
	for i := range theta {
		theta[i] = math.Sin(float64(i + 1))
	}
	own, err := m.Learner()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := child.InPlaceOf(m, run.Algorithm.Local.Loss).Learner()
	if err != nil {
		t.Fatal(err)
	}
	compare := func(what string, ask func(l model.Learner, dst []float64) error, size int) {
		t.Helper()
		want, got := make([]float64, size), make([]float64, size)
		if err := ask(own, want); err != nil {
			t.Fatal(err)
		}
		if err := ask(theirs, got); err != nil {
			t.Fatal(err)
		}
		if err := child.Failure(); err != nil {
			t.Fatal(err)
		}
		if !within(1e-5, want, got) {
			t.Errorf("%s: Python has %v, Go %v", what, got, want)
		}
	}
	for _, i := range []int{0, 7, here.Len() - 1} {
		compare(fmt.Sprint("gradient of example ", i), func(l model.Learner, dst []float64) error {
			return l.Gradient(dst, theta, here, []int{i}, &model.Step{})
		}, len(theta))
	}
	compare("losses", func(l model.Learner, dst []float64) error { return l.Losses(dst, theta, here) }, here.Len())
	compare("loss and wrong answers", func(l model.Learner, dst []float64) error {
		mean, wrong, err := l.Judge(theta, here)
		dst[0], dst[1] = mean, float64(wrong)
		return err
	}, 2)
}

// TestPythonTrainerInAFederation: of three participants with a table each, one trains in
// Python. With seeded noise the models are those of the simulation, within 1e-5.
func TestPythonTrainerInAFederation(t *testing.T) {
	python := tier.PythonProgram(t)
	run := strings.Replace(tableRun, "public_size: 40", "public_size: 40, noise: exact-seeded", 1)
	f := newClinics(t, run, "", "ceilings:\n  - {unit: example, relation: add-remove, claim: proved, epsilon: 2.1, delta: 1.0e-5}\n", "north", "south", "west")
	writeTable(t, f.dir)
	f.write("run.yaml", run)
	encodingFile(t, f.dir)
	f.write("train.py", tableTrainer)
	simulated := runJSON(t, "run", f.path("run.yaml"), "--out", f.path("simulated"))
	server := f.start("serve", f.path("serve.yaml"), "--unsafe-seeded-noise")
	var joins []*process
	for _, name := range f.names {
		f.enrol(name)
		join := "policy: ../policy.yaml\ndata: {kind: own, run: ../run.yaml, source: {path: ../rows.csv, client: hospital}}\n"
		if name == "south" {
			join = fmt.Sprintf("policy: ../policy.yaml\ndata: {kind: trainer}\ntrainer:\n  command: [%s, train.py, encoding.json, rows.csv, south]\n  directory: ..\n  environment: [%s]\n",
				python, strings.Join(tier.Environment(), ", "))
		}
		f.write(name+"/join.yaml", join)
		joins = append(joins, f.start("join", f.path(name, "join.yaml"), "--unsafe-seeded-noise"))
	}
	for _, p := range joins {
		if r := f.result(p); r["released"] != 3.0 || r["blank"] != 0.0 {
			t.Errorf("released %v times, %v of them blank: %s", r["released"], r["blank"], p.errs.String())
		}
	}
	f.result(server)
	want := tensorsOf(t, f.path("simulated", "model.safetensors"))
	got := tensorsOf(t, f.path("server", "model.safetensors"))
	if !within(1e-5, want["hypothesis.0"], got["hypothesis.0"]) {
		t.Errorf("the server's model is %v, in simulation %v (%v)", got["hypothesis.0"], want["hypothesis.0"], simulated["model_sha256"])
	}
	for i, name := range f.names {
		own := tensorsOf(t, f.path(name, "out", "personal.safetensors"))["personal.0"]
		if !within(1e-5, want[fmt.Sprintf("client.%d", i)], own) {
			t.Errorf("%s has %v, in simulation %v", name, own, want[fmt.Sprintf("client.%d", i)])
		}
	}
}

// within says that two models are the same but for a difference in any parameter.
func within(difference float64, a, b []float64) bool {
	for i := range a {
		if len(a) != len(b) || !(math.Abs(a[i]-b[i]) <= difference) {
			return false
		}
	}
	return len(a) > 0
}

func tensorsOf(t *testing.T, path string) map[string][]float64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := model.ReadTensors[float64](file, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for _, tensor := range all {
		out[tensor.Name] = tensor.Values
	}
	return out
}
