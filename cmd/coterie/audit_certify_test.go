package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// TestAuditCertify: a certificate is written, signed and checked; every key that is printed
// is in docs/json.md.
func TestAuditCertify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	runJSON(t, "run", example("own-table.yaml"), "--out", dir, "--set", "algorithm.rounds=2")
	out, key := filepath.Join(t.TempDir(), "certificate"), filepath.Join(t.TempDir(), "auditor.key")
	quick := []string{dir, "--key", key, "--out", out, "--steps-only", "--canaries", "50", "--planted", "100", "--confidence", "0.999999"}
	made := documentedJSON(t, "certify", 0, quick...)
	if made["verdict"] != "not refuted" || made["page_sha256"] == "" {
		t.Errorf("%v", made)
	}
	checked := documentedJSON(t, "verify", 0, out, "--key", made["key"].(string), "--run", dir)
	if checked["key_is_known"] != true || checked["page_is_there"] != true || checked["run_is_there"] != true {
		t.Errorf("%v", checked)
	}
	stdout, stderr, code := coterie(t, "audit", "verify", out)
	for _, want := range []string{"not refuted", "epsilon at least", "anyone can make such a pair", "proves nothing", "The signature fits"} {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("exit %d, no %q in\n%s%s", code, want, stdout, stderr)
		}
	}
	stdout, stderr, _ = coterie(t, append([]string{"audit", "certify"}, quick...)...)
	if told := stdout + stderr; !strings.Contains(told, "Declared before anything is played") || strings.Contains(told, "A key was made") {
		t.Errorf("%s", told)
	}
	for _, args := range [][]string{{"certify", dir, "--without", "everything"}, {"certify", dir, "--confidence", "2"}, {"verify", out, "--key", "abc"}, {"certify"}} {
		if _, stderr, code := coterie(t, append([]string{"audit"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
	if _, stderr, code := coterie(t, "audit", "verify", out, "--key", strings.Repeat("ab", 32)); code != exitFailure || !strings.Contains(stderr, "does not fit") {
		t.Errorf("another key: exit %d: %s", code, stderr)
	}
}

// The faults of TestSabotagedBuildsAreRefused, in the lines that clip and noise every
// float sum.
var sabotages = []struct{ name, file, line, instead string }{
	{"noise times 0.5", "lanes.go", "addNormals(dst, g.Multiplier*s.bound, src)", "addNormals(dst, 0.5*g.Multiplier*s.bound, src)"},
	{"clip ignored", "lanes.go", "factors[i] = F(s.bound / norm)", "factors[i] = 1"},
	{"one step without noise", "lanes.go", "addNormals(dst, g.Multiplier*s.bound, src)", "if sabotaged++; sabotaged != 7 { addNormals(dst, g.Multiplier*s.bound, src) }"},
}

// TestSabotagedBuildsAreRefused builds the program with a fault in its mechanism, three
// times, and lets each certify a run that an honest build trained: exit code 3, and a
// signed certificate that says so. (-soak: three builds.)
func TestSabotagedBuildsAreRefused(t *testing.T) {
	if !*soak {
		t.Skip("three builds; run with -soak")
	}
	dir, key := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "auditor.key")
	runJSON(t, "run", example("own-table.yaml"), "--out", dir, "--set", "algorithm.rounds=12")
	certify := func(program string) (string, int) {
		out, err := exec.Command(program, "audit", "certify", dir, "--key", key, "--steps-only", "--without", "membership,inversion", "--output", "json").Output()
		code := 0
		if e, ok := err.(*exec.ExitError); ok {
			code = e.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		return string(out), code
	}
	build := func(name string, args ...string) string {
		t.Helper()
		program := filepath.Join(t.TempDir(), "coterie")
		cmd := exec.Command("go", append(append([]string{"build", "-o", program}, args...), "./cmd/coterie")...)
		cmd.Dir = tier.Root()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return program
	}
	if out, code := certify(build("as shipped")); code != 0 {
		t.Errorf("as shipped: exit %d\n%s", code, out)
	}
	for _, s := range sabotages {
		path := filepath.Join(tier.Root(), "dp", "mech", s.file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), s.line) != 1 {
			t.Fatalf("%s has %q %d times; the fault belongs where float sums are clipped and noised", path, s.line, strings.Count(string(text), s.line))
		}
		faulty := filepath.Join(t.TempDir(), s.file)
		if err := os.WriteFile(faulty, []byte(strings.Replace(string(text), s.line, s.instead, 1)+"\nvar sabotaged int\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: faulty}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "overlay.json")
		if err := os.WriteFile(file, overlay, 0o644); err != nil {
			t.Fatal(err)
		}
		out, code := certify(build(s.name, "-overlay", file))
		var c struct {
			Verdict, Why string
			Bounds       []struct {
				Audit   string
				AtLeast any `json:"epsilon_at_least"`
				Exceeds bool
				Power   float64 `json:"power_at_half"`
			}
		}
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&c); err != nil {
			t.Errorf("%s: exit %d, %v\n%s", s.name, code, err, out)
		}
		told := ""
		for _, b := range c.Bounds {
			told += fmt.Sprintf("; %s: epsilon at least %v, exceeds %v, power %.4f at half the noise", b.Audit, b.AtLeast, b.Exceeds, b.Power)
		}
		t.Logf("%s: %s, %s%s", s.name, c.Verdict, c.Why, told)
		if code != exitRefused || c.Verdict != "refuted" {
			t.Errorf("%s: exit %d, %s: %s", s.name, code, c.Verdict, c.Why)
		}
		if _, stderr, code := coterie(t, "audit", "verify", filepath.Join(dir, "certificate")); code != exitRefused {
			t.Errorf("%s: the certificate is checked with exit %d: %s", s.name, code, stderr)
		}
	}
}
