package identity

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/ledger"
)

// The files of a participant's identity. The key file holds the key and, after
// enrolment, the certificates; with a new key it is written before the other, so
// that no key is ever taken for another invitation's.
const (
	memberKeyFile = "identity.pem"
	memberFile    = "identity.json"
)

type memberSettings struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Role    Role   `json:"role,omitempty"`
	Server  string `json:"server"`
	CA      string `json:"ca_sha256"`
	Signer  string `json:"receipt_key"`
	Invite  string `json:"invite_sha256"`
}

// Member is a participant's identity, in a folder of its own. The key is made
// there and never leaves it.
type Member struct {
	dir      string
	settings memberSettings
	ca       [32]byte                        // as the invitation pinned it
	signer   ed25519.PublicKey               // likewise
	line     atomic.Pointer[lineage]         // nil: there was no succession
	key      crypto.Signer                   // until enrolment; then it is with the certificate
	current  atomic.Pointer[tls.Certificate] // nil before enrolment
}

// NewMember makes a key for the invited in dir. With the same invitation again it
// uses the key that is there, so that enrolment can be retried; with another one of
// the same federation and name it starts afresh. successions are the federation's, which
// must lead to the authority that the invitation names, from the one that dir knows.
func NewMember(dir string, i Invite, successions ...Succession) (*Member, error) {
	line, err := i.lineage(successions)
	if err != nil {
		return nil, err
	}
	s := memberSettings{
		Version: 1, Name: i.Name, Role: i.Role, Server: i.Server, CA: hex.EncodeToString(i.CA[:]),
		Signer: hex.EncodeToString(i.Signer), Invite: i.id(),
	}
	m, err := OpenMember(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case m.settings == s:
		return m, nil
	case m.settings.Name != s.Name || m.settings.CA != s.CA && line.place(m.ca, ledger.Key(m.signer)) < 0 || !line.extends(m.known()):
		return nil, fmt.Errorf("%s is the identity of %s in federation authority %.16s: choose another folder for %s", dir, m.settings.Name, m.settings.CA, s.Name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make an identity: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	// What the folder had pinned is on the line too, so that it is whole at every step.
	if err := line.write(dir); err != nil {
		return nil, err
	}
	if err := WriteKey(filepath.Join(dir, memberKeyFile), key); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("make an identity: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, memberFile), append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	return OpenMember(dir)
}

// OpenMember uses the identity in dir.
func OpenMember(dir string) (*Member, error) {
	m := &Member{dir: dir}
	if err := m.load(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s holds no identity (%w): ask for an invitation and join with --invite", dir, err)
		}
		return nil, fmt.Errorf("open the identity: %w", err)
	}
	return m, nil
}

func (m *Member) load() error {
	path := filepath.Join(m.dir, memberFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &m.settings); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if m.settings.Role, err = roleOf(m.settings.Role); err != nil {
		return fmt.Errorf("%s has %w", path, err)
	}
	s := m.settings
	ca, errCA := hex.DecodeString(s.CA)
	signer, errSigner := hex.DecodeString(s.Signer)
	if s.Version != 1 || errCA != nil || errSigner != nil || len(ca) != 32 || len(signer) != ed25519.PublicKeySize ||
		CheckName(s.Name) != nil || CheckServer(s.Server) != nil {
		return fmt.Errorf("%s is damaged, or of another version than 1", path)
	}
	m.ca, m.signer = [32]byte(ca), signer
	if err := m.loadLineage(); err != nil {
		return err
	}
	return m.loadKey(filepath.Join(m.dir, memberKeyFile))
}

func (m *Member) loadKey(path string) error {
	text, err := readSecret(path)
	if err != nil {
		return err
	}
	block, chain := pem.Decode(text)
	if block == nil || block.Type != keyBlock {
		return fmt.Errorf("%s does not start with a private key", path)
	}
	if m.key, err = parseKey(path, block.Bytes); err != nil {
		return err
	}
	if len(bytes.TrimSpace(chain)) == 0 {
		return nil
	}
	c, err := m.check(m.key, chain)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.current.Store(c)
	return nil
}

// check takes a chain only if it is this member's, for a key. Whether it has expired is for
// the server to say: a lapsed identity can still be opened and enrolled anew.
func (m *Member) check(key crypto.Signer, chain []byte) (*tls.Certificate, error) {
	all, err := parseCertificates(chain)
	if err != nil {
		return nil, err
	}
	if len(all) != 2 || !m.trusts(all[1]) {
		return nil, errors.New("the certificate does not come with the federation's authority")
	}
	leaf, ca := all[0], all[1]
	want, err := keyHash(key.Public())
	if err != nil {
		return nil, err
	}
	if got, err := keyHash(leaf.PublicKey); err != nil || got != want {
		return nil, errors.New("the certificate is for another key")
	}
	verified, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool(ca), CurrentTime: leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	peer, err := PeerOf(&tls.ConnectionState{Version: tls.VersionTLS13, VerifiedChains: verified}, m.known().federation(ca))
	if err != nil {
		return nil, err
	}
	if peer.Name != m.settings.Name || peer.Role != m.settings.Role {
		return nil, fmt.Errorf("the certificate is for %s %q, want %s %q", peer.Role, peer.Name, m.settings.Role, m.settings.Name)
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, ca.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// Name is the participant's.
func (m *Member) Name() string { return m.settings.Name }

// Server is the address to dial, host:port.
func (m *Member) Server() string { return m.settings.Server }

// Federation is the federation's name, from its first authority's key; empty before
// enrolment.
func (m *Member) Federation() string {
	c := m.current.Load()
	if c == nil {
		return ""
	}
	return c.Leaf.URIs[0].Host
}

// EnrolledBy says whether the member's key was made for this invitation.
func (m *Member) EnrolledBy(i Invite) bool { return m.settings.Invite == i.id() }

// Enrolled says whether there is a certificate, valid or not.
func (m *Member) Enrolled() bool { return m.current.Load() != nil }

// Expires is when the certificate ends; zero before enrolment.
func (m *Member) Expires() time.Time {
	c := m.current.Load()
	if c == nil {
		return time.Time{}
	}
	return c.Leaf.NotAfter
}

// RenewAt is when the certificate should be renewed: two thirds into its life.
func (m *Member) RenewAt() time.Time {
	c := m.current.Load()
	if c == nil {
		return time.Time{}
	}
	return c.Leaf.NotAfter.Add(-m.Lifetime() / 3)
}

// Lifetime is how long the certificate was given for; 0 before enrolment.
func (m *Member) Lifetime() time.Duration {
	c := m.current.Load()
	if c == nil {
		return 0
	}
	return c.Leaf.NotAfter.Sub(c.Leaf.NotBefore) - skew
}

// Request is a certificate request for the key that the member was made with, in DER.
func (m *Member) Request() ([]byte, error) { return m.request(m.key) }

func (m *Member) request(key crypto.Signer) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: m.settings.Name},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	return der, nil
}

// Accept checks that chain, in PEM, is for this member and from the federation's
// authority, and keeps it.
func (m *Member) Accept(chain []byte) error { return m.accept(m.key, chain) }

// Renewal makes a new key, in memory, and a certificate request for it. accept is Accept
// for that key: key and certificate are kept together, in one step, so that a member
// that is killed has a key with its certificate at every instant.
func (m *Member) Renewal() (request []byte, accept func(chain []byte) error, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	request, err = m.request(key)
	return request, func(chain []byte) error { return m.accept(key, chain) }, err
}

func (m *Member) accept(key crypto.Signer, chain []byte) error {
	c, err := m.check(key, chain)
	if err != nil {
		return fmt.Errorf("the server's answer is refused: %w", err)
	}
	text, err := keyPEM(key)
	if err != nil {
		return err
	}
	text = append(text, certificatePEM(c.Certificate...)...)
	m.clear()
	if err := durable.WriteFile(filepath.Join(m.dir, memberKeyFile), text, 0o600); err != nil {
		return err
	}
	m.current.Store(c)
	return nil
}

// clear removes what a member that was killed while it wrote has left. What cannot be
// removed does no harm.
func (m *Member) clear() {
	left, _ := filepath.Glob(filepath.Join(m.dir, "."+memberKeyFile+".new-*"))
	for _, path := range left {
		_ = os.Remove(path)
	}
}

// ClientTLS is for connections to the server, mutual and TLS 1.3. It uses the
// certificate that is current at each handshake, and trusts the newest authority that is
// known now: after Learn, ask for it again. It fails before enrolment.
func (m *Member) ClientTLS() (*tls.Config, error) {
	c := m.current.Load()
	if c == nil {
		return nil, fmt.Errorf("%s is not enrolled: join with --invite first", m.settings.Name)
	}
	ca, err := m.authority()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: protocols,
		RootCAs:    pool(ca),
		ServerName: serverName(ca),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return m.current.Load(), nil
		},
	}, nil
}
