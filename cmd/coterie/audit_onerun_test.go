package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// documentedJSON is what an audit prints, every key of it in docs/json.md.
func documentedJSON(t *testing.T, command string, code int, args ...string) map[string]any {
	t.Helper()
	stdout, stderr, got := coterie(t, append([]string{"audit", command, "--output", "json", "--quiet"}, args...)...)
	if got != code {
		t.Fatalf("%v: exit %d, want %d: %s", args, got, code, stderr)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## `coterie audit "+command+"`")
	section, _, _ = strings.Cut(section, "\n## ")
	for key := range out {
		if !strings.Contains(section, "`"+key+"`") {
			t.Errorf("%s is printed but not in docs/json.md", key)
		}
	}
	return out
}

// TestAuditOneRun: the run file's steps are what is audited, and its ceiling is told.
func TestAuditOneRun(t *testing.T) {
	file := writeRun(t, canaryFile)
	out := documentedJSON(t, "onerun", 0, file, "--steps-only", "--seed", "7")
	number := func(key string) float64 { return out[key].(float64) }
	if number("canaries") != 1000 || number("guesses") != 100 || number("steps") != 4 || number("rate") != 1 || out["canaries_are"] != "gradients" || out["steps_only"] != true {
		t.Errorf("%v", out)
	}
	if e := number("epsilon_at_least"); e < 1 || e > number("epsilon_ceiling") || number("epsilon_ceiling") > 3.5 || out["exceeds"] != false {
		t.Errorf("at least %v of at most %v", e, number("epsilon_ceiling"))
	}
	stdout, stderr, code := coterie(t, "audit", "onerun", file, "--steps-only")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"claimed (proved)", "ceiling", "with 95 % confidence", "cannot refute the claim", "assumes", "for one example, add-remove", "thrown away", "not covered"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// TestAuditOneRunExceeds: exit code 3, after the result is printed. At half the
// confidence and a tiny claim the bound errs often; this seed is one that does.
func TestAuditOneRunExceeds(t *testing.T) {
	args := []string{writeRun(t, canaryFile), "--steps-only", "--set", "privacy.epsilon=0.05", "--confidence", "0.5", "--guesses", "1000"}
	for seed := range 40 {
		stdout, stderr, code := coterie(t, append([]string{"audit", "onerun", "--seed", strconv.Itoa(seed)}, args...)...)
		if code == exitRefused {
			if !strings.Contains(stdout, "leaks more") || strings.Count(stderr, "leaks more") != 1 {
				t.Errorf("%s\n%s", stdout, stderr)
			}
			return
		}
	}
	t.Error("no seed of 40 errs at half the confidence")
}

// TestAuditMechanism: nothing is found in the steps as shipped. At this confidence one
// audit in a million finds something.
func TestAuditMechanism(t *testing.T) {
	file := writeRun(t, canaryFile)
	out := documentedJSON(t, "mechanism", 0, file, "--confidence", "0.999999", "--set", "privacy.noise=exact")
	if out["all_steps"].(float64) != 4 || out["runs"].(float64) != 1000 || out["exceeds"] != false || out["step_noise_at_most"].(float64) < 1 {
		t.Errorf("%v", out)
	}
	if e, claim := out["epsilon_at_least"].(float64), out["privacy"].(map[string]any)["epsilon"].(float64); e > claim || e < 0.5*claim {
		t.Errorf("at least %v, claim %v", e, claim)
	}
	stdout, stderr, code := coterie(t, "audit", "mechanism", file, "--canaries", "200")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"claimed (proved)", "through the mechanism's curve", "curve-free", "alone", "assumes", "All three bounds", "does not show that the claim holds"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// TestAuditPages: every audit that bounds epsilon leaves a page with its figures, their
// terms, the ceiling or the steps, what is assumed and what was not tried, and the command
// that makes it again.
func TestAuditPages(t *testing.T) {
	file := writeRun(t, canaryFile)
	for command, c := range map[string]struct {
		args []string
		says []string
	}{
		"onerun":    {[]string{file, "--steps-only"}, []string{"ceiling", "right guesses of 100", "replace-one, which needs pairs", "fair coin"}},
		"mechanism": {[]string{file, "--canaries", "200"}, []string{"share of the noise that was charged", "of step ", "through the mechanism&#39;s curve", "independent of one another"}},
		"canary":    {[]string{file, "--runs", "200"}, []string{"curve-free", "another row than this canary"}},
	} {
		t.Run(command, func(t *testing.T) {
			page := filepath.Join(t.TempDir(), "page.html")
			args := append(append([]string{}, c.args...), "--set", "privacy.noise=simulated", "--report", page)
			if out := documentedJSON(t, command, 0, args...); out["report"] != page {
				t.Errorf("the report is %v", out["report"])
			}
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(c.says, "claim proved", "for one example, add-remove", "Verdict (claim proved, unit example, relation add-remove", "Not tried: ", "Assumed: ", "Not covered by the claim: ",
				"canaries that are in, found", "--set=&#39;privacy.noise=simulated&#39;") {
				if !strings.Contains(string(text), want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			if _, stderr, code := coterie(t, append([]string{"audit", command, "--report", filepath.Join(page, "none.html")}, c.args...)...); code == 0 || !strings.Contains(stderr, "none.html") {
				t.Errorf("a page that cannot be written: exit %d, %s", code, stderr)
			}
		})
	}
}

func TestAuditOneRunRefuses(t *testing.T) {
	file := writeRun(t, canaryFile)
	for _, args := range [][]string{
		{"onerun"}, {"onerun", file, "--canaries", "3"}, {"onerun", file, "--guesses", "5000"}, {"onerun", file, "--delta", "1"}, {"onerun", file, "--confidence", "NaN"}, {"onerun", file, "--confidence", "0"}, {"mechanism", file, "--confidence", "0"},
		{"onerun", file, "--canaries-are", "rows"}, {"onerun", file, "--canaries-are", "examples", "--steps-only"}, {"onerun", "missing.yaml"},
		{"onerun", file, "--set", "privacy.relation=replace-one"}, {"onerun", file, "--set", "privacy.epsilon=0"}, {"onerun", example("group-private.yaml")},
		{"mechanism"}, {"mechanism", file, "--canaries", "3"}, {"mechanism", file, "--set", "privacy.relation=replace-one"},
	} {
		if _, stderr, code := coterie(t, append([]string{"audit"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
	if _, stderr, _ := coterie(t, "audit", "mechanism", file, "--canaries", "1"); !strings.Contains(stderr, "canaries = 1;") {
		t.Errorf("one canary: %s", stderr)
	}
	if _, stderr, _ := coterie(t, "audit", "onerun", file, "--set", "privacy.relation=replace-one"); !strings.Contains(stderr, "pairs") {
		t.Errorf("replace-one: %s", stderr)
	}
}
