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
	server := listen(t, f.Authority.ServerTLS(), identity.Guard(f.Authority, http.HandlerFunc(whoami), identity.Paths{Public: []string{"/enrol"}}))
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
