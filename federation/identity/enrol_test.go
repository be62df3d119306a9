package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/identity/identitytest"
)

// fakeClock is set by a test.
type fakeClock struct{ at atomic.Pointer[time.Time] }

func (c *fakeClock) set(at time.Time) { c.at.Store(&at) }
func (c *fakeClock) now() time.Time   { return *c.at.Load() }

// spoil replaces the registry and returns a function that puts it back.
func spoil(t *testing.T, dir, text string) func() {
	t.Helper()
	path := filepath.Join(dir, "registry.json")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		fresh := path + ".fresh"
		if err := errors.Join(os.WriteFile(fresh, b, 0o600), os.Rename(fresh, path)); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte(text))
	return func() { write(before) }
}

func newInvite(t *testing.T, f *identitytest.Federation, name string) identity.Invite {
	t.Helper()
	i, err := f.Authority.Invite(name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// request is a certificate request by a new key.
func request(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return requestBy(t, key, x509.CertificateRequest{Subject: pkix.Name{CommonName: name}})
}

func requestBy(t *testing.T, key crypto.Signer, r x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &r, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestEnrolmentOverTheNetwork: from an invitation's text to an admitted request and
// a renewal, with nothing known but the text.
func TestEnrolmentOverTheNetwork(t *testing.T) {
	f := identitytest.New(t, identity.Options{Server: "fl.example.org:7443"})
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), "/enrol"))
	i, err := identity.ParseInvite(" " + newInvite(t, f, "north").String() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if i.Name != "north" || i.Server != "fl.example.org:7443" || !i.Signer.Equal(f.Authority.ReceiptKey().Public()) {
		t.Errorf("the invitation says %+v", i)
	}
	if status, _, err := ask(client(t, i.TLS()), server+"/enrol"); err != nil || status != http.StatusOK {
		t.Fatalf("enrolment: %d, %v", status, err)
	}
	dir := filepath.Join(t.TempDir(), "north")
	m, err := identity.NewMember(dir, i)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.ClientTLS(); err == nil || m.Enrolled() {
		t.Error("a member without a certificate can connect")
	}
	csr, err := m.Request()
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Authority.Redeem(i.String(), csr)
	if err != nil {
		t.Fatal(err)
	}
	// The answer is lost, the program starts again and retries.
	if m, err = identity.NewMember(dir, i); err != nil {
		t.Fatal(err)
	}
	if csr, err = m.Request(); err != nil {
		t.Fatal(err)
	}
	second, err := f.Authority.Redeem(i.String(), csr)
	if err != nil || second.Peer.Serial == first.Peer.Serial {
		t.Fatalf("retry: %+v, %v", second.Peer, err)
	}
	if err := m.Accept(second.Chain); err != nil {
		t.Fatal(err)
	}
	if m, err = identity.OpenMember(dir); err != nil {
		t.Fatal(err)
	}
	if m.Federation() != f.Authority.Federation() || m.Name() != "north" || m.Server() != i.Server {
		t.Errorf("%s in %s at %s", m.Name(), m.Federation(), m.Server())
	}
	config, err := m.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, config)
	if _, text, err := ask(c, server); err != nil || text != "north" {
		t.Errorf("%q, %v", text, err)
	}
	for _, name := range []string{"identity.pem", "identity.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if key, err := os.ReadFile(filepath.Join(dir, "identity.pem")); err != nil || !strings.HasPrefix(string(key), "-----BEGIN PRIVATE KEY-----") {
		t.Errorf("no key at the front of identity.pem (%v)", err)
	}
}

// TestNobodyInBetween: who redeems an invitation talks to no other server than the
// one it names.
func TestNobodyInBetween(t *testing.T) {
	f, other := identitytest.New(t, identity.Options{}), identitytest.New(t, identity.Options{})
	i := newInvite(t, f, "north")
	impostor := listen(t, other.Authority.ServerTLS(), http.HandlerFunc(whoami))
	if _, _, err := ask(client(t, i.TLS()), impostor); err == nil {
		t.Error("an invitation is redeemed at another federation's server")
	}
	// A participant shows its own chain, which ends at the right authority.
	config, err := f.Enrol(t, "mallory").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := config.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil {
		t.Fatal(err)
	}
	url := listen(t, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*mine}}, http.HandlerFunc(whoami))
	if _, _, err := ask(client(t, i.TLS()), url); err == nil {
		t.Error("an invitation is redeemed at a participant's server")
	}
	north, err := f.Enrol(t, "south").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(client(t, north), url); err == nil {
		t.Error("a participant takes another one for the server")
	}
}

func TestInvitationsThatCannotBeUsed(t *testing.T) {
	var clock fakeClock
	start := time.Now()
	clock.set(start)
	f := identitytest.New(t, identity.Options{Now: clock.now})
	other := identitytest.New(t, identity.Options{})
	used := newInvite(t, f, "used")
	if _, err := f.Authority.Redeem(used.String(), request(t, "used")); err != nil {
		t.Fatal(err)
	}
	replaced, blocked := newInvite(t, f, "twice"), newInvite(t, f, "blocked")
	newInvite(t, f, "twice")
	if _, err := f.Authority.Revoke("blocked"); err != nil {
		t.Fatal(err)
	}
	renamed := newInvite(t, f, "north")
	renamed.Name = "south"
	short, err := f.Authority.Invite("short", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	clock.set(start.Add(2 * time.Minute))
	short.Expires = start.Add(time.Hour) // the text is not what decides
	for name, c := range map[string]struct {
		text, for_ string
		want       error
	}{
		"used with another key": {used.String(), "used", identity.ErrInvite},
		"replaced":              {replaced.String(), "twice", identity.ErrInvite},
		"revoked":               {blocked.String(), "blocked", identity.ErrRevoked},
		"another federation's":  {newInvite(t, other, "north").String(), "north", identity.ErrInvite},
		"for another name":      {renamed.String(), "south", identity.ErrInvite},
		"expired":               {short.String(), "short", identity.ErrInvite},
		"empty":                 {"", "north", identity.ErrInvite},
		"cut short":             {used.String()[:60], "used", identity.ErrInvite},
		"mistyped":              {used.String()[:60] + "AAAA" + used.String()[64:], "used", identity.ErrInvite},
	} {
		if _, err := f.Authority.Redeem(c.text, request(t, c.for_)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "North", "-north", "a/b", "ä", "a b", strings.Repeat("x", 64), ".."} {
		if _, err := f.Authority.Invite(name, time.Hour); !errors.Is(err, identity.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	f := identitytest.New(t, identity.Options{})
	p256, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p224, err2 := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	weak, err3 := rsa.GenerateKey(rand.Reader, 2048)
	_, good, err4 := ed25519.GenerateKey(rand.Reader)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "north"}
	broken := requestBy(t, p256, x509.CertificateRequest{Subject: subject})
	broken[len(broken)-5] ^= 1
	for name, c := range map[string][]byte{
		"another name":  request(t, "south"),
		"no name":       request(t, ""),
		"host names":    requestBy(t, p256, x509.CertificateRequest{Subject: subject, DNSNames: []string{"localhost"}}),
		"a small curve": requestBy(t, p224, x509.CertificateRequest{Subject: subject}),
		"RSA":           requestBy(t, weak, x509.CertificateRequest{Subject: subject}),
		"not signed":    broken,
		"empty":         nil,
		"noise":         []byte("noise"),
		"too long":      make([]byte, 1<<20),
	} {
		if _, err := f.Authority.Redeem(newInvite(t, f, "north").String(), c); !errors.Is(err, identity.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// None of them used the last invitation up.
	i := newInvite(t, f, "north")
	if _, err := f.Authority.Redeem(i.String(), broken); !errors.Is(err, identity.ErrRequest) {
		t.Error(err)
	}
	g, err := f.Authority.Redeem(i.String(), requestBy(t, good, x509.CertificateRequest{Subject: subject}))
	if err != nil || g.Peer.Name != "north" {
		t.Errorf("%+v, %v", g.Peer, err)
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
	})))
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

// verified is the state of a connection by a member, without the connection.
func verified(t testing.TB, m *identity.Member) *tls.ConnectionState {
	t.Helper()
	config, err := m.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(c.Certificate[1])
	if err != nil {
		t.Fatal(err)
	}
	return &tls.ConnectionState{Version: tls.VersionTLS13, VerifiedChains: [][]*x509.Certificate{{c.Leaf, ca}}}
}
