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

// beforeMembership leaves what docs/membership.md is about: its run files, pictures of
// clinics, those of others, and letters of both.
func beforeMembership(w *walk) {
	w.writeBlocks("docs/membership.md", "pictures.yaml", "letters.yaml")
	strangers(w.T, w.dir)
}

// strangers leaves pictures of clinics and letters, and of clients that are not among them.
func strangers(t *testing.T, dir string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	drawClinics(t, at("clinics"), 30, 5)
	drawClinics(t, at("later"), 20, 6)
	writeLetters(t, at("written"))
	for from, to := range map[string]string{
		"later/east": "later/p", "later/north": "later/q", "later/south": "later/r", "written/texts": "letters",
	} {
		if err := os.Rename(at(from), at(to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("other-letters"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{
		"other-letters/a.txt": strings.Repeat("In the evening a porter sang to two or three birds. ", 60),
		"other-letters/b.txt": strings.Repeat("Nobody had seen the boat since Tuesday, they said. ", 60),
	})
}

// TestAuditMembershipOfFolders: pictures, text and tables by a model folder alone; what is
// not there, or does not go together, is refused in words.
func TestAuditMembershipOfFolders(t *testing.T) {
	dir := t.TempDir()
	strangers(t, dir)
	t.Chdir(dir)
	runJSON(t, "data", "vocabulary", "letters", "--size", "300", "--out", "merges.bpe")
	runJSON(t, "data", "generate", "clinics", "--clients", "3", "--out", "patients.csv")
	runJSON(t, "data", "generate", "clinics", "--clients", "3", "--seed", "9", "--out", "others.csv")
	runJSON(t, "init", "patients.csv", "--client", "clinic", "--target", "readmitted", "--out", "study")
	writeFiles(t, dir, map[string]string{
		"pictures.yaml": "name: pictures\ndata: {kind: pictures, source: {path: clinics}, height: 12, width: 12, channels: 1, classes: [healthy, ill], test_share: 0.5}\n" +
			"model: {kind: network, layers: [{kind: linear, units: 2}]}\nalgorithm: {kind: local, mode: paper, rounds: 2, local: {epochs: 1, batch: 10, step: 0.1, loss: cross-entropy}}\nprivacy: {protects: nothing}\njudge: {by: own}\n",
		"letters.yaml": "name: letters\ndata: {kind: text, source: {path: letters}, merges: merges.bpe, vocabulary: 300, context: 16, test_share: 0.4}\n" +
			"model: {kind: transformer, blocks: 1, width: 8, heads: 2}\nalgorithm: {kind: central, rounds: 1}\nprivacy: {protects: nothing}\n",
	})
	runJSON(t, "run", "pictures.yaml", "--out", "pictures")
	runJSON(t, "run", "letters.yaml", "--out", "words")
	runJSON(t, "run", "study/run.yaml", "--out", "table", "--set", "algorithm.rounds=2", "--set", "privacy.noise=exact-seeded")
	for _, name := range []string{"pictures", "words", "table"} {
		for _, file := range []string{"result.json", "run.yaml"} {
			if err := os.Remove(filepath.Join(name, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		args            string
		members, others float64
	}{
		{"pictures --members clinics --non-members later", 180, 120},
		{"pictures --members clinics --non-members later --unit client", 3, 3},
		{"pictures --members clinics/north --non-members later/q --client north", 60, 40},
		{"words --members letters --non-members other-letters --unit client", 3, 2},
		{"table --members patients.csv --non-members others.csv", 0, 0},
	} {
		out := runJSON(t, append([]string{"audit", "membership", "--neighbours", "1", "--sigma", "1"}, strings.Fields(c.args)...)...)
		if m, n := out["members"].(float64), out["non_members"].(float64); c.members > 0 && (m != c.members || n != c.others) || m < 2 || n < 2 || len(out["attacks"].([]any)) != 2 {
			t.Errorf("%s: %v members and %v others", c.args, m, n)
		}
	}
	for _, c := range []struct{ args, say string }{
		{"words", "--members and --non-members"},
		{"words --members letters", "--non-members"},
		{"words --client-column clinic", "--client-column goes with"},
		{"words --members letters --non-members letters", "is a member, too"},
		{"words --members letters --non-members other-letters --shadows 2", "leave --references and --shadows out"},
		{"pictures --members clinics --non-members later --client-column clinic", "have no columns"},
		{"table --members patients.csv --non-members others.csv --client-column clinic --unit client", "clinic-01"},
	} {
		if _, stderr, code := coterie(t, append([]string{"audit", "membership"}, strings.Fields(c.args)...)...); code != exitUsage || !strings.Contains(stderr, c.say) {
			t.Errorf("%s: exit %d, want %q: %s", c.args, code, c.say, stderr)
		}
	}
}
