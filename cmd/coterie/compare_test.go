package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunCompares: --compare trains the same file with other methods and shows them side by
// side; faults of all of them are told at once, before anything is made.
func TestRunCompares(t *testing.T) {
	folder := t.TempDir()
	writeSchools(t, folder)
	writeFiles(t, folder, map[string]string{"run.yaml": "data: {kind: school}\nalgorithm: {kind: mr-mtl, rounds: 3}\n"})
	file, dir := filepath.Join(folder, "run.yaml"), filepath.Join(folder, "made")
	stdout, stderr, code := coterie(t, "run", file, "--data", folder, "--out", dir, "--compare", "local,fedavg")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"Did taking part pay, for whom?", "RMSE, mr-mtl", "Is mr-mtl better than fedavg, for whom?", "Taking part paid for ", "not covered: comparison:"} {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q is not in\n%s%s", want, stdout, stderr)
		}
	}
	for _, sub := range []string{"compare-local", "compare-fedavg"} {
		for _, name := range []string{"result.json", "run.yaml", "model.safetensors", "report.html"} {
			if !exists(filepath.Join(dir, sub, name)) {
				t.Errorf("%s has no %s", sub, name)
			}
		}
	}
	// The report is the same when it is written again.
	before := read(t, filepath.Join(dir, "report.html"))
	if _, stderr, code := coterie(t, "report", dir); code != 0 || read(t, filepath.Join(dir, "report.html")) != before || !strings.Contains(before, `id="compared"`) {
		t.Errorf("exit %d, another report: %s", code, stderr)
	}
	dir = filepath.Join(folder, "refused")
	_, stderr, code = coterie(t, "run", file, "--data", folder, "--out", dir, "--set", "privacy.protects=client", "--set", "privacy.epsilon=3", "--compare", "local,mocha,x")
	if code != exitUsage || exists(dir) || !strings.Contains(stderr, "judge.compare.0") || !strings.Contains(stderr, "judge.compare.1") || !strings.Contains(stderr, "judge.compare.2") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if _, stderr, code := coterie(t, "run", "--resume", filepath.Join(folder, "made"), "--compare", "ifca"); code != exitUsage || !strings.Contains(stderr, "--compare") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
