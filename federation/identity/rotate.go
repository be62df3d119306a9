package identity

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/ledger"
)

// DefaultOverlap is how long what an authority has signed is good after it was succeeded.
const DefaultOverlap = 90 * 24 * time.Hour

const (
	minOverlap = time.Minute
	maxOverlap = 366 * 24 * time.Hour
)

// The files of a bridge; their names always have a number.
const (
	bridgeKeyFile = "bridge.key"
	bridgeFile    = "bridge.crt"
)

// Rotation is what Rotate has done.
type Rotation struct {
	Federation string    `json:"federation"`
	Number     int       `json:"number"` // rotations so far
	CASHA256   string    `json:"ca_sha256"`
	ReceiptKey string    `json:"receipt_key"`
	Ends       time.Time `json:"overlap_ends"`
	// Cancelled are those whose invitations nobody had used: they named the old authority.
	Cancelled []string `json:"cancelled"`
}

// Rotate gives the federation a new authority, a new server key and a new key for
// receipts. Its name stays, and so do names, revocations and certificates; the latter to
// the end of the overlap at most. The old authority signs a last certificate for the
// server, by which those who know nothing newer recognise it, and its key is destroyed.
// A server that runs sees it at its next handshake and request.
//
// Killed at any instant, the folder holds the old keys or the new ones; what is left to
// be done the next Open does.
func (a *Authority) Rotate(overlap time.Duration) (Rotation, error) {
	if overlap < minOverlap || overlap > maxOverlap {
		return Rotation{}, fmt.Errorf("%w: an overlap of %v: it must be between %v and %v", ErrSetting, overlap, minOverlap, maxOverlap)
	}
	var out Rotation
	err := a.registry.change(func(r *registry) error {
		t, err := a.newTurn(overlap)
		if err != nil {
			return err
		}
		for _, step := range t.steps() {
			if err := step(); err != nil {
				return err
			}
		}
		out = t.result()
		out.Cancelled = r.succeed(t.link.Ends, a.now().Add(time.Second)) // all that there is
		return nil
	})
	if err != nil {
		return Rotation{}, fmt.Errorf("rotate the keys of %s: %w", a.dir, err)
	}
	if err := a.tidy(); err != nil {
		return out, fmt.Errorf("the keys of %s are rotated, but the old ones could not be removed; the next `coterie ca` command tries again: %w", a.dir, err)
	}
	return out, nil
}

// turn is a rotation under way. The lock is held.
type turn struct {
	a         *Authority
	old, new  *keys
	link      Succession
	bridgeKey crypto.Signer
}

// newTurn makes and signs everything, in memory.
func (a *Authority) newTurn(overlap time.Duration) (*turn, error) {
	old, err := a.current()
	if err != nil {
		return nil, err
	}
	fresh, err := newKeys(a.now())
	if err != nil {
		return nil, err
	}
	fresh.number, fresh.federation, fresh.settings = old.number+1, old.federation, old.settings
	t := &turn{a: a, old: old, new: fresh}
	if t.bridgeKey, err = newKey(); err != nil {
		return nil, err
	}
	ends := a.now().Add(overlap).UTC().Truncate(time.Second)
	receipts, err := ledger.SignSuccession(ledger.Succession{
		Federation: old.federation, Number: fresh.number, At: a.now(), Authority: sha256.Sum256(fresh.ca.Raw),
		Old: ledger.Key(old.receiptKey.Public().(ed25519.PublicKey)), New: ledger.Key(fresh.receiptKey.Public().(ed25519.PublicKey)),
	}, old.receiptKey)
	if err != nil {
		return nil, err
	}
	t.link = Succession{Old: old.ca.Raw, New: fresh.ca.Raw, Ends: ends, Receipts: receipts}
	if err := t.link.sign(old.caKey); err != nil {
		return nil, err
	}
	fresh.settings.Version, fresh.settings.Federation = settingsVersionRotated, old.federation
	fresh.settings.Successions = append(slices.Clone(old.settings.Successions), t.link)
	return t, nil
}

// newKeys are a whole set, with the authority's own certificate.
func newKeys(now time.Time) (*keys, error) {
	caKey, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := selfSign(caKey, now)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	serverKey, err := newKey()
	if err != nil {
		return nil, err
	}
	_, receiptKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return &keys{caKey: caKey, ca: ca, serverKey: serverKey, receiptKey: receiptKey}, nil
}

// write makes the files of a set of keys durable, all but the settings that name them.
func (k *keys) write(dir string) []func() error {
	file := func(name string) string { return filepath.Join(dir, numbered(name, k.number)) }
	return []func() error{
		func() error { return WriteKey(file(caKeyFile), k.caKey) },
		func() error { return durable.WriteFile(file(caFile), certificatePEM(k.ca.Raw), 0o644) },
		func() error { return WriteKey(file(serverKeyFile), k.serverKey) },
		func() error { return WriteKey(file(receiptKeyFile), k.receiptKey) },
	}
}

// steps are what changes on the disk, in their order. The last one is the rotation: until
// then the folder is as it was, with files beside it that nobody reads.
func (t *turn) steps() []func() error {
	path := func(name string) string { return filepath.Join(t.a.dir, numbered(name, t.new.number)) }
	steps := []func() error{
		func() error { return WriteKey(path(bridgeKeyFile), t.bridgeKey) },
		func() error {
			leaf, err := t.a.signServer(t.old, t.bridgeKey.Public(), t.link.Ends.Sub(t.a.now()))
			if err != nil {
				return err
			}
			return durable.WriteFile(path(bridgeFile), certificatePEM(leaf.Raw, t.old.ca.Raw), 0o644)
		},
	}
	steps = append(steps, t.new.write(t.a.dir)...)
	return append(steps, func() error { return writeSettings(t.a.dir, t.new.settings) })
}

func writeSettings(dir string, s settings) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	return durable.WriteFile(filepath.Join(dir, settingsFile), append(text, '\n'), 0o644)
}

func (t *turn) result() Rotation {
	r := t.link.Receipts
	return Rotation{
		Federation: r.Federation, Number: r.Number, CASHA256: r.Authority.String(), ReceiptKey: r.New.String(), Ends: t.link.Ends,
	}
}

// succeed ends what an authority signed before a time: invitations that nobody has used
// at once, certificates with the overlap. It may be repeated.
func (r *registry) succeed(ends, before time.Time) (cancelled []string) {
	cancelled = []string{}
	for _, i := range r.Invites {
		if i.Created.Before(before) && !i.Cancelled && i.Key == "" {
			i.Cancelled = true
			cancelled = append(cancelled, i.Name)
		}
	}
	for _, c := range r.Issued {
		if c.Issued.Before(before) && c.Expires.After(ends) {
			c.Expires = ends
		}
	}
	slices.Sort(cancelled)
	return cancelled
}

// named finds the files that belong to one set of keys.
var named = regexp.MustCompile(`^(ca|server|receipts|bridge)(?:-([0-9]+))?\.(key|crt)$`)

// halves are files that a killed process had not finished; only who holds the lock
// writes such.
var halves = regexp.MustCompile(`^\.(?:(?:ca|server|receipts|bridge)(?:-[0-9]+)?\.key|authority\.json)\.new-`)

// leftovers are files of keys that are no longer in use, or never came to be.
func (a *Authority) leftovers(k *keys) ([]string, error) {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if halves.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
		m := named.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[2])
		inUse := number == k.number
		if m[1] == "bridge" {
			inUse = number >= 1 && number <= k.number && a.now().Before(k.settings.Successions[number-1].Ends)
		}
		if !inUse {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// tidy destroys keys that are not in use any more, and finishes what a killed rotation
// has left to be done.
func (a *Authority) tidy() error {
	k, err := a.current()
	if err != nil {
		return err
	}
	if found, err := a.leftovers(k); err != nil || len(found) == 0 {
		return err
	}
	// First the registry, so that what is left on the disk tells that this is not done.
	err = a.registry.change(func(r *registry) error {
		k, err := a.current()
		if err != nil {
			return err
		}
		for _, s := range k.settings.Successions {
			r.succeed(s.Ends, s.Receipts.At)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.registry.change(func(*registry) error {
		k, err := a.current() // under the lock: nobody makes new ones now
		if err != nil {
			return err
		}
		found, err := a.leftovers(k)
		if err != nil {
			return err
		}
		for _, name := range found {
			if err := os.Remove(filepath.Join(a.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove a key that is not in use any more: %w", err)
			}
		}
		return durable.SyncDirectory(a.dir)
	})
}
