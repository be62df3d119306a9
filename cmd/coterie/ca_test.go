package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keysOf are an object's keys, in order.
func keysOf(object any) string {
	return strings.Join(slices.Sorted(maps.Keys(object.(map[string]any))), " ")
}

func TestAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	made := runJSON(t, "ca", "init", dir, "--server", "fl.example.org:7443")
	if made["server"] != "fl.example.org:7443" || made["certificate_lifetime"] != "2160h0m0s" || len(made["receipt_key"].(string)) != 64 {
		t.Errorf("init: %v", made)
	}
	invited := runJSON(t, "ca", "invite", "north", "--ca", dir)
	if !strings.HasPrefix(invited["invite"].(string), "coterie-invite-") || invited["federation"] != made["federation"] || invited["receipt_key"] != made["receipt_key"] {
		t.Errorf("invite: %v", invited)
	}
	text, _, code := coterie(t, "ca", "invite", "south", "--ca", dir, "--quiet")
	if code != 0 || !strings.HasPrefix(text, "coterie-invite-") || strings.Count(text, "\n") != 1 {
		t.Errorf("exit %d: %q is not an invitation alone", code, text)
	}
	revoked := runJSON(t, "ca", "revoke", "north", "--ca", dir)
	if revoked["cancelled"] != 1.0 || revoked["blocked"] != true || revoked["already_known"] != false {
		t.Errorf("revoke: %v", revoked)
	}
	listed := runJSON(t, "ca", "list", "--ca", dir)
	entries := listed["entries"].([]any)
	if len(entries) != 2 || entries[0].(map[string]any)["status"] != "cancelled" || listed["revoked"].([]any)[0] != "north" {
		t.Errorf("list: %v", listed)
	}
	for _, c := range []struct {
		object any
		want   string
	}{
		{made, "certificate_lifetime directory federation receipt_key server"},
		{invited, "ca_sha256 expires federation file invite name receipt_key role server"},
		{revoked, "already_known blocked cancelled name serials"},
		{listed, "ending entries federation revoked"},
		{entries[0], "created expires kind name role status"},
	} {
		if got := keysOf(c.object); got != c.want {
			t.Errorf("keys %q, want %q", got, c.want)
		}
	}
	if text, _, code := coterie(t, "ca", "list", "--ca", dir); code != 0 || !strings.Contains(text, "north  participant  invitation  cancelled") || !strings.Contains(text, "north is revoked") {
		t.Errorf("exit %d:\n%s", code, text)
	}
	if info, err := os.Stat(filepath.Join(dir, "ca.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ca.key: %v, %v", info.Mode(), err)
	}
}

func TestAuthorityRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	runJSON(t, "ca", "init", dir)
	runJSON(t, "ca", "invite", "north", "--ca", dir)
	runJSON(t, "ca", "revoke", "north", "--ca", dir)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"ca", "init", dir}, 1, "never overwritten"},
		{[]string{"ca", "init", dir + "2", "--server", "nowhere"}, 2, "host:port"},
		{[]string{"ca", "init", dir + "2", "--lifetime", "1s"}, 2, "lifetime"},
		{[]string{"ca", "invite", "North", "--ca", dir}, 2, "lower-case"},
		{[]string{"ca", "invite", "south", "--ca", dir, "--expires", "-1h"}, 2, "invitation for"},
		{[]string{"ca", "invite", "south", "--ca", dir + "2"}, 1, "coterie ca init"},
		{[]string{"ca", "invite", "north", "--ca", dir}, 1, "--readmit"},
		{[]string{"ca", "invite", "south", "--ca", dir, "--readmit"}, 1, "not revoked"},
		{[]string{"ca", "invite", "--ca", dir}, 2, "arg"},
		{[]string{"ca", "revoke", "south", "--ca", dir}, 1, "coterie ca list"},
		{[]string{"ca", "revoke", "../x", "--ca", dir}, 2, "serial number"},
	} {
		_, errs, code := coterie(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("coterie %s: exit %d, %s; want %d and %q", strings.Join(c.args, " "), code, errs, c.code, c.says)
		}
	}
	if _, err := os.Stat(dir + "2"); err == nil {
		t.Error("a refused init leaves a folder")
	}
	runJSON(t, "ca", "invite", "north", "--ca", dir, "--readmit")
}

// TestInvitationsAreSecrets: the program writes them to files that nobody else can read,
// never over another file, and does not take them from a command line.
func TestInvitationsAreSecrets(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "ca"), filepath.Join(t.TempDir(), "north.invite")
	runJSON(t, "ca", "init", dir)
	invited := runJSON(t, "ca", "invite", "north", "--ca", dir, "--out", out)
	if invited["invite"] != "" || invited["file"] != out {
		t.Errorf("the invitation is printed too: %v", invited)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.HasPrefix(string(text), "coterie-invite-") {
		t.Fatalf("%q: %v", text, err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if _, errs, code := coterie(t, "ca", "invite", "north", "--ca", dir, "--out", out); code != 2 || !strings.Contains(errs, "is there already") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if again, err := os.ReadFile(out); err != nil || string(again) != string(text) {
		t.Errorf("the file was written over: %v", err)
	}
	if entries := runJSON(t, "ca", "list", "--ca", dir)["entries"].([]any); len(entries) != 1 || entries[0].(map[string]any)["status"] != "open" {
		t.Errorf("an invitation that could not be written has ended the earlier one: %v", entries)
	}
	remark, _, code := coterie(t, "ca", "invite", "south", "--ca", dir, "--out", filepath.Join(t.TempDir(), "south.invite"))
	if code != 0 || strings.Contains(remark, "coterie-invite-") || !strings.Contains(remark, "by a way that you trust") {
		t.Errorf("exit %d: %s", code, remark)
	}
	folder := filepath.Join(t.TempDir(), "identity")
	if _, errs, code := coterie(t, "join", "--invite", strings.TrimSpace(string(text)), "--identity", folder); code != 2 || !strings.Contains(errs, "can read command lines") || strings.Contains(errs, "coterie-invite-") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, errs, code := coterie(t, "join", "--invite", out+"2", "--identity", folder); code != 2 || !strings.Contains(errs, "read the invitation") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("a key was made without an invitation")
	}
}
