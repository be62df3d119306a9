package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedKeys holds docs/json.md against what is printed.
func TestDocumentedKeys(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)`").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
	}
	printed := map[string]bool{}
	folder := t.TempDir()
	writeSchools(t, folder)
	writeFiles(t, folder, map[string]string{
		"layers.yaml":  "algorithm: {kind: group-private, mode: sound, rounds: 2}\nprivacy: {sanitise: layers}\nmodel: {kind: network, layers: [{kind: linear, units: 2}, {kind: tanh}, {kind: linear, units: 1}]}\n",
		"people.yaml":  "data: {kind: pandemic, persons: 1000, inputs: authors-node, neighbours: 2}\nalgorithm: {mode: paper}\n",
		"schools.yaml": "data: {kind: school, standardise: none}\nalgorithm: {kind: mr-mtl, lambda: auto, rounds: 2}\nprivacy: {records_per_person: 2}\njudge: {compare: [local], evaluate: {epsilon: 2}}\n",
		"whole.yaml":   "data: {kind: school}\nalgorithm: {kind: fedavg, rounds: 2}\nprivacy: {protects: client}\n",
	})
	for i, file := range []string{example("group-private-sound.yaml"), example("ifca.yaml"), example("crowd.yaml"), "layers.yaml", "schools.yaml", "whole.yaml", "people.yaml"} {
		if !strings.Contains(file, "examples") {
			file = filepath.Join(folder, file)
		}
		dir := filepath.Join(folder, fmt.Sprint("run", i))
		keys(printed, documented, "", runJSON(t, "run", file, "--data", folder, "--out", dir))
		text, err := os.ReadFile(filepath.Join(dir, "result.json"))
		var stored map[string]any
		if err == nil {
			err = json.Unmarshal(text, &stored)
		}
		if err != nil {
			t.Fatal(err)
		}
		keys(printed, documented, "", stored)
	}
	for k := range printed {
		if !documented[k] {
			t.Errorf("%s is printed but not in docs/json.md", k)
		}
	}
	for k := range documented {
		if !printed[k] {
			t.Errorf("%s is in docs/json.md, but nothing prints it", k)
		}
	}
	for _, k := range []string{"run_id", "algorithm", "seed", "rounds", "clients", "parameters", "judge", "metrics.loss", "metrics.train_loss",
		"privacy.claim", "privacy.unit", "privacy.relation", "privacy.trust", "privacy.epsilon", "privacy.delta", "privacy.sampling",
		"privacy.radius", "privacy.not_covered", "privacy.noise_multiplier", "privacy.epsilon_per_release", "privacy.median_epsilon",
		"privacy.max_epsilon", "privacy.declined", "model_sha256", "kernel", "wall_seconds", "report"} {
		if !printed[k] {
			t.Errorf("%s is not printed: its key is stable", k)
		}
	}
}

// keys adds the paths of an object's keys; those of a list's objects follow its own. A
// key that the documentation describes whole is one.
func keys(into, documented map[string]bool, prefix string, v map[string]any) {
	for k, x := range v {
		path := prefix + k
		inner, ok := x.(map[string]any)
		if !ok || documented[path] {
			into[path] = true
		} else {
			keys(into, documented, path+".", inner)
		}
		list, _ := x.([]any)
		for _, item := range list {
			if inner, ok := item.(map[string]any); ok && path == "participants" {
				keys(into, documented, path+".", inner)
			}
		}
	}
}

func TestErrorsAsJSON(t *testing.T) {
	_, stderr, code := coterie(t, "run", example("ifca.yaml"), "--output", "json", "--set", "algorithm.idle_rounds=0", "--set", "privacy.noise_multiplier=2")
	var e struct {
		Error  string
		Faults []struct {
			Path, Message string
			Line, Column  int
		}
	}
	if err := json.Unmarshal([]byte(stderr), &e); err != nil || code != exitUsage {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	if e.Error == "" || len(e.Faults) != 2 || e.Faults[0].Path != "algorithm.idle_rounds" || e.Faults[1].Path != "privacy.protects" {
		t.Errorf("%+v", e)
	}
	_, stderr, _ = coterie(t, "run", "--output", "json")
	if err := json.Unmarshal([]byte(stderr), &e); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
}
