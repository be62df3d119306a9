package identity_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// TestRestoredRegistry: after a backup is put back, those who had a certificate then and
// renewed it since are let in, and nobody else of whom the registry knows nothing.
func TestRestoredRegistry(t *testing.T) {
	var clock fakeClock
	began := time.Now().Truncate(time.Second)
	clock.set(began)
	f := identitytest.New(t, identity.Options{Now: clock.now})
	north, south := f.Enrol(t, "north"), f.Enrol(t, "south")
	f.Enrol(t, "west")
	early := verified(t, f.Enrol(t, "early")) // was let in only until the backup
	revoke := func(name string) {
		t.Helper()
		if _, err := f.Authority.Revoke(name); err != nil {
			t.Fatal(err)
		}
	}
	revoke("west")
	revoke("early")
	path := filepath.Join(f.Dir, "registry.json")
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	clock.set(began.Add(time.Hour))
	for _, m := range []*identity.Member{north, south} {
		if err := renew(f.Authority, m); err != nil {
			t.Fatal(err)
		}
	}
	late := verified(t, f.Enrol(t, "late")) // not known at the backup
	if err := f.Authority.Readmit("west"); err != nil {
		t.Fatal(err)
	}
	west := f.Enrol(t, "west")
	revoke("south")
	clock.set(began.Add(118 * time.Minute))
	local, _, err := f.Authority.OperatorTLS()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := local.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil {
		t.Fatal(err)
	}
	authority, err := x509.ParseCertificate(shown.Certificate[1])
	if err != nil {
		t.Fatal(err)
	}
	operator := &tls.ConnectionState{Version: tls.VersionTLS13, VerifiedChains: [][]*x509.Certificate{{shown.Leaf, authority}}}

	clock.set(began.Add(2 * time.Hour))
	wants := func(when string, who *tls.ConnectionState, want error) {
		t.Helper()
		if _, err := f.Authority.Admit(who); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	restore := func(from, to time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, backup, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := identity.MarkRestored(f.Dir, began.Add(from), began.Add(to)); err != nil {
			t.Fatal(err)
		}
	}
	restore(0, 30*time.Minute)
	wants("signed after the restoring", verified(t, north), identity.ErrWrongCertificate)
	restore(90*time.Minute, 2*time.Hour)
	wants("signed before the backup", verified(t, north), identity.ErrWrongCertificate)

	restore(0, 2*time.Hour)
	wants("renewed since", verified(t, north), nil)
	wants("not known at the backup", late, identity.ErrWrongCertificate)
	wants("revoked at the backup", verified(t, west), identity.ErrWrongCertificate)
	wants("revoked at the backup, with what it had", early, identity.ErrRevoked)
	wants("the server's own operator", operator, identity.ErrWrongCertificate)
	wants("renewed, then revoked, of which nothing is known", verified(t, south), nil)
	revoke("south")
	wants("revoked again", verified(t, south), identity.ErrRevoked)

	// What was let in is on the list, and is revoked as all others are.
	list, _, err := f.Authority.List()
	if err != nil {
		t.Fatal(err)
	}
	valid := 0
	for _, l := range list {
		if l.Name == "north" && l.Kind == "certificate" && l.Status == "valid" {
			valid++
		}
	}
	if valid != 2 {
		t.Errorf("%d valid certificates of north are listed, want the one of the backup and the renewed", valid)
	}

	// Somebody else who is invited under the name ends what its holder had, also what the
	// registry has not seen yet.
	restore(0, 2*time.Hour)
	f.Enrol(t, "north")
	wants("another holder of the name", verified(t, north), identity.ErrWrongCertificate)
}
