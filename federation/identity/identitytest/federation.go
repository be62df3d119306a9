// Package identitytest makes federations with right and wrong credentials for tests.
package identitytest

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
)

// Federation is an authority in a temporary folder.
type Federation struct {
	Authority *identity.Authority
	Dir       string
	ca        *x509.Certificate
	caKey     any
}

// New makes an authority for the test.
func New(t testing.TB, o identity.Options) *Federation {
	t.Helper()
	f := &Federation{Dir: filepath.Join(t.TempDir(), "ca")}
	var err error
	if f.Authority, err = identity.Init(f.Dir, o); err != nil {
		t.Fatal(err)
	}
	if f.ca, err = x509.ParseCertificate(decode(t, filepath.Join(f.Dir, "ca.crt"))); err != nil {
		t.Fatal(err)
	}
	if f.caKey, err = x509.ParsePKCS8PrivateKey(decode(t, filepath.Join(f.Dir, "ca.key"))); err != nil {
		t.Fatal(err)
	}
	return f
}

func decode(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s holds no PEM", path)
	}
	return block.Bytes
}

// Enrol invites and enrols a participant, without a network.
func (f *Federation) Enrol(t testing.TB, name string) *identity.Member {
	t.Helper()
	i, err := f.Authority.Invite(name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return f.redeem(t, i)
}

// EnrolOperator invites and enrols an operator, without a network.
func (f *Federation) EnrolOperator(t testing.TB, name string) *identity.Member {
	t.Helper()
	i, err := f.Authority.InviteOperator(name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return f.redeem(t, i)
}

func (f *Federation) redeem(t testing.TB, i identity.Invite) *identity.Member {
	t.Helper()
	all, err := f.Authority.Successions()
	if err != nil {
		t.Fatal(err)
	}
	m, err := identity.NewMember(filepath.Join(t.TempDir(), i.Name), i, all...)
	if err != nil {
		t.Fatal(err)
	}
	request, err := m.Request()
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Authority.Redeem(i.String(), request)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Accept(g.Chain); err != nil {
		t.Fatal(err)
	}
	return m
}

// record puts a certificate into the registry as if the authority had issued it, so
// that a test reaches what it is about.
func (f *Federation) record(t testing.TB, c *x509.Certificate, name string, role identity.Role) {
	t.Helper()
	path := filepath.Join(f.Dir, "registry.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var registry map[string]any
	if err := json.Unmarshal(text, &registry); err != nil {
		t.Fatal(err)
	}
	key := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	registry["issued"].(map[string]any)[fmt.Sprintf("%032x", c.SerialNumber)] = map[string]any{
		"name": name, "role": role, "key": hex.EncodeToString(key[:]), "issued": time.Now().Add(-time.Hour), "expires": time.Now().Add(24 * time.Hour),
	}
	if text, err = json.Marshal(registry); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
