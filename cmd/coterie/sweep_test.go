package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func swept(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), append([]string{"sweep"}, args...), &out, &errs)
	return out.String(), errs.String(), code
}

func TestSweepGrid(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"run.yaml":   "algorithm: {kind: ifca, rounds: 3}\n",
		"sweep.yaml": "run: run.yaml\nseeds: 2\ngrid: {algorithm.local.step: [0.01, 0.1]}\n",
		"wrong.yaml": "run: run.yaml\ngrid: {algorithm.local.stepp: [0.01, 0.1]}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(folder, "out")
	text, errs, code := swept(t, filepath.Join(folder, "sweep.yaml"), "--out", out, "--quiet")
	if code != 0 || !strings.Contains(text, "tuning: not charged") || strings.Count(text, " loss ") != 2 || strings.Count(text, "* ") != 1 {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
	text, _, code = swept(t, filepath.Join(folder, "sweep.yaml"), "--out", out, "--quiet", "--seeds", "1", "--output", "json")
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil || code != 0 {
		t.Fatalf("exit %d: %v in %s", code, err, text)
	}
	for _, key := range []string{"name", "tuning", "metric", "runs", "seeds", "points", "best", "shared", "chosen", "prices", "growth", "privacy", "says"} {
		if _, ok := object[key]; !ok {
			t.Errorf("no key %q in %s", key, text)
		}
	}
	if object["tuning"] != "not charged" || object["runs"] != 2.0 {
		t.Errorf("%s", text)
	}
	if _, err := os.Stat(filepath.Join(out, "sweep.json")); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{
		{}, {filepath.Join(folder, "none.yaml")}, {filepath.Join(folder, "wrong.yaml")}, {filepath.Join(folder, "sweep.yaml"), "--seeds", "0"},
	} {
		if _, errs, code := swept(t, args...); code != exitUsage || errs == "" {
			t.Errorf("%v: exit %d, %q", args, code, errs)
		}
	}
}

// TestSweepExamples: the example files are fit to be run, and the charged one is made.
func TestSweepExamples(t *testing.T) {
	if os.Getenv("COTERIE_DATA") == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	text, errs, code := swept(t, "../../examples/sweep/school-grid.yaml", "--out", t.TempDir(), "--quiet", "--seeds", "1", "--set", "algorithm.rounds=2", "--set", "privacy.protects=nothing", "--set", "privacy.epsilon=0")
	if code != 0 || !strings.Contains(text, "tuning: not charged") {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
	out := t.TempDir()
	text, errs, code = swept(t, "../../examples/sweep/school-grid-charged.yaml", "--out", out, "--quiet", "--seeds", "1", "--set", "algorithm.rounds=2")
	if code != 0 || !strings.Contains(text, "tuning: grid charged") || !strings.Contains(text, "the 6 runs of a seed together cost epsilon 6 (") || !strings.Contains(text, "random stopping, and a pivot") {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil || !strings.Contains(string(page), "coterie sweep ../../examples/sweep/school-grid-charged.yaml --set &#39;algorithm.rounds=2&#39; --seeds 1") {
		t.Errorf("%v, %d bytes", err, len(page))
	}
	out = t.TempDir()
	text, errs, code = swept(t, "../../examples/sweep/school-charged.yaml", "--out", out, "--quiet", "--set", "algorithm.rounds=2")
	if code != 0 || !strings.Contains(text, "tuning: charged") || !strings.Contains(text, "not covered:") {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
	if _, err := os.Stat(filepath.Join(out, "model.safetensors")); err != nil {
		t.Error(err)
	}
}
