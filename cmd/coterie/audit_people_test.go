package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAuditsOfPeople: every attack says in words why it does not know people; a certificate
// of such a run is signed with what can be tried.
func TestAuditsOfPeople(t *testing.T) {
	t.Setenv("COTERIE_DATA", "")
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	writeFiles(t, folder, map[string]string{"people.yaml": "data: {kind: pandemic, persons: 400, population_seed: 22}\nalgorithm: {mode: sound}\n"})
	runJSON(t, "run", at("people.yaml"), "--out", at("run"))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"audit", "membership", at("run")}, exitUsage, "people are judged by their own later days, so that nobody is a non-member"},
		{[]string{"audit", "inversion", at("people.yaml")}, exitFailure, "the examples are people, built of each other's contacts, and neither attack knows them"},
		{[]string{"audit", "canary", at("people.yaml")}, exitUsage, "no audit here plants a person with its contacts"},
		{[]string{"audit", "onerun", at("people.yaml")}, exitUsage, "no audit here plants a person with its contacts"},
		{[]string{"audit", "mechanism", at("people.yaml")}, exitUsage, "no audit here plants a person with its contacts"},
		{[]string{"audit", "fairness", at("run")}, exitUsage, `data of the kind "pandemic" have no sensitive attributes`},
	} {
		_, stderr, code := coterie(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "privacy.protects") > 0 {
			t.Errorf("%v: %d, %s", c.args, code, stderr)
		}
	}
	stdout, stderr, code := coterie(t, "audit", "certify", at("run"), "--out", at("certificate"))
	if code != 0 || !strings.Contains(stdout, "own-record") {
		t.Errorf("certify: %d, %s%s", code, stdout, stderr)
	}
}
