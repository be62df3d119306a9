package identitytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
)

// Credential is one way to connect to the federation's server.
type Credential struct {
	Name string
	TLS  *tls.Config // for the client
	// Unauthenticated: there is no certificate at all. Enrolment, and what else is
	// public, is open to it; to no other of them.
	Unauthenticated bool
	// Role: the certificate is right for this one, and wrong for what the other may do.
	Role identity.Role
}

// Wrong are credentials that the server must refuse, at the handshake or at the
// request, for every procedure but those open to the public, or to the credential's
// role. Each has one fault: all else about it is as it should be.
func (f *Federation) Wrong(t testing.TB) []Credential {
	t.Helper()
	now := time.Now()
	other := New(t, identity.Options{})
	good := f.template("mallory", now)
	edit := func(change func(*x509.Certificate)) *x509.Certificate {
		c := *good
		change(&c)
		return &c
	}
	participant := f.Enrol(t, "insider")
	insider := current(t, participant)
	revoked, blocked, superseded := f.Enrol(t, "revoked"), f.Enrol(t, "blocked"), f.Enrol(t, "moved")
	f.revoke(t, serial(t, revoked))
	f.revoke(t, "blocked")
	f.Enrol(t, "moved") // somebody holds the name by another invitation now

	all := []Credential{{Name: "no certificate", Unauthenticated: true, TLS: f.client(nil)}}
	add := func(name string, c *tls.Certificate) { all = append(all, Credential{Name: name, TLS: f.client(c)}) }
	forge := func(name string, c *x509.Certificate) { add(name, f.sign(t, c, f.ca, f.caKey, identity.Participant)) }
	operators := edit(func(c *x509.Certificate) { c.URIs = []*url.URL{f.uri("/operator/mallory")} })

	forge("expired", edit(func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) }))
	forge("not yet valid", edit(func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }))
	forge("no usage", edit(func(c *x509.Certificate) { c.ExtKeyUsage = nil }))
	forge("wrong usage", edit(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }))
	forge("usable as a server too", edit(func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}))
	forge("no name", edit(func(c *x509.Certificate) { c.URIs, c.Subject = nil, pkix.Name{} }))
	forge("two names", edit(func(c *x509.Certificate) { c.URIs = append(c.URIs, f.uri("/participant/insider")) }))
	forge("somebody else's name", edit(func(c *x509.Certificate) { c.URIs = []*url.URL{f.uri("/participant/insider")} }))
	forge("another role", edit(func(c *x509.Certificate) { c.URIs = []*url.URL{f.uri("/server")} }))
	forge("a role that nobody has", edit(func(c *x509.Certificate) { c.URIs = []*url.URL{f.uri("/auditor/mallory")} }))
	forge("an operator's name, given to a participant", operators)
	add("a participant's name, given to an operator", f.sign(t, good, f.ca, f.caKey, identity.Operator))
	forge("another federation's name", edit(func(c *x509.Certificate) { c.URIs = []*url.URL{other.uri("/participant/mallory")} }))
	forge("a host name as well", edit(func(c *x509.Certificate) { c.DNSNames = []string{"localhost"} }))
	forge("marked as an authority", edit(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }))
	add("never issued", f.sign(t, good, f.ca, f.caKey, ""))
	add("an operator's that was never issued", f.sign(t, operators, f.ca, f.caKey, ""))
	add("another authority's", f.sign(t, good, other.ca, other.caKey, identity.Participant))
	add("self-signed", f.sign(t, good, nil, nil, identity.Participant))
	add("signed by a participant", f.sign(t, good, insider.Leaf, insider.PrivateKey, identity.Participant))
	dismissed := f.EnrolOperator(t, "dismissed")
	f.revoke(t, "dismissed")
	add("an operator's, revoked", current(t, dismissed))
	add("the server's own", f.server(t))
	add("the authority's own", &tls.Certificate{Certificate: [][]byte{f.ca.Raw}, PrivateKey: f.caKey})
	add("with somebody else's key", &tls.Certificate{Certificate: insider.Certificate, PrivateKey: newKey(t)})
	add("revoked by serial number", current(t, revoked))
	add("revoked by name", current(t, blocked))
	add("superseded by a newer invitation", current(t, superseded))
	old := f.client(insider)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	all = append(all, Credential{Name: "right, over TLS 1.2", TLS: old})
	return append(all, f.Operators(t)...)
}

// Operators are credentials that the server must accept from operators, and refuse where
// participants are asked for.
func (f *Federation) Operators(t testing.TB) []Credential {
	t.Helper()
	enrolled, err := f.EnrolOperator(t, "watch").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	local, _, err := f.Authority.OperatorTLS()
	if err != nil {
		t.Fatal(err)
	}
	return []Credential{
		{Name: "an operator's", TLS: enrolled, Role: identity.Operator},
		{Name: "the server's own operator's", TLS: local, Role: identity.Operator},
	}
}

// Right are credentials that the server must accept: without them, a server that
// refuses everybody would pass.
func (f *Federation) Right(t testing.TB) []Credential {
	t.Helper()
	config, err := f.Enrol(t, "north").ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	forged := f.sign(t, f.template("mallory", time.Now()), f.ca, f.caKey, identity.Participant)
	return []Credential{
		{Name: "enrolled", TLS: config, Role: identity.Participant},
		{Name: "made like the wrong ones", TLS: f.client(forged), Role: identity.Participant},
	}
}

func (f *Federation) uri(path string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: f.Authority.Federation(), Path: path}
}

// template is a participant's certificate as it should be.
func (f *Federation) template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, URIs: []*url.URL{f.uri("/participant/" + name)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
}

// sign makes a certificate with a key of its own; without a parent it signs itself. It is
// recorded as issued to this role, if there is one.
func (f *Federation) sign(t testing.TB, template, parent *x509.Certificate, parentKey any, recorded identity.Role) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	c := *template
	var err error
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, parentKey = &c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if recorded != "" {
		f.record(t, leaf, "mallory", recorded)
	}
	chain := [][]byte{der}
	if parent != &c {
		chain = append(chain, parent.Raw)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}
}

// server is what the server itself shows, with its key.
func (f *Federation) server(t testing.TB) *tls.Certificate {
	t.Helper()
	c, err := f.Authority.ServerTLS().GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	f.record(t, c.Leaf, c.Leaf.Subject.CommonName, identity.Participant)
	return c
}

// client trusts the federation's server and shows c whatever the server asks for.
func (f *Federation) client(c *tls.Certificate) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(f.ca)
	if c == nil {
		c = &tls.Certificate{}
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: "localhost", NextProtos: []string{"h2", "http/1.1"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil },
	}
}

func (f *Federation) revoke(t testing.TB, what string) {
	t.Helper()
	if _, err := f.Authority.Revoke(what); err != nil {
		t.Fatal(err)
	}
}

// current is the certificate that a member shows.
func current(t testing.TB, m *identity.Member) *tls.Certificate {
	t.Helper()
	config, err := m.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serial(t testing.TB, m *identity.Member) string {
	t.Helper()
	return current(t, m).Leaf.SerialNumber.Text(16)
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
