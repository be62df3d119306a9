package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/internal/durable"
)

// A large registry is not rewritten for every invitation and certificate: what they change
// is added to a log beside it, a line a change, which the registry names. When the log has
// become as large as the registry, a new registry takes it up and names a new log. So n
// enrolments write a multiple of n, and not of n squared. Revocations and all else rewrite
// the registry whole: a registry without its log never forgets one.

// wholeBytes is up to which size a registry is rewritten for every change; tests have less.
var wholeBytes int64 = 64 << 10

const logPrefix, logSuffix = "registry-", ".log"

// delta is what a change has touched: a line of the log.
type delta struct {
	Invites map[string]*invitation `json:"invites,omitempty"`
	Issued  map[string]*issue      `json:"issued,omitempty"`
}

func (r *registry) touchInvite(id string) {
	if r.touched != nil {
		r.touched.Invites[id] = r.Invites[id]
	}
}

func (r *registry) touchIssue(serial string) {
	if r.touched != nil {
		r.touched.Issued[serial] = r.Issued[serial]
	}
}

// apply takes up a line of the log, which is what some change has left of an entry.
func (r *registry) apply(line []byte) error {
	var d delta
	if err := json.Unmarshal(line, &d); err != nil {
		return err
	}
	for id, i := range d.Invites {
		if i == nil {
			return fmt.Errorf("invitation %s is empty", id)
		}
		var err error
		if i.Role, err = roleOf(i.Role); err != nil {
			return err
		}
		r.Invites[id] = i
	}
	for serial, c := range d.Issued {
		if c == nil {
			return fmt.Errorf("certificate %s is empty", serial)
		}
		var err error
		if c.Role, err = roleOf(c.Role); err != nil {
			return err
		}
		r.Issued[serial] = c
	}
	return nil
}

// lineOf is a line of the log: the beginning of its hash, and what it says. A line that a
// power cut has left in part is none.
func lineOf(d *delta) ([]byte, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %s\n", sumOf(text), text), nil
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// takeUp applies the lines of a log from an offset on, and says where the last whole one
// ends. What is behind it is on its way, or was left by somebody who was killed.
func (f *registryFile) takeUp(r *registry, from int64) (end int64, err error) {
	file, err := os.Open(f.logPath(r))
	if err != nil {
		return from, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, from, 1<<40))
	if err != nil {
		return from, fmt.Errorf("read the registry: %w", err)
	}
	for end = from; ; {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		sum, said, ok := bytes.Cut(line, []byte(" "))
		if !whole || !ok || string(sum) != sumOf(said) {
			if whole && bytes.Contains(rest, []byte("\n")) { // later lines were written after it was durable
				return end, fmt.Errorf("%s is damaged at byte %d", file.Name(), end)
			}
			return end, nil
		}
		if err := r.apply(said); err != nil {
			return end, fmt.Errorf("%s is damaged at byte %d: %w", file.Name(), end, err)
		}
		end += int64(len(line)) + 1
		text = rest
	}
}

func (f *registryFile) logPath(r *registry) string {
	return filepath.Join(filepath.Dir(f.path), r.Log)
}

// add is change for an edit that says what it touches. It costs no more in a large
// registry than in a small one, but now and then.
func (f *registryFile) add(edit func(*registry) error) error {
	return f.alone(func() error { return f.addAlone(edit) })
}

// addAlone is add for who holds the lock.
func (f *registryFile) addAlone(edit func(*registry) error) error {
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("read the registry: %w", err)
	}
	if info.Size() < wholeBytes {
		return f.rewrite(edit, false)
	}
	line, at, err := f.edited(edit)
	if err != nil {
		return err
	}
	if line == nil { // no log yet, or one that is as large as the registry
		f.drop()
		return f.rewrite(edit, true)
	}
	if err := f.append(line, at); err != nil {
		f.drop()
		return err
	}
	return nil
}

// edited applies an edit to the registry as it is now, in memory, and says which line goes
// to which place of the log. No line: there is no log, and nothing was done.
func (f *registryFile) edited(edit func(*registry) error) (line []byte, at int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(f.path)
	if err != nil || f.held.Log == "" || f.logRead > info.Size() {
		return nil, f.logRead, err
	}
	r := f.held
	r.touched = &delta{Invites: map[string]*invitation{}, Issued: map[string]*issue{}}
	defer func() { r.touched = nil }()
	err = edit(r)
	if err == nil {
		line, err = lineOf(r.touched)
	}
	if err != nil && len(r.touched.Invites)+len(r.touched.Issued) > 0 {
		f.held = nil // it was changed in part: read again
	}
	return line, f.logRead, err
}

// append makes a line durable at a place of the log; what is behind the place goes.
func (f *registryFile) append(line []byte, at int64) (err error) {
	f.mu.Lock()
	held := f.held
	f.mu.Unlock()
	if held == nil {
		return errors.New("write the registry: it was read anew in between")
	}
	file, err := os.OpenFile(f.logPath(held), os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the registry: %w", err)
	}
	defer file.Close()
	if err = file.Truncate(at); err == nil {
		_, err = file.WriteAt(line, at)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		_ = file.Truncate(at) // in part it would be no line
		return fmt.Errorf("write the registry: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == held {
		f.logRead = max(f.logRead, at+int64(len(line)))
	}
	return nil
}

// drop has the registry read again.
func (f *registryFile) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = nil
}

// newLog makes an empty log, durable before a registry names it.
func (f *registryFile) newLog() (name string, err error) {
	name = logPrefix + strings.ToLower(rand.Text()) + logSuffix
	dir := filepath.Dir(f.path)
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(file.Sync(), file.Close(), durable.SyncDirectory(dir))
	}
	if err != nil {
		return "", fmt.Errorf("write the registry: %w", err)
	}
	return name, nil
}

// readWhole reads the registry and its log. Whoever holds no lock may find that a new
// registry has taken the log up meanwhile: then it reads that.
func (f *registryFile) readWhole() (r *registry, seen fs.FileInfo, end int64, err error) {
	for range 20 {
		if seen, err = os.Stat(f.path); err != nil {
			return nil, nil, 0, fmt.Errorf("read the registry: %w", err)
		}
		if r, err = f.read(); err != nil || r.Log == "" {
			return r, seen, 0, err
		}
		if end, err = f.takeUp(r, 0); !errors.Is(err, fs.ErrNotExist) {
			return r, seen, end, err
		}
		time.Sleep(time.Millisecond)
	}
	return nil, nil, 0, fmt.Errorf("read the registry: %s is missing, put it back from a backup: %w", r.Log, err)
}
