package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What is in a ledger's folder.
const (
	lockFile   = "lock"
	logFile    = "ledger.log"
	contentDir = "releases" // noised bytes that are not acknowledged yet, or kept, by their SHA-256
)

// errReadOnly: Read was used to open the ledger.
var errReadOnly = errors.New("the ledger was opened for reading only")

// Open locks the ledger in dir, verifies every record, replays them and makes what
// it read durable again. A folder that is missing or empty becomes a new ledger.
// Ceilings on terms without releases are taken from the policy; ceilings under
// which something was released must be the recorded ones: ErrPolicy, see Amend.
func Open(dir string, p Policy, options ...Option) (*Ledger, error) {
	return open(systemDisk{}, dir, wallClock, func(l *Ledger) ([]record, error) { return l.adopt(p) }, options...)
}

func wallClock() time.Time { return time.Now() }

// Amend changes a ceiling under which something was released already. The reason is
// recorded and shown: such a ceiling was not fixed in advance.
func Amend(dir string, c Ceiling, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return fmt.Errorf("amend a ceiling: say why; the reason is recorded")
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("amend a ceiling: %w", err)
	}
	l, err := open(systemDisk{}, dir, wallClock, func(l *Ledger) ([]record, error) {
		if l.state.records == 0 {
			return nil, fmt.Errorf("amend a ceiling: there is no ledger in %s", dir)
		}
		resolved, err := c.resolve()
		return []record{{Kind: kindCeiling, Ceiling: &resolved, Reason: reason}}, err
	})
	if err != nil {
		return err
	}
	return l.Close()
}

// Read opens a ledger to look at it, without a lock, while another process may be
// writing. Everything is verified; nothing can be changed.
func Read(dir string, options ...Option) (*Ledger, error) {
	l := &Ledger{dir: dir, disk: systemDisk{}, state: newState(), broken: errReadOnly}
	for _, o := range options {
		o(l)
	}
	if err := l.hear(); err != nil {
		return nil, fmt.Errorf("ledger in %s: %w", dir, err)
	}
	log, err := l.disk.read(l.path(logFile), maxLog)
	if err != nil {
		return nil, fmt.Errorf("read the ledger in %s: %w", dir, err)
	}
	whole, err := l.replay(log)
	if err == nil {
		l.torn = int64(len(log)) - whole
		err = l.corroborated()
	}
	if err != nil {
		return nil, fmt.Errorf("ledger in %s: %w", dir, err)
	}
	return l, nil
}

// open is Open with a disk and a clock. further names the records to add.
func open(d disk, dir string, now func() time.Time, further func(*Ledger) ([]record, error), options ...Option) (l *Ledger, err error) {
	if err := d.makeDir(dir); err != nil {
		return nil, fmt.Errorf("make the ledger's folder %s: %w", dir, err)
	}
	l = &Ledger{dir: dir, disk: d, now: now, state: newState(), known: map[string]bool{}}
	for _, o := range options {
		o(l)
	}
	if l.lock, err = d.lock(l.path(lockFile)); err != nil {
		return nil, fmt.Errorf("lock the ledger in %s: %w", dir, err)
	}
	if err := l.start(further); err != nil {
		l.Close()
		return nil, fmt.Errorf("ledger in %s: %w", dir, err)
	}
	return l, nil
}

// start reads the log and writes it anew. After a failed sync the operating system
// may show bytes that are not on the disk, and not write them any more: only what
// was written again is known to last.
func (l *Ledger) start(further func(*Ledger) ([]record, error)) error {
	if err := l.hear(); err != nil {
		return err
	}
	log, err := l.disk.read(l.path(logFile), maxLog)
	if errors.Is(err, fs.ErrNotExist) {
		log, err = nil, l.checkFresh()
	} else if err == nil {
		var whole int64
		if whole, err = l.replay(log); err == nil {
			l.torn = int64(len(log)) - whole
			log = log[:whole:whole]
		}
	}
	if err == nil {
		err = l.corroborated()
	}
	if err == nil && l.torn > 0 {
		log, err = l.extend(log, record{Kind: kindCut, Bytes: l.torn})
	}
	if err != nil {
		return err
	}
	more, err := further(l)
	if err != nil {
		return err
	}
	if len(log) == 0 {
		id, err := newIdentity()
		if err != nil {
			return err
		}
		log = []byte(magic)
		more = slices.Insert(more, 0, record{Kind: kindFounded, Identity: &id})
	}
	for _, r := range more {
		if log, err = l.extend(log, r); err != nil {
			return err
		}
	}
	if l.log, err = replace(l.disk, l.path(logFile), log); err != nil {
		return err
	}
	l.size = int64(len(log))
	if err := l.testify(); err != nil {
		return err
	}
	return l.prepareContent()
}

// checkFresh refuses to start anew where a ledger has been.
func (l *Ledger) checkFresh() error {
	names, err := l.disk.list(l.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != lockFile && name != logFile+newSuffix {
			return fmt.Errorf("%w: %s is missing, but there is %s: put the log back, or take an empty folder for another dataset", ErrCorrupt, logFile, name)
		}
	}
	return nil
}

// replay applies every record of a log and returns the length of what is whole.
func (l *Ledger) replay(log []byte) (whole int64, err error) {
	whole, err = scan(log, func(payload []byte, at Hash) error {
		r, err := decodeRecord(payload)
		if err != nil {
			return err
		}
		if err := l.state.admit(r); err != nil {
			return err
		}
		if err := l.state.apply(r, at); err != nil {
			return err
		}
		l.meet()
		return nil
	})
	if err == nil && l.state.records == 0 {
		err = fmt.Errorf("%w: it has no record; a ledger is never created without one", ErrCorrupt)
	}
	return whole, err
}

// extend adds a record to a log in memory and applies it.
func (l *Ledger) extend(log []byte, r record) ([]byte, error) {
	framed, at, err := l.prepare(&r, int64(len(log)))
	if err != nil {
		return nil, err
	}
	return append(log, framed...), l.state.apply(r, at)
}

// prepare admits a record and puts it into its frame.
func (l *Ledger) prepare(r *record, offset int64) ([]byte, Hash, error) {
	r.At = l.now().UTC().Truncate(time.Second)
	if err := l.state.admit(*r); err != nil {
		return nil, Hash{}, err
	}
	payload, err := r.encode()
	if err != nil {
		return nil, Hash{}, err
	}
	return frame(offset, l.state.head, payload)
}

// adopt takes the policy's ceilings and returns the records that make them last.
func (l *Ledger) adopt(p Policy) ([]record, error) {
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	l.allowed = map[Terms]bool{}
	var more []record
	for _, c := range p.Ceilings {
		l.allowed[c.Terms()] = true
		b, known := l.state.budgets[c.Terms()]
		if known && c.sameAs(b.ceiling) && (!b.implied || l.state.released(c.Terms()) > 0) {
			continue
		}
		resolved, err := c.resolve()
		if err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		more = append(more, record{Kind: kindCeiling, Ceiling: &resolved})
	}
	return more, nil
}

// prepareContent makes the folder for noised bytes, and clears it of those that no
// record names, which were never sent, and of those that are not to be kept.
func (l *Ledger) prepareContent() error {
	if err := l.disk.makeDir(l.path(contentDir)); err != nil {
		return err
	}
	names, err := l.disk.list(l.path(contentDir))
	if err != nil {
		return err
	}
	l.findKept(names)
	wanted := map[string]bool{}
	for sum := range l.state.waiting {
		wanted[sum.String()] = true
	}
	for sum := range l.kept.holds {
		wanted[sum.String()] = true
	}
	for _, name := range names {
		if wanted[name] {
			continue
		}
		if err := l.disk.remove(l.path(contentDir, name)); err != nil {
			return fmt.Errorf("remove bytes that nobody waits for: %w", err)
		}
	}
	return nil
}

func (l *Ledger) path(elements ...string) string {
	return filepath.Join(append([]string{l.dir}, elements...)...)
}

// Close gives the lock back.
func (l *Ledger) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var faults []error
	for _, c := range []io.Closer{l.log, l.lock} {
		if c != nil {
			faults = append(faults, c.Close())
		}
	}
	l.log, l.lock = nil, nil
	if l.broken == nil {
		l.broken = fs.ErrClosed
	}
	return errors.Join(faults...)
}
