package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// protocols are offered in this order: HTTP/2 carries the federation.
var protocols = []string{"h2", "http/1.1"}

// ServerTLS is for the server's listener: TLS 1.3, client certificates of this
// authority only, checked against revocation at every handshake. A connection
// without a certificate gets through the handshake, since enrolment needs one:
// Guard or Admit keeps it out of everything else. It offers HTTP/2 and HTTP/1.1, or what
// only names.
func (a *Authority) ServerTLS(only ...string) *tls.Config {
	if len(only) == 0 {
		only = protocols
	}
	every := &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     only,
		ClientAuth:     tls.VerifyClientCertIfGiven,
		Time:           a.now,
		GetCertificate: a.certificateFor,
		// Every connection shows its certificate; none goes on with an older one's word.
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return nil
			}
			if _, err := a.Admit(&state); refusal(err) {
				return err
			}
			return nil // or the registry cannot be read: every request asks again
		},
	}
	// Authorities change with a rotation, so every handshake asks for them. Who is given the
	// settings may write to them: a handshake takes those of before.
	config := every.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		k, err := a.current()
		if err != nil {
			return nil, err
		}
		now := every.Clone()
		now.ClientCAs = k.clientCAs()
		return now, nil
	}
	return config
}

// certificateFor is the server's certificate by the authority that a client asks for, if
// that is still accepted, and by the current one otherwise.
func (a *Authority) certificateFor(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	k, err := a.current()
	if err != nil {
		return nil, err
	}
	for _, b := range k.bridges {
		if hello.ServerName == serverName(b.ca) && a.now().Before(b.ends) {
			return b.certificate, nil
		}
	}
	return a.serverCertificate(k)
}

// TLS is for the connection that redeems the invitation: it trusts the authority
// that the invitation names, and nobody else.
func (i Invite) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: protocols,
		// The authority's certificate is not known yet, only its hash: the usual
		// verification is replaced by the stricter one below.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return i.verify(state.PeerCertificates)
		},
	}
}

// verify finds the invitation's authority in the server's chain and verifies the
// chain from there.
func (i Invite) verify(chain []*x509.Certificate) error {
	for _, ca := range chain {
		if sha256.Sum256(ca.Raw) == i.CA {
			return verifyServer(chain[0], ca, time.Now())
		}
	}
	return fmt.Errorf("%w: it is another federation's, or somebody is in between", ErrOtherAuthority)
}

func verifyServer(leaf, ca *x509.Certificate, now time.Time) error {
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool(ca), DNSName: serverName(ca), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("the server's certificate: %w", err)
	}
	return nil
}

func pool(ca *x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca)
	return p
}
