// Package identity is who is who in a federation: its own certificate authority, invitations, certificates, their revocation, and new keys.
package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Why somebody is not let in. Every refusal wraps one of them.
var (
	// ErrNoCertificate: the connection has no verified client certificate.
	ErrNoCertificate = errors.New("no client certificate")
	// ErrWrongCertificate: the certificate is not one that this authority gave to a
	// participant or an operator.
	ErrWrongCertificate = errors.New("not a member's certificate of this federation")
	// ErrRole: the certificate is right, and its holder's role may not do this.
	ErrRole = errors.New("not for this role")
	// ErrOutdated: the certificate has expired or is not yet valid.
	ErrOutdated = errors.New("the certificate is not valid at this time")
	// ErrRevoked: the certificate or its holder was revoked.
	ErrRevoked = errors.New("revoked")
	// ErrInvite: the invitation is malformed, unknown, cancelled, expired or was used
	// with another key.
	ErrInvite = errors.New("the invitation cannot be used")
	// ErrOtherAuthority: a server does not show the authority that an invitation names.
	ErrOtherAuthority = errors.New("the server does not show the authority that the invitation names")
	// ErrRequest: the certificate request is malformed or asks for what it may not.
	ErrRequest = errors.New("the certificate request is refused")
	// ErrName: not a usable participant name.
	ErrName = errors.New("not a participant name")
	// ErrSetting: an address or a lifetime that cannot be.
	ErrSetting = errors.New("invalid setting")
)

// Peer is an admitted participant or operator.
type Peer struct {
	Name   string
	Role   Role
	Serial string // of its certificate, in hexadecimal
}

// Grant is what enrolment and renewal give.
type Grant struct {
	// Chain is the participant's certificate and the authority's, in PEM.
	Chain   []byte
	Peer    Peer
	Expires time.Time
}

// maxName keeps names within one label of a path, a metric and a table.
const maxName = 63

// CheckName refuses names that would be ambiguous in a path, a log or a
// certificate: lower-case letters, digits, and . _ - after the first character.
func CheckName(name string) error {
	ok := len(name) >= 1 && len(name) <= maxName
	for i, c := range []byte(name) {
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		ok = ok && (plain || i > 0 && (c == '.' || c == '_' || c == '-'))
	}
	if !ok {
		return fmt.Errorf("%w: %q; use 1 to %d lower-case letters, digits, '.', '_' and '-', a letter or digit first", ErrName, name, maxName)
	}
	return nil
}

// authorityName follows from an authority's key, so two authorities never share one. The
// first one's is the federation's name.
func authorityName(ca *x509.Certificate) string {
	sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:16])
}

func serverURI(federation string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: federation, Path: "/server"}
}

// serverName is what clients ask for in place of a host name: it names the one server of
// the federation wherever that runs, and tells it which authority they know.
func serverName(ca *x509.Certificate) string { return authorityName(ca) + ".coterie.internal" }

func serialText(serial *big.Int) string { return fmt.Sprintf("%032x", serial) }

// PeerOf is who the certificate of a verified connection in a federation names. It does
// not ask whether it is revoked: Authority.Admit does.
func PeerOf(state *tls.ConnectionState, federation string) (Peer, error) {
	leaf, err := memberLeaf(state, federation)
	if err != nil {
		return Peer{}, err
	}
	return Peer{Name: leaf.Subject.CommonName, Role: roleIn(leaf.URIs[0]), Serial: serialText(leaf.SerialNumber)}, nil
}

// memberLeaf is the peer's certificate if it is of the kind that participants and
// operators of a federation have.
func memberLeaf(state *tls.ConnectionState, federation string) (*x509.Certificate, error) {
	switch {
	case state == nil || state.Version < tls.VersionTLS13:
		return nil, fmt.Errorf("%w: the connection does not use TLS 1.3", ErrNoCertificate)
	case len(state.VerifiedChains) == 0:
		return nil, ErrNoCertificate
	}
	chain := state.VerifiedChains[0]
	leaf := chain[0]
	switch {
	case len(chain) != 2 || leaf.IsCA:
		return nil, fmt.Errorf("%w: it was not signed by the authority itself", ErrWrongCertificate)
	case !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}):
		return nil, fmt.Errorf("%w: it is for another usage", ErrWrongCertificate)
	case len(leaf.URIs) != 1 || len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0:
		return nil, fmt.Errorf("%w: it must have one name, of this federation", ErrWrongCertificate)
	}
	name := leaf.Subject.CommonName
	if err := CheckName(name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongCertificate, err)
	}
	if got, want := leaf.URIs[0].String(), memberURI(federation, roleIn(leaf.URIs[0]), name).String(); got != want {
		return nil, fmt.Errorf("%w: it names %s, want %s", ErrWrongCertificate, got, want)
	}
	return leaf, nil
}

// normalSerial is a serial number as lists print it.
func normalSerial(text string) (string, bool) {
	text = strings.ToLower(strings.ReplaceAll(text, ":", ""))
	if len(text) == 0 || len(text) > 32 {
		return "", false
	}
	n, ok := new(big.Int).SetString(text, 16)
	if !ok || n.Sign() <= 0 {
		return "", false
	}
	return serialText(n), true
}
