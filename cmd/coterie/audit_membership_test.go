package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// membershipKeys collects all keys of an object, and of those within.
func membershipKeys(into map[string]bool, v any, skip string) {
	switch v := v.(type) {
	case map[string]any:
		for key, within := range v {
			into[key] = true
			if key != skip {
				membershipKeys(into, within, skip)
			}
		}
	case []any:
		for _, within := range v {
			membershipKeys(into, within, skip)
		}
	}
}

// TestAuditMembership: a run of silos, attacked whole and one silo alone; every key is in
// docs/json.md, and every printed epsilon has its terms.
func TestAuditMembership(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	runJSON(t, "run", example("own-table.yaml"), "--out", dir, "--set", "algorithm.rounds=2")
	page := filepath.Join(t.TempDir(), "page.html")
	args := []string{"audit", "membership", dir, "--references", "1", "--neighbours", "1", "--sigma", "0.5"}
	stdout, stderr, code := coterie(t, append(args, "--output", "json", "--quiet", "--report", page)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatal(err)
	}
	if n := len(out["attacks"].([]any)); n != 3 || out["unit"] != "example" || out["members"].(float64) < 500 {
		t.Errorf("%d attacks on %v members of the unit %v", n, out["members"], out["unit"])
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## `coterie audit membership`")
	section, _, _ = strings.Cut(section, "\n## ")
	keys := map[string]bool{}
	membershipKeys(keys, out, "privacy")
	for key := range keys {
		if !strings.Contains(section, "`"+key+"`") {
			t.Errorf("%s is printed but not in docs/json.md", key)
		}
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "non-members taken for members") {
		t.Errorf("the page: %v", err)
	}
	stdout, stderr, code = coterie(t, args...)
	if bare, seen := bareEpsilons(stdout + stderr); code != 0 || len(bare) > 0 || seen == 0 {
		t.Errorf("exit %d, %d epsilons, without their terms: %q", code, seen, bare)
	}
	for _, want := range []string{"AUC", "found at 0.001", "not covered", "descriptive"} {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q is not said:\n%s%s", want, stdout, stderr)
		}
	}
	for _, c := range []struct {
		code int
		say  string
		args []string
	}{
		{exitUsage, "clinic-", []string{dir, "--client", "nobody"}},
		{exitUsage, "took part", []string{dir, "--unit", "client"}},
		{exitUsage, "neighbours", []string{dir, "--neighbours", "-1"}},
		{exitFailure, "another model", []string{dir, "--references", "1", "--neighbours", "0", "--seed", "2"}},
		{exitFailure, "no finished run", []string{t.TempDir()}},
	} {
		if _, stderr, code := coterie(t, append([]string{"audit", "membership"}, c.args...)...); code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%v: exit %d, want %d: %s", c.args, code, c.code, stderr)
		}
	}
}
