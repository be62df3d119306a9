package identity

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options are an authority's settings that have defaults.
type Options struct {
	// Server is the address that invitations carry, host:port; empty means
	// localhost:7443.
	Server string
	// Lifetime is how long participants' certificates are valid; 0 means 90 days.
	Lifetime time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

const (
	defaultServer   = "localhost:7443"
	defaultLifetime = 90 * 24 * time.Hour
	minLifetime     = time.Minute
	maxLifetime     = 366 * 24 * time.Hour
)

// The files of an authority. After a rotation, keys and certificates have a number in
// their names.
const (
	caKeyFile      = "ca.key"
	caFile         = "ca.crt"
	serverKeyFile  = "server.key"
	serverFile     = "server.crt"
	receiptKeyFile = "receipts.key"
	settingsFile   = "authority.json" // written last: with it, the folder is an authority, or has new keys
)

// Authority is a federation's certificate authority, at the server. Several
// processes may use one folder; what one of them changes, the others see at
// their next check.
type Authority struct {
	dir      string
	options  Options // of Open: what it says goes before the settings
	now      func() time.Time
	registry *registryFile

	mu   sync.Mutex
	seen fs.FileInfo // the settings that held comes from
	held *keys
}

func (o Options) check() error {
	if o.Server != "" {
		if err := CheckServer(o.Server); err != nil {
			return err
		}
	}
	if o.Lifetime != 0 && (o.Lifetime < minLifetime || o.Lifetime > maxLifetime) {
		return fmt.Errorf("%w: a certificate lifetime of %v: it must be between %v and %v", ErrSetting, o.Lifetime, minLifetime, maxLifetime)
	}
	return nil
}

// CheckServer refuses what nobody can dial: a server is a host and a port, and no URL.
func CheckServer(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.ContainsAny(address, "/ ") || len(address) > maxServer {
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
	if _, err := a.serverCertificate(a.last()); err != nil {
		return nil, err
	}
	return a, nil
}

func fill(dir string, o Options) error {
	k, err := newKeys(clock(o.Now)())
	if err != nil {
		return err
	}
	s := settings{Version: settingsVersion, Server: o.Server, Lifetime: o.Lifetime.String(), Federation: authorityName(k.ca)}
	steps := append(k.write(dir), newRegistryFile(dir).create, func() error { return writeSettings(dir, s) })
	for _, step := range steps {
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
	a := &Authority{dir: dir, options: o, now: clock(o.Now), registry: newRegistryFile(dir)}
	_, err := a.current()
	if err == nil {
		err = a.registry.view(func(*registry) error { return nil })
	}
	if err == nil {
		err = a.tidy()
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(filepath.Join(dir, settingsFile)); missing == nil {
			return nil, fmt.Errorf("open the authority: a file is missing; put it back from a backup of %s: %w", dir, err)
		}
		return nil, fmt.Errorf("%s holds no authority (%w): make one with `coterie ca init %s`", dir, err, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the authority: %w", err)
	}
	return a, nil
}

func clock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// last is the keys as they were last seen. Open has seen some.
func (a *Authority) last() *keys {
	if k, err := a.current(); err == nil {
		return k
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// Federation is the federation's name: it follows from the first authority's key.
func (a *Authority) Federation() string { return a.last().federation }

// Server is the address that invitations carry.
func (a *Authority) Server() string {
	if a.options.Server != "" {
		return a.options.Server
	}
	return a.last().settings.Server
}

// Lifetime is how long a new certificate is valid.
func (a *Authority) Lifetime() time.Duration {
	if a.options.Lifetime != 0 {
		return a.options.Lifetime
	}
	return a.last().lifetime
}

// Certificate is the authority's own, in PEM.
func (a *Authority) Certificate() []byte { return certificatePEM(a.last().ca.Raw) }

// ReceiptKey signs receipts. Invitations carry its public half.
func (a *Authority) ReceiptKey() ed25519.PrivateKey { return a.last().receiptKey }

// Signer is the key that signs receipts now. It is to be asked for every receipt: keys
// may be rotated while a server runs.
func (a *Authority) Signer() (ed25519.PrivateKey, error) {
	k, err := a.current()
	if err != nil {
		return nil, fmt.Errorf("find the key for receipts: %w", err)
	}
	return k.receiptKey, nil
}

// Successions are how the federation came to the authority that it has, from its first.
func (a *Authority) Successions() ([]Succession, error) {
	k, err := a.current()
	if err != nil {
		return nil, fmt.Errorf("find the federation's authorities: %w", err)
	}
	return k.settings.Successions, nil
}
