package ledger

import (
	"bytes"
	"errors"
	"fmt"
)

// Reconcile must be called for a federation after Open, before Reserve. last is the
// receipt with the highest counter that the server holds of this participant, nil if
// it has none: a ledger that does not contain it fails with ErrRollback, and makes no
// release until it is opened again. The first time, the server's key is pinned;
// another key or name is ErrStranger from then on. If last is about a slot whose
// acknowledgement was lost, the slot is committed.
func (l *Ledger) Reconcile(m Membership, last *SignedReceipt) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.broken != nil {
		return l.broken
	}
	pinned, known := l.state.members[m.Federation]
	if known && pinned != m {
		return fmt.Errorf("%w: federation %q is known with participant %q and key %s, not with %q and %s",
			ErrStranger, m.Federation, pinned.Participant, pinned.Key, m.Participant, m.Key)
	}
	if last != nil {
		if err := l.contains(m, *last); err != nil {
			if errors.Is(err, ErrRollback) {
				l.broken = err
			}
			return err
		}
	}
	if !known {
		if err := l.write(record{Kind: kindMember, Membership: &m}); err != nil {
			return err
		}
	}
	if last != nil && l.state.entries[last.Receipt.Slot].Status != Committed {
		if err := l.commit(last.Receipt.Slot, *last); err != nil {
			return err
		}
	}
	l.known[m.Federation] = true
	return nil
}

// Contains checks that a receipt is about a release of this ledger, and signed with
// the key that the ledger knows: ErrRollback if the release is not there.
func (l *Ledger) Contains(r SignedReceipt) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	m, known := l.state.members[r.Receipt.Federation]
	if !known {
		return fmt.Errorf("%w: it takes no part in federation %q", ErrStranger, r.Receipt.Federation)
	}
	return l.contains(m, r)
}

func (l *Ledger) contains(m Membership, last SignedReceipt) error {
	if err := last.Verify(); err != nil {
		return err
	}
	r := last.Receipt
	ours := last.Key == m.Key || l.state.generation(m.Federation, last.Key) >= 0
	if !ours || r.Federation != m.Federation || r.Participant != m.Participant {
		return fmt.Errorf("%w: it is about participant %q of federation %q with key %s, not %q of %q with %s",
			ErrReceipt, r.Participant, r.Federation, last.Key, m.Participant, m.Federation, m.Key)
	}
	if e, ok := l.state.entries[r.Slot]; ok && e.draft != nil {
		if err := l.state.checkSigner(e, last.Key); err != nil {
			return err
		}
		ours, err := e.draft.Canonical()
		if err != nil {
			return err
		}
		if theirs, err := r.Canonical(); err == nil && bytes.Equal(ours, theirs) {
			return nil
		}
	}
	return fmt.Errorf("%w: the server signed for release %d, %s, with head %s; this ledger has %d releases of the federation and not that one: put the newest copy of %s back",
		ErrRollback, r.Counter, r.Slot, r.Head, l.state.counters[m.Federation], l.path(logFile))
}
