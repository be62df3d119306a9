package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// canaryFile is a run file that can be audited, with noise that repeats.
const canaryFile = `name: audited
data: {kind: school, standardise: public}
model: {kind: linear, intercept: true, init_sd: 0}
algorithm:
  kind: fedavg
  mode: sound
  rounds: 4
  weights: equal
  local: {epochs: 1, step: 0.05, batch: 8}
privacy: {epsilon: 8, delta: 1.0e-4, relation: add-remove, public_size: 8, noise: simulated}
`

func canaryJSON(t *testing.T, code int, args ...string) map[string]any {
	t.Helper()
	stdout, stderr, got := coterie(t, append([]string{"audit", "canary", "--output", "json", "--quiet"}, args...)...)
	if got != code {
		t.Fatalf("%v: exit %d, want %d: %s", args, got, code, stderr)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return out
}

// TestAuditCanary: the run file's blocks are what is audited; the same seed prints
// the same, with every key of docs/json.md.
func TestAuditCanary(t *testing.T) {
	file := writeRun(t, canaryFile)
	out := canaryJSON(t, 0, file, "--runs", "2000", "--seed", "7")
	number := func(key string) float64 { return out[key].(float64) }
	claim := out["privacy"].(map[string]any)["epsilon"].(float64)
	if number("runs") != 2000 || number("rounds") != 4 || number("rate") != 1 || out["noise"] != "simulated" || claim > 8 || claim < 7.99 {
		t.Errorf("%v", out)
	}
	if e := number("epsilon_at_least"); e > claim || e < 0.7*number("tight_epsilon") || number("curve_free_epsilon_at_least") > e {
		t.Errorf("at least %v, claim %v: %v", e, claim, out)
	}
	if list, _ := json.Marshal(out["privacy"].(map[string]any)["not_covered"]); !strings.Contains(string(list), "seeded float noise") {
		t.Errorf("not covered: %s", list)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## `coterie audit canary`")
	section, _, _ = strings.Cut(section, "\n## ")
	for key := range out {
		if !strings.Contains(section, "`"+key+"`") {
			t.Errorf("%s is printed but not in docs/json.md", key)
		}
	}
	if again := canaryJSON(t, 0, file, "--runs", "2000", "--seed", "7"); !maps.EqualFunc(out, again, func(a, b any) bool {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return string(x) == string(y)
	}) {
		t.Errorf("%v\nand then\n%v", out, again)
	}
	if other := canaryJSON(t, 0, file, "--runs", "200", "--delta", "1e-2"); other["privacy"].(map[string]any)["epsilon"].(float64) >= claim {
		t.Errorf("a larger delta costs as much: %v", other["privacy"])
	}
}

// TestAuditCanaryExceeds: exit code 3, after the result is printed. Half the
// confidence and ten runs err often; this seed is one that does.
func TestAuditCanaryExceeds(t *testing.T) {
	args := []string{writeRun(t, canaryFile), "--set", "privacy.epsilon=0.5", "--runs", "10", "--confidence", "0.5", "--seed", "2"}
	if out := canaryJSON(t, exitRefused, args...); out["exceeds"] != true || !strings.Contains(out["verdict"].(string), "leaks more than it claims") {
		t.Errorf("%v", out)
	}
	if stdout, stderr, _ := coterie(t, append([]string{"audit", "canary"}, args...)...); !strings.Contains(stdout, "leaks more") || strings.Count(stderr, "leaks more") != 1 {
		t.Errorf("%s\n%s", stdout, stderr)
	}
}

// TestAuditCanaryText: the table for people, both bounds in it, on the default
// settings and noise from the system. At this confidence one audit in a million
// finds something.
func TestAuditCanaryText(t *testing.T) {
	stdout, stderr, code := coterie(t, "audit", "canary", "--runs", "300", "--confidence", "0.999999")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"exact noise", "claimed (proved)", "tight", "through the mechanism's curve", "curve-free", "does not show that the claim holds", "assumes", "for one example, add-remove"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestAuditCanaryRefuses(t *testing.T) {
	file := writeRun(t, canaryFile)
	for _, args := range [][]string{
		{"--runs", "3"}, {"--delta", "1"}, {"--delta", "NaN"}, {"--confidence", "1"}, {"--confidence", "0"}, {"--set", "seed=1"}, {"missing.yaml"}, {file, file},
		{file, "--set", "algorithm.kind=local"}, {file, "--set", "privacy.relation=replace-one"}, {file, "--set", "privacy.epsilon=0"},
		{example("group-private.yaml")},
	} {
		if _, stderr, code := coterie(t, append([]string{"audit", "canary"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
	_, stderr, _ := coterie(t, "audit", "canary", file, "--set", "algorithm.kind=local", "--output", "json")
	var fault struct{ Faults []struct{ Path string } }
	if err := json.Unmarshal([]byte(stderr), &fault); err != nil || !slices.ContainsFunc(fault.Faults, func(f struct{ Path string }) bool { return f.Path == "algorithm.kind" }) {
		t.Errorf("%v: %s", err, stderr)
	}
}
