package identity_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// TestRenewal: over a connection, for a new key; by nobody else.
func TestRenewal(t *testing.T) {
	var clock fakeClock
	clock.set(time.Now())
	f := identitytest.New(t, identity.Options{Now: clock.now, Lifetime: 3 * time.Hour})
	m := f.Enrol(t, "north")
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		csr, err := m.Request()
		if err != nil {
			t.Error(err)
		}
		g, err := f.Authority.Renew(r.TLS, csr)
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
		w.Write(g.Chain)
	}), identity.Paths{}))
	config, err := m.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	before := m.Expires()
	clock.set(m.RenewAt())
	if until := before.Sub(clock.now()); until < 50*time.Minute || until > 70*time.Minute {
		t.Errorf("renewal %v before the end, want about a third of 3 hours", until)
	}
	status, chain, err := ask(client(t, config), server)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
	if err := m.Accept([]byte(chain)); err != nil || !m.Expires().After(before.Add(time.Hour)) {
		t.Errorf("now until %v, %v", m.Expires(), err)
	}
	// The configuration in use shows the new certificate.
	clock.set(before.Add(time.Minute))
	if status, text, err := ask(client(t, config), server); err != nil || status != http.StatusOK {
		t.Errorf("after the first one's end: %d, %s, %v", status, text, err)
	}
	elsewhere, err := f.Enrol(t, "south").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	if status, text, err := ask(client(t, elsewhere), server); err != nil || status != http.StatusTeapot {
		t.Errorf("south renews north's: %d, %s, %v", status, text, err)
	}
}

func TestMembersRefuseForeignCertificates(t *testing.T) {
	f, other := identitytest.New(t, identity.Options{}), identitytest.New(t, identity.Options{})
	dir := filepath.Join(t.TempDir(), "north")
	i := newInvite(t, f, "north")
	m, err := identity.NewMember(dir, i)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := m.Request()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err1 := other.Authority.Redeem(newInvite(t, other, "north").String(), csr)
	stranger, err2 := f.Authority.Redeem(newInvite(t, f, "south").String(), request(t, "south"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for name, chain := range map[string][]byte{
		"another authority's": foreign.Chain, "for another key": stranger.Chain, "empty": nil, "noise": []byte("noise"),
		"without the authority": foreign.Chain[:len(foreign.Chain)/2],
	} {
		if err := m.Accept(chain); err == nil || m.Enrolled() {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := identity.NewMember(dir, newInvite(t, f, "west")); err == nil {
		t.Error("one folder for two names")
	}
	if _, err := identity.NewMember(dir, newInvite(t, other, "north")); err == nil {
		t.Error("one folder for two federations")
	}
	if _, err := identity.OpenMember(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Join(dir, "identity.pem"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.OpenMember(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
}

func TestAuthoritiesAreNotOverwritten(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	if _, err := identity.Init(f.Dir, identity.Options{}); err == nil {
		t.Error("an authority is overwritten")
	}
	if _, err := identity.Open(t.TempDir(), identity.Options{}); err == nil || !strings.Contains(err.Error(), "coterie ca init") {
		t.Error(err)
	}
	for _, o := range []identity.Options{{Server: "nowhere"}, {Server: ":1"}, {Lifetime: time.Second}, {Lifetime: -1}} {
		dir := filepath.Join(t.TempDir(), "ca")
		if _, err := identity.Init(dir, o); !errors.Is(err, identity.ErrSetting) {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%+v: a folder is left", o)
		}
	}
}

// TestRevokedOnesDoNotComeBack by what they still have: the used invitation, a
// renewal, an older invitation.
func TestRevokedOnesDoNotComeBack(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	i := newInvite(t, f, "north")
	csr := request(t, "north")
	g, err := f.Authority.Redeem(i.String(), csr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Authority.Revoke(strings.ToUpper(g.Peer.Serial)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Authority.Redeem(i.String(), csr); !errors.Is(err, identity.ErrInvite) {
		t.Errorf("after its certificate was revoked: %v", err)
	}
	fresh := newInvite(t, f, "north")
	if _, err := f.Authority.Redeem(fresh.String(), request(t, "north")); err != nil {
		t.Errorf("a new invitation: %v", err)
	}
	if _, err := f.Authority.Redeem(i.String(), csr); !errors.Is(err, identity.ErrInvite) {
		t.Errorf("the old holder comes back: %v", err)
	}
	if _, err := f.Authority.Revoke("north"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Authority.Invite("north", time.Hour); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("invited though revoked: %v", err)
	}
	if err := f.Authority.Readmit("north"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Authority.Redeem(fresh.String(), request(t, "north")); !errors.Is(err, identity.ErrInvite) {
		t.Errorf("an invitation from before: %v", err)
	}
	f.Enrol(t, "north")
	if _, err := f.Authority.Revoke("nobody"); err == nil {
		t.Error("somebody unknown is revoked")
	}
}
