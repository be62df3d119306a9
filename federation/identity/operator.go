package identity

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/url"
	"time"
)

// LocalOperator is the name under which whoever has the authority's folder asks the
// server how it stands. Nobody else gets it.
const LocalOperator = "operator"

// localLifetime is long enough for one look, and for clocks that differ by nothing: both
// are on one machine.
const localLifetime = 5 * time.Minute

// OperatorTLS is for a connection to the server by whoever has the authority's folder:
// it shows an operator's certificate that ends within minutes, and whose key is nowhere
// else. The certificate is recorded as any other. Until is when to ask for another one.
func (a *Authority) OperatorTLS() (config *tls.Config, until time.Time, err error) {
	key, err := newKey()
	if err != nil {
		return nil, until, err
	}
	hash, err := keyHash(key.Public())
	if err != nil {
		return nil, until, err
	}
	var leaf *x509.Certificate
	var k *keys
	err = a.registry.add(func(r *registry) error {
		if err := r.oneRole(LocalOperator, Operator); err != nil {
			return err
		}
		var err error
		if k, err = a.current(); err != nil {
			return err
		}
		if leaf, err = a.sign(k, key.Public(), memberTemplate(k, LocalOperator, Operator), localLifetime); err != nil {
			return err
		}
		r.forget(a.now())
		r.Issued[serialText(leaf.SerialNumber)] = &issue{Name: LocalOperator, Role: Operator, Key: hash, Issued: a.now().UTC(), Expires: leaf.NotAfter}
		r.touchIssue(serialText(leaf.SerialNumber))
		return nil
	})
	if err != nil {
		return nil, until, fmt.Errorf("make an operator's certificate: %w", err)
	}
	shown := &tls.Certificate{Certificate: [][]byte{leaf.Raw, k.ca.Raw}, PrivateKey: key, Leaf: leaf}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: protocols,
		RootCAs:    pool(k.ca),
		ServerName: serverName(k.ca),
		Time:       a.now,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return shown, nil
		},
	}, leaf.NotAfter.Add(-localLifetime / 2), nil
}

// memberTemplate is what a member's certificate says, whoever signs it.
func memberTemplate(k *keys, name string, role Role) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		URIs:        []*url.URL{memberURI(k.federation, role, name)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// InviteOperator lets one operator enrol under name, as Invite does a participant.
func (a *Authority) InviteOperator(name string, lifetime time.Duration) (Invite, error) {
	return a.invite(name, Operator, lifetime)
}

// Held is the certificate that a member uses, as far as the authority knows.
type Held struct {
	Role    Role
	Expires time.Time // the latest end of its valid certificates
}

// Holders are those who have a valid certificate, by name. The server's own operator is
// none of them.
func (a *Authority) Holders() (map[string]Held, error) {
	held := map[string]Held{}
	err := a.registry.view(func(r *registry) error {
		for name, c := range r.held(a.now()) {
			held[name] = Held{Role: c.Role, Expires: c.Expires}
		}
		return nil
	})
	return held, err
}

// held are the members' valid certificates that end last, by name, without those of the
// server's own operator, which are made for one look and let go.
func (r *registry) held(now time.Time) map[string]*issue {
	last := map[string]*issue{}
	for _, c := range r.Issued {
		_, blocked := r.Blocked[c.Name]
		if blocked || c.status(now) != "valid" || c.Name == LocalOperator {
			continue
		}
		if before := last[c.Name]; before == nil || c.Expires.After(before.Expires) {
			last[c.Name] = c
		}
	}
	return last
}
