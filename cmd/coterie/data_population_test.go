package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPopulation: generated, read again, looked at, shown on a page; training is refused.
func TestPopulation(t *testing.T) {
	t.Setenv("COTERIE_DATA", "")
	folder := t.TempDir()
	people, page := filepath.Join(folder, "people"), filepath.Join(folder, "page.html")
	made := runJSON(t, "data", "generate", "population", "--persons", "700", "--seed", "4", "--out", people)
	figures := made["figures"].(map[string]any)
	if made["folder"] != people || len(made["files"].([]any)) != 8 || !strings.Contains(made["households_from"].(string), "invented") || figures["persons"].(float64) < 700 {
		t.Errorf("%v", made)
	}
	writeFiles(t, folder, map[string]string{
		"read.yaml":  "data: {kind: pandemic, partition: region, source: {path: people}}\nalgorithm: {kind: fedavg}\n",
		"drawn.yaml": "data: {kind: pandemic, persons: 700, population_seed: 4}\n",
	})
	read, drawn := filepath.Join(folder, "read.yaml"), filepath.Join(folder, "drawn.yaml")
	checked := runJSON(t, "data", "check", read, "--report", page)
	same := runJSON(t, "data", "check", drawn)
	for name, other := range map[string]any{"read": checked["population"], "drawn": same["population"]} {
		if got := other.(map[string]any); got["contacts"] != figures["contacts"] || got["ever_infected"] != figures["ever_infected"] || len(got["curve"].([]any)) != 57 {
			t.Errorf("%s: %v, want %v", name, got, figures)
		}
	}
	if len(checked["clients"].([]any)) != 10 || len(same["clients"].([]any)) != 1 {
		t.Errorf("%v", checked["clients"])
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "Epidemic curve") {
		t.Error(err)
	}
	stdout, _, _ := coterie(t, "data", "check", read)
	for _, want := range []string{"region-9", "contacts of a person: mean", "region  persons  ever infected", "  day 56 "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"data", "generate", "population", "--out", people}, exitUsage, "the folder is not empty"},
		{[]string{"data", "generate", "population", "--out", filepath.Join(folder, "x"), "--persons", "0"}, exitUsage, "0 persons; allowed: 1 to"},
		{[]string{"data", "check", example("ifca.yaml"), "--report", page}, exitUsage, "--report is for data.kind pandemic"},
		{[]string{"audit", "inversion", drawn, "--one-example"}, exitFailure, "neither attack knows them"},
		{[]string{"data", "generate", "poems"}, exitUsage, "poems"},
	} {
		if _, stderr, code := coterie(t, c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d, %s", c.args, code, stderr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 4 {
		t.Errorf("left: %v", left)
	}
}

// TestPopulationFaults: all at once, to programs with file and line.
func TestPopulationFaults(t *testing.T) {
	folder := t.TempDir()
	people := filepath.Join(folder, "people")
	runJSON(t, "data", "generate", "population", "--persons", "50", "--out", people)
	writeFiles(t, folder, map[string]string{"run.yaml": "data: {kind: pandemic, source: {path: people}}\n"})
	file := filepath.Join(people, "disease_outcome_target.csv")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "\n2,", "\n2,7", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := coterie(t, "data", "check", filepath.Join(folder, "run.yaml"), "--output", "json")
	if code != exitUsage || !strings.Contains(stderr, `"path":"disease_outcome_target.csv","line":3`) {
		t.Errorf("%d: %s", code, stderr)
	}
}
