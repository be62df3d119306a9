package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/internal/tier"
)

// Holding is what a browser holds for servers that ask who it is.
type Holding struct {
	Authority   string // file with the certificate of an authority that it trusts
	Certificate string // file in PKCS #12 with its own certificate and key; empty: none
	Password    string // of that file
}

// OpenHolding is OpenFor in a browser that trusts an authority and shows a certificate to
// whoever asks, as its user's policy says. The policy is seen by this browser alone.
func OpenHolding(t testing.TB, server string, h Holding) *Page {
	t.Helper()
	for _, program := range []string{"chromium", "certutil", "pk12util", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			tier.LeaveOut(t, tier.Chromium, err)
		}
	}
	alone := []string{"--mount"}
	if os.Geteuid() != 0 {
		alone = append(alone, "--map-root-user")
	}
	if out, err := exec.Command("unshare", append(alone, "true")...).CombinedOutput(); err != nil {
		tier.LeaveOut(t, tier.Chromium, fmt.Errorf("a file system of its own: %w: %s", err, out))
	}
	home := t.TempDir()
	store := filepath.Join(home, ".pki", "nssdb")
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	do := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	do("certutil", "-N", "-d", "sql:"+store, "--empty-password")
	do("certutil", "-A", "-d", "sql:"+store, "-n", "authority", "-t", "C,,", "-i", h.Authority)
	if h.Certificate != "" {
		do("pk12util", "-d", "sql:"+store, "-i", h.Certificate, "-W", h.Password)
	}
	files := map[string]string{
		"policy.json": `{"AutoSelectCertificateForUrls": ["{\"pattern\":\"*\",\"filter\":{}}"]}`,
		"chromium": fmt.Sprintf(`#!/bin/sh
export HOME=%[1]q
exec unshare %[2]s sh -c 'mount -t tmpfs none /etc/chromium && mkdir -p /etc/chromium/policies/managed && cp "$0" /etc/chromium/policies/managed/ && exec chromium "$@"' %[1]q/policy.json "$@"
`, home, strings.Join(alone, " ")),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return start(t, server, filepath.Join(home, "chromium"))
}
