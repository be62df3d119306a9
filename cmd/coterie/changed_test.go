package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherRunsResultsAreNotGiven: the same command on other data, or another one in the same
// folder, does not print the figures of what lies there; a sweep says what it makes anew.
func TestOtherRunsResultsAreNotGiven(t *testing.T) {
	dir := t.TempDir()
	rows, err := os.ReadFile(example("clinics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(example("own-table.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	table := func(rows string) {
		if err := os.WriteFile(filepath.Join(dir, "clinics.csv"), []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, grid, out, swept := filepath.Join(dir, "own-table.yaml"), filepath.Join(dir, "sweep.yaml"), filepath.Join(dir, "seeds"), filepath.Join(dir, "swept")
	for name, text := range map[string]string{file: string(text), grid: "run: own-table.yaml\nset: [algorithm.rounds=3]\ngrid: {algorithm.lambda: [0.1, 1]}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table(string(rows))
	seeds := []string{"run", file, "--set", "algorithm.rounds=3", "--seeds", "1..2", "--out", out}
	first := runJSON(t, seeds...)
	grids := runJSON(t, "sweep", grid, "--out", swept)
	if again := runJSON(t, seeds...); again["mean"] != first["mean"] {
		t.Errorf("the same command gives %v, at first %v", again["mean"], first["mean"])
	}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"more rounds":      {[]string{"run", file, "--set", "algorithm.rounds=5", "--seeds", "1..2", "--out", out}, `it has "rounds: 3" where "rounds: 5" is asked for`},
		"another run file": {[]string{"run", example("ifca.yaml"), "--seeds", "1..2", "--out", out}, "another run file"},
	} {
		stdout, stderr, code := coterie(t, c.args...)
		if code != exitFailure || stdout != "" || !strings.Contains(stderr, c.says) || !strings.Contains(stderr, filepath.Join(out, "seed-1")) || !strings.Contains(stderr, "give another --out") {
			t.Errorf("%s: exit %d: %s%s", name, code, stdout, stderr)
		}
	}
	lines := strings.SplitAfter(string(rows), "\n")
	table(strings.Join(append(lines[:1:1], lines[3:]...), "")) // two rows less
	if stdout, stderr, code := coterie(t, seeds...); code != exitFailure || stdout != "" || !strings.Contains(stderr, "other data") {
		t.Errorf("two rows less: exit %d: %s%s", code, stdout, stderr)
	}
	stdout, stderr, code := coterie(t, "sweep", grid, "--out", swept)
	if code != 0 || !strings.Contains(stderr, "the data were changed") || !strings.Contains(stdout, "tuning: not charged") {
		t.Errorf("a sweep on two rows less: exit %d: %s%s", code, stdout, stderr)
	}
	if changed := runJSON(t, "sweep", grid, "--out", swept); changed["points"].([]any)[0].(map[string]any)["mean"] == grids["points"].([]any)[0].(map[string]any)["mean"] {
		t.Error("a sweep on two rows less has the figures of all rows")
	}
}
