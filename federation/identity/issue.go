package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"github.com/coterie-fl/coterie/internal/durable"
)

const (
	caLifetime     = 10 * 366 * 24 * time.Hour
	serverLifetime = 90 * 24 * time.Hour
	// skew is by how much participants' clocks may be behind.
	skew = 5 * time.Minute
	// maxRequest is more than any request for an allowed key needs.
	maxRequest = 4096
)

func newSerial() (*big.Int, error) {
	// 126 random bits below a leading one: positive, never short.
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	return n.SetBit(n, 126, 1), nil
}

// selfSign makes the authority's own certificate. It signs leaves only.
func selfSign(key crypto.Signer, now time.Time) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Coterie federation authority"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(caLifetime),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the authority's certificate: %w", err)
	}
	return der, nil
}

// sign makes a leaf for a public key, with the keys that are current or some others.
func (a *Authority) sign(k *keys, public any, t *x509.Certificate, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := a.now()
	t.SerialNumber, t.NotBefore, t.NotAfter = serial, now.Add(-skew), now.Add(lifetime)
	t.KeyUsage, t.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	if t.NotAfter.After(k.ca.NotAfter) {
		t.NotAfter = k.ca.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, t, k.ca, public, k.caKey)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// serverCertificate is the one for the listener, by the authority that the keys are of. It
// is replaced in time without a restart; the key stays.
func (a *Authority) serverCertificate(k *keys) (*tls.Certificate, error) {
	// One that is not valid yet was made while the clock was wrong.
	fresh := func(c *x509.Certificate) bool {
		return a.now().Before(c.NotAfter.Add(-serverLifetime/3)) && !a.now().Before(c.NotBefore)
	}
	if c := k.server.Load(); c != nil && fresh(c.Leaf) {
		return c, nil
	}
	path := filepath.Join(a.dir, numbered(serverFile, k.number))
	leaf, err := readCertificate(path)
	host, _, _ := net.SplitHostPort(a.Server())
	if err != nil || !fresh(leaf) || leaf.VerifyHostname(host) != nil {
		if leaf, err = a.signServer(k, k.serverKey.Public(), serverLifetime); err != nil {
			return nil, err
		}
		if err := durable.WriteFile(path, certificatePEM(leaf.Raw, k.ca.Raw), 0o644); err != nil {
			return nil, err
		}
	}
	// The authority's certificate is sent too: who redeems an invitation knows only
	// its hash.
	c := &tls.Certificate{Certificate: [][]byte{leaf.Raw, k.ca.Raw}, PrivateKey: k.serverKey, Leaf: leaf}
	k.server.Store(c)
	return c, nil
}

// signServer makes a certificate by which the server is recognised, under the name that
// follows from the authority's key, and under its host's.
func (a *Authority) signServer(k *keys, public any, lifetime time.Duration) (*x509.Certificate, error) {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "Coterie federation server"},
		URIs:        []*url.URL{serverURI(k.federation)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{serverName(k.ca), "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	host, _, _ := net.SplitHostPort(a.Server())
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = append(t.IPAddresses, ip)
	} else if host != "localhost" {
		t.DNSNames = append(t.DNSNames, host)
	}
	return a.sign(k, public, t, lifetime)
}

// checkRequest returns the key that a request is for. Whatever else it asks for is
// refused rather than ignored, so that nobody believes to have been given it.
func checkRequest(request []byte, name string) (public any, err error) {
	if len(request) > maxRequest {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrRequest, len(request), maxRequest)
	}
	r, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := allowedKey(r.PublicKey); err != nil {
		return nil, err
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: its key did not sign it: %w", ErrRequest, err)
	}
	switch {
	case r.Subject.CommonName != name:
		return nil, fmt.Errorf("%w: it is for %q, not for %q", ErrRequest, r.Subject.CommonName, name)
	case len(r.Extensions) > 0:
		return nil, fmt.Errorf("%w: it asks for extensions; the authority alone decides on them", ErrRequest)
	}
	return r.PublicKey, nil
}

func allowedKey(public any) error {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return fmt.Errorf("%w: keys must be ECDSA P-256 or P-384, or Ed25519", ErrRequest)
}
