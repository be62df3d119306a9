package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
)

// TestRotateTells what it has done and what to do next, and refuses what it cannot do.
func TestRotateTells(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	made := runJSON(t, "ca", "init", dir)
	runJSON(t, "ca", "invite", "north", "--ca", dir)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--ca", dir, "--overlap", "0s"}, 2, "between 1m0s and 8784h0m0s"},
		{[]string{"--ca", dir + "2"}, 1, "coterie ca init"},
		{[]string{"--ca", dir, "extra"}, 2, "extra"},
	} {
		if _, errs, code := coterie(t, append([]string{"ca", "rotate"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, %s; want %d and %q", c.args, code, errs, c.code, c.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ca.key")); err != nil {
		t.Errorf("what was refused has changed the keys: %v", err)
	}
	text, errs, code := coterie(t, "ca", "rotate", "--ca", dir)
	for _, want := range []string{"federation   " + made["federation"].(string), "rotations    1", "Back up " + dir, "invite again: north"} {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("exit %d, %s: %q is not in\n%s", code, errs, want, text)
		}
	}
	if again := runJSON(t, "ca", "rotate", "--ca", dir); again["number"] != 2.0 || again["receipt_key"] == made["receipt_key"] || len(again["cancelled"].([]any)) != 0 {
		t.Errorf("%v", again)
	}
}

// TestListWarnsOfEndingCertificates, by name.
func TestListWarnsOfEndingCertificates(t *testing.T) {
	c := &clinics{t: t, dir: t.TempDir()}
	past := func() time.Time { return time.Now().Add(-81 * 24 * time.Hour) }
	if _, err := identity.Init(c.path("ca"), identity.Options{Now: past}); err != nil {
		t.Fatal(err)
	}
	c.enrolBefore("north", 80*24*time.Hour)
	c.enrolBefore("south", 0)
	ending := runJSON(t, "ca", "list", "--ca", c.path("ca"))["ending"].([]any)
	if len(ending) != 1 || ending[0].(map[string]any)["name"] != "north" || keysOf(ending[0]) != "expires name" {
		t.Errorf("%v", ending)
	}
	if text, _, code := coterie(t, "ca", "list", "--ca", c.path("ca")); code != 0 || !strings.Contains(text, "north: its last certificate ends at") || strings.Contains(text, "south: its last") {
		t.Errorf("exit %d:\n%s", code, text)
	}
}
