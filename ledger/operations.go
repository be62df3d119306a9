package ledger

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/dp/event"
)

// Entry is what is known of a slot.
func (l *Ledger) Entry(s Slot) (Entry, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	e, ok := l.state.entries[s]
	if !ok {
		return Entry{}, false
	}
	return *e, true
}

// Another is a plan other than this one under which a run's slots were paid for; false: there is none.
func (l *Ledger) Another(federation, run string, plan Hash) (other Hash, found bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for s, e := range l.state.entries {
		if s.Federation == federation && s.Run == run && e.Plan != plan {
			return e.Plan, true
		}
	}
	return Hash{}, false
}

// Check says whether releases would still fit together, and records nothing: a plan
// can be declined before training. Rounds are told by event.Repeated.
func (l *Ledger) Check(releases ...event.Release) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, r := range releases {
		if err := l.permits(r); err != nil {
			return err
		}
	}
	return l.state.check(releases...)
}

// maxCharge bounds an event, so that its receipt fits a record.
const maxCharge = 64 << 10

// Reserve pays for a release. When it returns nil the charge is durable, and noise
// may be drawn. The same charge again is the same charge: nothing had left.
// Another release for the slot is ErrConflict; a slot whose bytes are stored is
// ErrStored; a budget that would be exceeded is ErrRefused.
func (l *Ledger) Reserve(c Charge) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.broken != nil {
		return l.broken
	}
	wanted, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("reserve %s: %w", c.Slot, err)
	}
	if len(wanted) > maxCharge {
		return fmt.Errorf("reserve %s: the event has %d bytes of JSON; the most is %d", c.Slot, len(wanted), maxCharge)
	}
	if !l.known[c.Slot.Federation] {
		return fmt.Errorf("reserve %s: %w", c.Slot, ErrStranger)
	}
	if err := l.permits(c.Release); err != nil {
		return fmt.Errorf("reserve %s: %w", c.Slot, err)
	}
	if e, taken := l.state.entries[c.Slot]; taken {
		return again(e, wanted)
	}
	if err := l.state.check(c.Release); err != nil {
		return fmt.Errorf("reserve %s: %w", c.Slot, err)
	}
	return l.write(record{Kind: kindReserve, Charge: &c})
}

// again decides about a slot that was reserved before.
func again(e *Entry, wanted []byte) error {
	paid, err := json.Marshal(e.Charge)
	if err != nil {
		return fmt.Errorf("reserve %s: %w", e.Slot, err)
	}
	switch {
	case !slices.Equal(paid, wanted):
		return fmt.Errorf("reserve %s: %w: %s", e.Slot, ErrConflict, clip(string(paid)))
	case e.Status == Reserved:
		return nil
	case e.Status == Abandoned:
		return fmt.Errorf("reserve %s: %w: %s", e.Slot, ErrAbandoned, e.Reason)
	}
	return fmt.Errorf("reserve %s: %w", e.Slot, ErrStored)
}

// permits asks the policy that the ledger was opened with.
func (l *Ledger) permits(r event.Release) error {
	if t := termsOf(r); !l.allowed[t] {
		return uncovered(t)
	}
	return nil
}

// Store makes the noised bytes of a reserved slot durable. When it returns nil they
// may be sent. The same bytes again are fine, others are ErrConflict.
func (l *Ledger) Store(s Slot, noised []byte) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.broken != nil {
		return l.broken
	}
	e, err := l.state.entry(s)
	if err != nil {
		return err
	}
	sum := Hash(sha256.Sum256(noised))
	switch {
	case e.Status == Abandoned:
		return fmt.Errorf("store %s: %w: %s", s, ErrAbandoned, e.Reason)
	case e.Status != Reserved && e.Content == sum:
		return nil
	case e.Status != Reserved:
		return fmt.Errorf("store %s: %w: bytes with SHA-256 %s", s, ErrConflict, e.Content)
	}
	spent, err := l.state.spentSoFar(e.Charge)
	if err != nil {
		return fmt.Errorf("store %s: %w", s, err)
	}
	f, err := replace(l.disk, l.path(contentDir, sum.String()), noised)
	if err != nil {
		return l.poison(fmt.Errorf("store %s: %w", s, err))
	}
	if err := f.Close(); err != nil {
		return l.poison(fmt.Errorf("store %s: %w", s, err))
	}
	return l.write(record{Kind: kindStore, Slot: &s, Content: &content{
		Hash: sum, Size: int64(len(noised)), Counter: l.state.counters[s.Federation] + 1, Spent: spent,
	}})
}

// Load returns the stored bytes, for sending and for every retry, until the slot is
// abandoned, or committed and no longer kept: ErrGone.
func (l *Ledger) Load(s Slot) ([]byte, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	e, err := l.sendable(s)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	noised, err := l.disk.read(l.path(contentDir, e.Content.String()), e.Size)
	if err == nil && Hash(sha256.Sum256(noised)) != e.Content {
		err = errors.New("the stored bytes are not those that were stored")
	}
	switch {
	case err != nil && e.Status == Committed:
		l.dropAll(l.kept.release(func(other *Entry) bool { return other == e }))
		return nil, fmt.Errorf("load: %w", gone(s, err))
	case err != nil:
		return nil, fmt.Errorf("load %s: %w: the stored bytes cannot be read, give the slot up with Abandon: %w", s, ErrCorrupt, err)
	}
	return noised, nil
}

// sendable is the entry of a slot that may be sent, or sent again.
func (l *Ledger) sendable(s Slot) (*Entry, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	e, err := l.state.entry(s)
	switch {
	case err != nil:
		return nil, err
	case e.Status == Abandoned:
		return nil, fmt.Errorf("%w: %s: %s", ErrAbandoned, s, e.Reason)
	case e.Status == Committed && e.kept:
		return e, nil
	case e.Status == Committed:
		return nil, gone(s, nil)
	case e.Status != Stored:
		return nil, fmt.Errorf("%w: %s is %s, not %s", ErrConflict, s, e.Status, Stored)
	}
	return e, nil
}

// Draft is the receipt that the server is asked to sign, once the slot is stored: always
// the same one.
func (l *Ledger) Draft(s Slot) (Receipt, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	e, err := l.sendable(s)
	if err != nil {
		return Receipt{}, fmt.Errorf("draft a receipt: %w", err)
	}
	return *e.draft, nil
}

// Commit records the server's receipt, which must be the slot's draft signed with
// the federation's key; the stored bytes are dropped, unless WithKept has room. Of a slot
// that is committed the receipt is checked, and nothing is recorded.
func (l *Ledger) Commit(s Slot, r SignedReceipt) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.commit(s, r)
}

func (l *Ledger) commit(s Slot, r SignedReceipt) error {
	if l.broken != nil {
		return l.broken
	}
	e, err := l.state.entry(s)
	if err != nil {
		return err
	}
	if e.Status == Committed {
		return l.state.checkReceipt(e, r)
	}
	stored := e.Status == Stored // the bytes of an abandoned one are gone
	if err := l.write(record{Kind: kindCommit, Slot: &s, Receipt: &r}); err != nil {
		return err
	}
	if stored {
		l.retain(e)
	}
	return nil
}

// Abandon gives a slot up: it stays spent and visible, and is never sent again.
func (l *Ledger) Abandon(s Slot, reason string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.broken != nil {
		return l.broken
	}
	if err := checkName("reason", reason); err != nil {
		return err
	}
	if err := l.write(record{Kind: kindAbandon, Slot: &s, Reason: reason}); err != nil {
		return err
	}
	l.drop(l.state.entries[s].Content)
	return nil
}

// drop removes bytes that nobody waits for. What cannot be removed now is removed by
// the next Open.
func (l *Ledger) drop(sum Hash) {
	if sum != (Hash{}) && l.state.waiting[sum] == 0 && l.kept.holds[sum] == 0 {
		_ = l.disk.remove(l.path(contentDir, sum.String()))
	}
}

// write makes a record durable, then applies it. If anything fails once the disk was
// touched, the ledger is poisoned: what is on disk is not known.
func (l *Ledger) write(r record) error {
	framed, at, err := l.prepare(&r, l.size)
	if err != nil {
		return err
	}
	if err := writeSynced(l.log, framed); err != nil {
		return l.poison(fmt.Errorf("write the ledger's %s record: %w", r.Kind, err))
	}
	l.size += int64(len(framed))
	if err := l.state.apply(r, at); err != nil {
		return l.poison(err)
	}
	if err := l.testify(); err != nil {
		return l.poison(err)
	}
	return nil
}

func (l *Ledger) poison(err error) error {
	l.broken = fmt.Errorf("%w: %w", ErrPoisoned, err)
	return l.broken
}
