package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestAuditsOfPeople: every attack says in words why it does not know people; the mechanism's
// audit plays persons, and a certificate of such a run rests on it.
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
		{[]string{"audit", "canary", at("people.yaml")}, exitUsage, "this audit plants no person with its contacts"},
		{[]string{"audit", "onerun", at("people.yaml")}, exitUsage, "this audit plants no person with its contacts"},
		{[]string{"audit", "mechanism", at("people.yaml"), "--set", "privacy.nodes={contacts: thinned, degree: 200}"}, exitUsage, "privacy.nodes.contacts: is thinned"},
		{[]string{"audit", "fairness", at("run")}, exitUsage, `data of the kind "pandemic" have no sensitive attributes`},
	} {
		_, stderr, code := coterie(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "privacy.protects") > 0 {
			t.Errorf("%v: %d, %s", c.args, code, stderr)
		}
	}
	if found := runJSON(t, "audit", "mechanism", at("people.yaml"), "--canaries", "200"); found["exceeds"] != false || !strings.Contains(fmt.Sprint(found["privacy"]), "own-record") {
		t.Errorf("the steps of persons: %v", found)
	}
	stdout, stderr, code := coterie(t, "audit", "certify", at("run"), "--out", at("certificate"))
	if code != 0 || !strings.Contains(stdout, "own-record") || !strings.Contains(stdout, "mechanism") || strings.Contains(stdout, "not tested") || !strings.Contains(stdout, "not     membership: people") {
		t.Errorf("certify: %d, %s%s", code, stdout, stderr)
	}
}
