package identity

import (
	"crypto"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// settings are an authority's file. It is replaced in one step, and with it all keys:
// their files carry the number of successions in their names.
type settings struct {
	Version  int    `json:"version"`
	Server   string `json:"server"`
	Lifetime string `json:"certificate_lifetime"`
	// Federation is the name, which follows from the first authority's key. Folders from
	// before it was written here have had no other authority.
	Federation  string       `json:"federation,omitempty"`
	Successions []Succession `json:"successions,omitempty"`
}

// The versions of the settings. Programs that know nothing of successions refuse the
// second, which a folder has from its first rotation on.
const (
	settingsVersion        = 1
	settingsVersionRotated = 2
)

// keys are what an authority works with between two rotations.
type keys struct {
	settings   settings
	lifetime   time.Duration
	federation string
	number     int // successions so far
	caKey      crypto.Signer
	ca         *x509.Certificate
	serverKey  crypto.Signer
	server     atomic.Pointer[tls.Certificate]
	receiptKey ed25519.PrivateKey
	bridges    []bridge
}

// bridge is an earlier authority whose certificates are good for a while.
type bridge struct {
	ca   *x509.Certificate
	ends time.Time
	// certificate is what it signed last, for the server: those who know no later
	// authority recognise the server by it. Its key signs nothing else.
	certificate *tls.Certificate
}

// numbered is the name of a file of the keys after so many rotations.
func numbered(file string, number int) string {
	if number == 0 {
		return file
	}
	ext := filepath.Ext(file)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(file, ext), number, ext)
}

// current is the keys as they are on the disk now: another process may have rotated them.
func (a *Authority) current() (*keys, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	info, err := os.Stat(filepath.Join(a.dir, settingsFile))
	if err != nil {
		return nil, err
	}
	if a.held != nil && unchanged(info, a.seen) {
		return a.held, nil
	}
	k, err := a.load()
	// Keys that are gone were rotated while they were read: then the settings are others.
	for tries := 0; errors.Is(err, fs.ErrNotExist) && tries < 3; tries++ {
		again, failure := os.Stat(filepath.Join(a.dir, settingsFile))
		if failure != nil || unchanged(again, info) {
			break
		}
		info = again
		k, err = a.load()
	}
	if err != nil {
		return nil, err
	}
	a.held, a.seen = k, info
	return k, nil
}

// unchanged says that a file that is only ever replaced is the one that was seen.
func unchanged(now, seen fs.FileInfo) bool {
	return os.SameFile(now, seen) && now.ModTime().Equal(seen.ModTime()) && now.Size() == seen.Size()
}

func (a *Authority) load() (*keys, error) {
	s, err := a.readSettings()
	if err != nil {
		return nil, err
	}
	k := &keys{settings: s, number: len(s.Successions)}
	path := filepath.Join(a.dir, settingsFile)
	if k.lifetime, err = time.ParseDuration(s.Lifetime); err == nil && k.lifetime == 0 {
		err = errors.New("certificate_lifetime is 0")
	}
	if err == nil {
		err = Options{Server: s.Server, Lifetime: k.lifetime}.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	line, err := newLineage(s.Successions)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := a.readKeys(k); err != nil {
		return nil, err
	}
	k.federation = line.federation(k.ca)
	if s.Federation != "" && s.Federation != k.federation {
		return nil, fmt.Errorf("%s names federation %s, but its authority's key makes it %s: put the folder back as it was", path, s.Federation, k.federation)
	}
	if n := len(line.all); n > 0 && !line.all[n-1].ca.Equal(k.ca) {
		return nil, fmt.Errorf("%s: the last succession is not to the authority in %s: put the folder back as it was", path, numbered(caFile, k.number))
	}
	return k, a.readBridges(k, line)
}

func (a *Authority) readSettings() (s settings, err error) {
	path := filepath.Join(a.dir, settingsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	err = json.Unmarshal(text, &s)
	if err == nil && s.Version != settingsVersion && s.Version != settingsVersionRotated {
		err = fmt.Errorf("version %d is not known", s.Version)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (a *Authority) readKeys(k *keys) (err error) {
	file := func(name string) string { return filepath.Join(a.dir, numbered(name, k.number)) }
	if k.caKey, err = ReadKey(file(caKeyFile)); err != nil {
		return err
	}
	if k.ca, err = readCertificate(file(caFile)); err != nil {
		return err
	}
	if k.serverKey, err = ReadKey(file(serverKeyFile)); err != nil {
		return err
	}
	receiptKey, err := ReadKey(file(receiptKeyFile))
	if err != nil {
		return err
	}
	var ok bool
	if k.receiptKey, ok = receiptKey.(ed25519.PrivateKey); !ok {
		return fmt.Errorf("%s is not an Ed25519 key", file(receiptKeyFile))
	}
	return nil
}

// readBridges reads what earlier authorities have left for those who know no later one.
// A bridge that is over may have been removed.
func (a *Authority) readBridges(k *keys, line lineage) error {
	for i, s := range k.settings.Successions {
		if !a.now().Before(s.Ends) {
			continue
		}
		key, err := ReadKey(filepath.Join(a.dir, numbered(bridgeKeyFile, i+1)))
		if err != nil {
			return err
		}
		leaf, err := readCertificate(filepath.Join(a.dir, numbered(bridgeFile, i+1)))
		if err != nil {
			return err
		}
		k.bridges = append(k.bridges, bridge{
			ca: line.all[i].ca, ends: s.Ends,
			certificate: &tls.Certificate{Certificate: [][]byte{leaf.Raw, line.all[i].ca.Raw}, PrivateKey: key, Leaf: leaf},
		})
	}
	return nil
}

// knows says whether an authority's certificates are accepted at a time, and if not, why.
func (k *keys) knows(ca *x509.Certificate, now time.Time) error {
	if ca.Equal(k.ca) {
		return nil
	}
	for _, b := range k.bridges {
		if !ca.Equal(b.ca) {
			continue
		}
		if now.After(b.ends) {
			return fmt.Errorf("%w: the authority that signed it was succeeded by another, and the time to renew ended at %s", ErrOutdated, b.ends.Format(time.RFC3339))
		}
		return nil
	}
	return fmt.Errorf("%w: another authority signed it", ErrWrongCertificate)
}

// clientCAs are the authorities whose certificates may be shown.
func (k *keys) clientCAs() *x509.CertPool {
	p := pool(k.ca)
	for _, b := range k.bridges {
		p.AddCert(b.ca)
	}
	return p
}
