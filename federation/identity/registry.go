package identity

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/internal/durable"
)

// registry is what the authority has said so far. Certificates that are not in
// it are refused, so a lost registry locks out rather than lets in; of a restored one,
// see MarkRestored.
type registry struct {
	Version int                    `json:"version"`
	Invites map[string]*invitation `json:"invites"` // by the secret's hash
	Issued  map[string]*issue      `json:"issued"`  // by serial number
	Blocked map[string]time.Time   `json:"blocked"` // participants that may not enrol or connect
	Gaps    []gap                  `json:"gaps,omitempty"`
	Log     string                 `json:"log,omitempty"` // file with what was added since (journal.go)

	touched *delta // by the change that is being made; nil: it is written whole
}

type invitation struct {
	Name      string    `json:"name"`
	Role      Role      `json:"role,omitempty"` // none: participant
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
	Cancelled bool      `json:"cancelled,omitempty"`
	Key       string    `json:"key,omitempty"` // hash of the key that used it
	Used      time.Time `json:"used,omitzero"`
}

type issue struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role,omitempty"` // none: participant
	Key     string    `json:"key"`            // hash of the public key
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// Registries with a log have another version: programs that know of none must not take them
// for the whole.
const registryVersion, loggedVersion = 1, 2

// remembered is how long ended invitations and certificates stay listed.
const remembered = 7 * 24 * time.Hour

// forget drops what ended long ago: refused by its dates, it need not be listed.
func (r *registry) forget(now time.Time) {
	if r.touched != nil {
		return // when it is written whole
	}
	for hash, i := range r.Invites {
		if now.After(i.Expires.Add(remembered)) {
			delete(r.Invites, hash)
		}
	}
	for serial, i := range r.Issued {
		// Of the server's own operator there is a new one with every look.
		if now.After(i.Expires.Add(remembered)) || i.Name == LocalOperator && now.After(i.Expires) {
			delete(r.Issued, serial)
		}
	}
	r.Gaps = slices.DeleteFunc(r.Gaps, func(g gap) bool { return now.After(g.To.Add(maxLifetime)) })
}

// registryFile shares a registry between processes: it is replaced whole under a
// lock, and read again whenever it has changed.
type registryFile struct {
	path     string
	changing sync.Mutex // held by the one goroutine that changes it

	mu      sync.Mutex // never held while another process is waited for
	seen    fs.FileInfo
	held    *registry
	logRead int64 // how far the log was read
}

// patience is how long a change waits for another process's.
const patience = 10 * time.Second

func newRegistryFile(dir string) *registryFile {
	return &registryFile{path: filepath.Join(dir, "registry.json")}
}

// create writes the first registry.
func (f *registryFile) create() error {
	return f.write(&registry{
		Version: registryVersion,
		Invites: map[string]*invitation{}, Issued: map[string]*issue{}, Blocked: map[string]time.Time{},
	}, time.Time{})
}

// view calls read with the registry as it is now. read must not keep it.
func (f *registryFile) view(read func(*registry) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return err
	}
	return read(f.held)
}

// refresh reads what has changed. Whoever calls it holds mu.
func (f *registryFile) refresh() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("read the registry: %w", err)
	}
	same := f.held != nil && os.SameFile(info, f.seen) && info.ModTime().Equal(f.seen.ModTime()) && info.Size() == f.seen.Size()
	if same && f.held.Log != "" {
		log, err := os.Stat(f.logPath(f.held))
		switch {
		case err != nil || log.Size() < f.logRead:
			same = false // taken up by a new registry just now, or damaged: read all
		case log.Size() > f.logRead:
			if f.logRead, err = f.takeUp(f.held, f.logRead); err != nil {
				f.held = nil
				return err
			}
		}
	}
	if same {
		return nil
	}
	f.held, f.seen, f.logRead, err = f.readWhole()
	if err != nil {
		f.held = nil
	}
	return err
}

// change calls edit with the registry as it is now, and makes the result durable, written
// whole. If edit fails, nothing is changed.
func (f *registryFile) change(edit func(*registry) error) error {
	return f.alone(func() error { return f.rewrite(edit, false) })
}

// alone does what no other change, of this process or another, may happen beside.
func (f *registryFile) alone(do func() error) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	lock, err := durable.Lock(filepath.Join(filepath.Dir(f.path), lockFile), patience)
	if err != nil {
		return err
	}
	defer lock.Close()
	return do()
}

// rewrite is change for who holds the lock. With a log, the new registry names one for what
// is to come.
func (f *registryFile) rewrite(edit func(*registry) error, log bool) error {
	f.clear()
	r, info, _, err := f.readWhole()
	if err != nil {
		return err
	}
	if err := edit(r); err != nil {
		return err
	}
	before := r.Log
	r.Version, r.Log = registryVersion, ""
	if log {
		r.Version = loggedVersion
		if r.Log, err = f.newLog(); err != nil {
			return err
		}
	}
	if err := f.write(r, info.ModTime()); err != nil {
		return err
	}
	if before != "" {
		_ = os.Remove(filepath.Join(filepath.Dir(f.path), before)) // it is taken up
	}
	return nil
}

// clear removes what a killed process left while it wrote. Who holds the lock is
// alone. What cannot be removed does no harm.
func (f *registryFile) clear() {
	dir := filepath.Dir(f.path)
	r, err := f.read()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		log := strings.HasPrefix(e.Name(), logPrefix) && strings.HasSuffix(e.Name(), logSuffix)
		if strings.HasPrefix(e.Name(), ".registry.json.new-") || log && err == nil && e.Name() != r.Log {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func (f *registryFile) read() (*registry, error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read the registry: %w", err)
	}
	var r registry
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", f.path, err)
	}
	if (r.Version != registryVersion && r.Version != loggedVersion) || r.Invites == nil || r.Issued == nil || r.Blocked == nil {
		return nil, fmt.Errorf("%s has version %d, this program reads %d and %d", f.path, r.Version, registryVersion, loggedVersion)
	}
	if (r.Log != "") != (r.Version == loggedVersion) || r.Log != filepath.Base(filepath.Clean("/"+r.Log)) && r.Log != "" {
		return nil, fmt.Errorf("%s is damaged: it has version %d and names the log %q", f.path, r.Version, r.Log)
	}
	for id, i := range r.Invites {
		if i == nil {
			return nil, fmt.Errorf("%s is damaged: invitation %s is empty", f.path, id)
		}
	}
	for serial, i := range r.Issued {
		if i == nil {
			return nil, fmt.Errorf("%s is damaged: certificate %s is empty", f.path, serial)
		}
	}
	if err := r.readRoles(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return &r, nil
}

// write replaces the file. Its time always rises, even within one tick of the
// clock, so that no reader takes the new file for the one it knows.
func (f *registryFile) write(r *registry, previous time.Time) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the registry: %w", err)
	}
	if err := durable.WriteFile(f.path, text, 0o600); err != nil {
		return err
	}
	info, err := os.Stat(f.path)
	if err == nil && !info.ModTime().After(previous) {
		later := previous.Add(time.Millisecond)
		err = os.Chtimes(f.path, later, later)
	}
	if err != nil {
		return fmt.Errorf("write the registry: %w", err)
	}
	return nil
}
