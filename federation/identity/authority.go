package identity

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/coterie-fl/coterie/internal/durable"
)

// Options are an authority's settings that have defaults.
type Options struct {
	// Server is the address that invitations carry, host:port; empty means
	// localhost:7443.
	Server string
	// Lifetime is how long participants' certificates are valid; 0 means 24 hours.
	Lifetime time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

const (
	defaultServer   = "localhost:7443"
	defaultLifetime = 24 * time.Hour
	minLifetime     = time.Minute
	maxLifetime     = 366 * 24 * time.Hour
)

// The files of an authority.
const (
	caKeyFile      = "ca.key"
	caFile         = "ca.crt"
	serverKeyFile  = "server.key"
	serverFile     = "server.crt"
	receiptKeyFile = "receipts.key"
	settingsFile   = "authority.json" // written last: with it, the folder is an authority
)

type settings struct {
	Version  int    `json:"version"`
	Server   string `json:"server"`
	Lifetime string `json:"certificate_lifetime"`
}

// Authority is a federation's certificate authority, at the server. Several
// processes may use one folder; what one of them changes, the others see at
// their next check.
type Authority struct {
	dir        string
	address    string
	lifetime   time.Duration
	now        func() time.Time
	caKey      crypto.Signer
	ca         *x509.Certificate
	serverKey  crypto.Signer
	server     atomic.Pointer[tls.Certificate]
	receiptKey ed25519.PrivateKey
	registry   *registryFile
}

func (o Options) check() error {
	if o.Server != "" {
		if err := checkServer(o.Server); err != nil {
			return err
		}
	}
	if o.Lifetime != 0 && (o.Lifetime < minLifetime || o.Lifetime > maxLifetime) {
		return fmt.Errorf("%w: a certificate lifetime of %v: it must be between %v and %v", ErrSetting, o.Lifetime, minLifetime, maxLifetime)
	}
	return nil
}

func checkServer(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || len(address) > maxServer {
		return fmt.Errorf("%w: the server's address %q must be host:port, for example fl.example.org:7443", ErrSetting, address)
	}
	return nil
}

// Init makes a new authority in dir, which must be empty or absent. Keys are
// readable by their owner alone.
func Init(dir string, o Options) (*Authority, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Server == "" {
		o.Server = defaultServer
	}
	if o.Lifetime == 0 {
		o.Lifetime = defaultLifetime
	}
	switch entries, err := os.ReadDir(dir); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("make an authority: %w", err)
	case len(entries) > 0:
		return nil, fmt.Errorf("%s is not empty: an authority is never overwritten; choose another folder", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	if err := fill(dir, o); err != nil {
		return nil, fmt.Errorf("make an authority in %s: %w", dir, err)
	}
	a, err := Open(dir, Options{Now: o.Now})
	if err != nil {
		return nil, err
	}
	if _, err := a.serverCertificate(); err != nil {
		return nil, err
	}
	return a, nil
}

func fill(dir string, o Options) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	ca, err := selfSign(key, clock(o.Now)())
	if err != nil {
		return err
	}
	serverKey, err := newKey()
	if err != nil {
		return err
	}
	_, receiptKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(settings{Version: 1, Server: o.Server, Lifetime: o.Lifetime.String()}, "", "  ")
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return writeKey(filepath.Join(dir, caKeyFile), key) },
		func() error { return durable.WriteFile(filepath.Join(dir, caFile), certificatePEM(ca), 0o644) },
		func() error { return writeKey(filepath.Join(dir, serverKeyFile), serverKey) },
		func() error { return writeKey(filepath.Join(dir, receiptKeyFile), receiptKey) },
		newRegistryFile(dir).create,
		func() error { return durable.WriteFile(filepath.Join(dir, settingsFile), append(text, '\n'), 0o644) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Open uses the authority in dir. Zero options stay as they were at Init.
func Open(dir string, o Options) (*Authority, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	a := &Authority{dir: dir, now: clock(o.Now), registry: newRegistryFile(dir)}
	if err := a.load(o); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s holds no authority (%w): make one with `coterie ca init %s`", dir, err, dir)
		}
		return nil, fmt.Errorf("open the authority: %w", err)
	}
	return a, nil
}

func (a *Authority) load(o Options) error {
	text, err := os.ReadFile(filepath.Join(a.dir, settingsFile))
	if err != nil {
		return err
	}
	var s settings
	err = json.Unmarshal(text, &s)
	if err == nil && s.Version != 1 {
		err = fmt.Errorf("version %d is not known", s.Version)
	}
	if err == nil {
		a.lifetime, err = time.ParseDuration(s.Lifetime)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(a.dir, settingsFile), err)
	}
	a.address = s.Server
	if o.Server != "" {
		a.address = o.Server
	}
	if o.Lifetime != 0 {
		a.lifetime = o.Lifetime
	}
	if a.caKey, err = readKey(filepath.Join(a.dir, caKeyFile)); err != nil {
		return err
	}
	if a.ca, err = readCertificate(filepath.Join(a.dir, caFile)); err != nil {
		return err
	}
	if a.serverKey, err = readKey(filepath.Join(a.dir, serverKeyFile)); err != nil {
		return err
	}
	receiptKey, err := readKey(filepath.Join(a.dir, receiptKeyFile))
	if err != nil {
		return err
	}
	var ok bool
	if a.receiptKey, ok = receiptKey.(ed25519.PrivateKey); !ok {
		return fmt.Errorf("%s is not an Ed25519 key", filepath.Join(a.dir, receiptKeyFile))
	}
	return a.registry.view(func(*registry) error { return nil })
}

func clock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// Federation is the federation's name: it follows from the authority's key.
func (a *Authority) Federation() string { return federationOf(a.ca) }

// Server is the address that invitations carry.
func (a *Authority) Server() string { return a.address }

// Lifetime is how long a new certificate is valid.
func (a *Authority) Lifetime() time.Duration { return a.lifetime }

// Certificate is the authority's own, in PEM.
func (a *Authority) Certificate() []byte { return certificatePEM(a.ca.Raw) }

// ReceiptKey signs receipts. Invitations carry its public half.
func (a *Authority) ReceiptKey() ed25519.PrivateKey { return a.receiptKey }
