package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/report"
)

func TestAuditFairness(t *testing.T) {
	if os.Getenv("COTERIE_DATA") == "" {
		t.Skip("COTERIE_DATA is not set: see README, real data")
	}
	dir := filepath.Join(t.TempDir(), "run")
	runJSON(t, "run", example("compas.yaml"), "--out", dir, "--set", "algorithm.rounds=10")
	stdout, stderr, code := coterie(t, "audit", "fairness", dir, "--attribute", "race", "--groups", "African-American,Caucasian", "--output", "json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var out struct {
		Attributes []struct {
			Attribute string
			Models    int
			OtherRows int `json:"other_rows"`
			Metrics   map[string]struct{ Value, Low, High *float64 }
			Groups    []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatal(err)
	}
	a := out.Attributes[0]
	if len(out.Attributes) != 1 || a.Attribute != "race" || len(a.Groups) != 2 || a.OtherRows == 0 {
		t.Errorf("%+v", out)
	}
	for _, name := range []string{"demographic_parity_difference", "equal_opportunity_difference", "equalized_odds_difference"} {
		if m := a.Metrics[name]; m.Value == nil || m.Low == nil || *m.Low > *m.Value || *m.High < *m.Value {
			t.Errorf("%s: %+v", name, m)
		}
	}
	text, _, code := coterie(t, "audit", "fairness", dir)
	if code != 0 || !strings.Contains(text, "equalized odds difference") || !strings.Contains(text, "no figure says that a model is fair") {
		t.Errorf("exit %d:\n%s", code, text)
	}
	if _, stderr, code := coterie(t, "audit", "fairness", dir, "--attribute", "hair"); code != exitUsage || !strings.Contains(stderr, "race") {
		t.Errorf("an unknown attribute: exit %d, %s", code, stderr)
	}
}

func TestAuditFairnessNeedsLabels(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	runJSON(t, "run", example("ifca.yaml"), "--out", dir)
	if _, stderr, code := coterie(t, "audit", "fairness", dir); code != exitUsage || !strings.Contains(stderr, "no sensitive attributes") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if _, _, code := coterie(t, "audit", "fairness", t.TempDir()); code != exitFailure {
		t.Errorf("a folder without a run: exit %d", code)
	}
}

// TestLayersApart: the option of the run file reaches the result and the page.
func TestLayersApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	res := runJSON(t, "run", example("network.yaml"), "--out", dir, "--set", "algorithm.kind=group-private", "--set", "privacy.noise_multiplier=5", "--set", "privacy.sanitise=layers")
	layers, _ := res["privacy"].(map[string]any)["layers"].([]any)
	if len(layers) < 2 {
		t.Fatalf("layers: %v", layers)
	}
	total := 0.0
	for _, l := range layers {
		total += l.(map[string]any)["epsilon_per_release"].(float64)
	}
	if want := res["privacy"].(map[string]any)["epsilon_per_release"].(float64); total < want*(1-1e-9) || total > want*(1+1e-9) {
		t.Errorf("the layers add up to %v, a release costs %v", total, want)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "every layer apart") {
		t.Errorf("the report does not say that layers are noised apart (%v)", err)
	}
	if _, stderr, code := coterie(t, "run", example("network.yaml"), "--set", "algorithm.kind=group-private", "--set", "privacy.noise_multiplier=5", "--set", "privacy.sanitise=layers", "--set", "privacy.layer_shares=[0.5]", "--out", dir+"2"); code != exitUsage || !strings.Contains(stderr, "privacy.layer_shares") {
		t.Errorf("one share for two layers: exit %d, %s", code, stderr)
	}
}

// TestLargeModelsAreReadFromTheirFile: a result has the first values of large models only,
// and they are the same from the file beside it.
func TestLargeModelsAreReadFromTheirFile(t *testing.T) {
	for _, name := range []string{"ifca.yaml", "fedavg.yaml"} {
		dir := filepath.Join(t.TempDir(), name)
		runJSON(t, "run", example(name), "--out", dir, "--set", "algorithm.rounds=2")
		res, err := report.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		own, err := openIfDescribed(dir)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := returned(res, own)
		if err != nil || len(whole) != len(res.History.Returned)*res.Parameters {
			t.Fatalf("%s: %d values, %v", name, len(whole), err)
		}
		for i, m := range res.History.Returned {
			res.History.Returned[i] = m[:1]
		}
		if got, err := returned(res, own); err != nil || !slices.Equal(got, whole) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, whole)
		}
	}
}
