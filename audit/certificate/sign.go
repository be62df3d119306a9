package certificate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/ledger"
)

// The files of a certificate, in a folder of its own.
const (
	File     = "certificate.json"
	PageFile = "certificate.html"
)

// ErrForged means that a certificate is not what its signer signed.
var ErrForged = errors.New("the signature does not fit")

// Signed is a certificate with its signer's signature over the bytes of it, without the
// space between them.
type Signed struct {
	Certificate json.RawMessage  `json:"certificate"`
	Key         ledger.Key       `json:"key"`
	Signature   ledger.Signature `json:"signature"`
}

// signedBytes are what is signed: nothing else that the key signs begins so.
func signedBytes(certificate []byte) ([]byte, error) {
	b := bytes.NewBufferString(Format + "\n")
	if err := json.Compact(b, certificate); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Key reads the auditor's key from a file, or makes one there.
func Key(path string) (key ed25519.PrivateKey, made bool, err error) {
	signer, err := identity.ReadKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, key, err = ed25519.GenerateKey(rand.Reader); err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = identity.WriteKey(path, key)
		}
		if err != nil {
			return nil, false, fmt.Errorf("certificate: make a key: %w", err)
		}
		return key, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("certificate: the key: %w", err)
	}
	key, ok := signer.(ed25519.PrivateKey)
	if !ok {
		return nil, false, fmt.Errorf("certificate: %s is no Ed25519 key; name another file, and one is made there", path)
	}
	return key, false, nil
}

// PublicKey is what others check signatures by.
func PublicKey(key ed25519.PrivateKey) ledger.Key {
	return ledger.Key(key.Public().(ed25519.PublicKey))
}

// Write makes the page, signs the certificate with the page's hash, and writes both into a
// folder: the page first, so that no signed certificate is without one. The certificate
// comes back with that hash.
func Write(dir string, c Certificate, key ed25519.PrivateKey) (Certificate, error) {
	var page bytes.Buffer
	if err := HTML(&page, c, PublicKey(key)); err != nil {
		return c, fmt.Errorf("certificate: %w", err)
	}
	sum := sha256.Sum256(page.Bytes())
	c.Page = hex.EncodeToString(sum[:])
	body, err := json.Marshal(c)
	if err != nil {
		return c, fmt.Errorf("certificate: %w", err)
	}
	message, err := signedBytes(body)
	if err != nil {
		return c, fmt.Errorf("certificate: %w", err)
	}
	signed := Signed{Certificate: body, Key: PublicKey(key), Signature: ledger.Signature(ed25519.Sign(key, message))}
	text, err := json.MarshalIndent(signed, "", "  ")
	if err != nil {
		return c, fmt.Errorf("certificate: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return c, fmt.Errorf("certificate: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, PageFile), page.Bytes(), 0o644); err != nil {
		return c, fmt.Errorf("certificate: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, File), append(text, '\n'), 0o644); err != nil {
		return c, fmt.Errorf("certificate: %w", err)
	}
	return c, nil
}
