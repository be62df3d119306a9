package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// auditJSON runs coterie audit inversion in this process.
func auditJSON(t *testing.T, args ...string) (map[string]any, string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{stdout: &stdout, stderr: &stderr}
	root := a.newRoot()
	if !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == "audit" }) {
		root.AddCommand(a.newAuditCommand())
	}
	root.SetArgs(append([]string{"audit", "inversion", "--output", "json", "--quiet"}, args...))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	if err := root.ExecuteContext(context.Background()); err != nil {
		return nil, "", err
	}
	var out map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatalf("%v: %s", err, stdout.String())
	}
	return out, stdout.String(), nil
}

func writeRun(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAuditShowsARow: a linear model with an intercept, one example, no noise: the
// server reads the row off the update; with much noise it does not.
func TestAuditShowsARow(t *testing.T) {
	file := writeRun(t, "data: {kind: synthetic, dimension: 6}\nmodel: {kind: linear, intercept: true}\nalgorithm: {kind: ifca}\n")
	page := filepath.Join(t.TempDir(), "page.html")
	out, _, err := auditJSON(t, file, "--one-example", "--client", "3", "--report", page)
	if err != nil {
		t.Fatal(err)
	}
	if out["recovered"] != true || out["kind"] != "rows" || out["client"] != 3.0 || out["examples"] != 1.0 || out["steps"] != 1.0 || out["parameters"] != 7.0 {
		t.Errorf("%v", out)
	}
	if !strings.Contains(out["verdict"].(string), "can recover row 0") {
		t.Errorf("verdict %q", out["verdict"])
	}
	attacks := out["attacks"].([]any)
	closed := attacks[0].(map[string]any)
	if closed["attack"] != "closed-form" || !(closed["relative_error"].(float64) < 1e-6) {
		t.Errorf("%v", closed)
	}
	text, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(text, []byte("closed-form")) {
		t.Errorf("the page: %v", err)
	}
	// One's own run is compared with no paper, on the page and on the terminal.
	_, body, _ := strings.Cut(string(text), "<body")
	shown, _, code := coterie(t, "audit", "inversion", file, "--one-example", "--client", "3")
	for where, said := range map[string]string{"page": body, "terminal": shown} {
		if code != 0 || !strings.Contains(said, "closed-form") || strings.Contains(strings.ToLower(said), "paper") || strings.Contains(said, "thesis") {
			t.Errorf("exit %d; the %s speaks of a paper: %s", code, where, said)
		}
	}
	for _, key := range []string{"hypothesis", "noise_multiplier", "privacy", "stronger", "kernel", "report"} {
		if _, ok := out[key]; !ok {
			t.Errorf("no %s", key)
		}
	}

	noisy := writeRun(t, "data: {kind: synthetic, dimension: 6}\nmodel: {kind: linear, intercept: true}\nalgorithm: {kind: group-private}\nprivacy: {noise_multiplier: 50}\n")
	out, first, err := auditJSON(t, noisy, "--one-example", "--client", "3")
	if err != nil {
		t.Fatal(err)
	}
	if out["recovered"] != false || !strings.Contains(out["verdict"].(string), "does not show") {
		t.Errorf("%v", out)
	}
	if _, again, _ := auditJSON(t, noisy, "--one-example", "--client", "3"); again != first {
		t.Error("the same command prints something else")
	}
}

// TestAuditOfAWholeBatch: ten rows make one gradient; no row is to be had from it.
func TestAuditOfAWholeBatch(t *testing.T) {
	file := writeRun(t, "data: {kind: synthetic, dimension: 6}\nmodel: {kind: linear, intercept: true}\nalgorithm: {kind: fedavg}\n")
	out, _, err := auditJSON(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if out["recovered"] != false || out["examples"] != 10.0 {
		t.Errorf("%v", out)
	}
}

func TestAuditOfPictures(t *testing.T) {
	if os.Getenv("COTERIE_DATA") == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	out, _, err := auditJSON(t, "--network", "dense", "--samples", "2", "--evaluations", "5", "--restarts", "1")
	if err != nil {
		t.Fatal(err)
	}
	attacks := out["attacks"].([]any)
	if closed := attacks[0].(map[string]any); closed["recovered"] != 1.0 || closed["labels"] != 1.0 || out["stronger"] != "closed-form" || out["claim"] != "none" {
		t.Errorf("%v", out)
	}
}

func TestAuditRefusesWrongUsage(t *testing.T) {
	file := writeRun(t, "data: {kind: synthetic}\nalgorithm: {kind: ifca}\n")
	for _, args := range [][]string{
		{file, "--samples", "3"}, {"--client", "3"}, {file, "--example", "3"}, {"--pictures", "cifar"}, {"--network", "resnet"},
		{"--noise-multiplier", "-1"}, {"--noise-multiplier", "NaN"}, {file, "--evaluations", "0"}, {file, "--restarts", "0"},
		{file, "--client", "1000"}, {file, "--one-example", "--example", "10"}, {"missing.yaml"}, {file, file},
		{file, "--model", "missing.safetensors"}, {file, "--set", "algorithm.hypotheses=0"},
	} {
		if _, _, err := auditJSON(t, args...); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
