package ledger

import (
	"errors"
	"fmt"
)

// ErrGone: the server has signed for the slot's bytes, and they are not kept any more.
var ErrGone = errors.New("the bytes of this release are no longer kept")

// WithKept keeps the noised bytes of committed releases, up to so many bytes of disk, the
// oldest going first: a server that is restored from its backup asks again for rounds that
// it had signed for, and gets what it had. Nothing is charged and no noise is drawn for it.
// Without this option bytes go when they are committed.
func WithKept(most int64) Option {
	return func(l *Ledger) { l.kept.most = most }
}

// kept are the committed releases whose bytes are on the disk. They are no part of the
// record: what is lost of them is lost to the server, and to nobody else.
type kept struct {
	most  int64
	bytes int64        // of all contents
	order []*Entry     // oldest first
	holds map[Hash]int // entries by content; several may have the same
}

// block is the least that a file takes of a disk.
const block = 4096

func (k *kept) add(e *Entry) {
	if k.holds == nil {
		k.holds = map[Hash]int{}
	}
	e.kept = true
	k.order = append(k.order, e)
	if k.holds[e.Content]++; k.holds[e.Content] == 1 {
		k.bytes += max(e.Size, block)
	}
}

// release lets go of the entries that are told. Their bytes may have other holders.
func (k *kept) release(told func(*Entry) bool) (gone []*Entry) {
	rest := k.order[:0]
	for _, e := range k.order {
		if !told(e) {
			rest = append(rest, e)
			continue
		}
		e.kept = false
		gone = append(gone, e)
		if k.holds[e.Content]--; k.holds[e.Content] == 0 {
			delete(k.holds, e.Content)
			k.bytes -= max(e.Size, block)
		}
	}
	clear(k.order[len(rest):])
	k.order = rest
	return gone
}

// trim lets go of the oldest until there is room for the rest.
func (k *kept) trim() (gone []*Entry) {
	return k.release(func(*Entry) bool { return k.bytes > k.most })
}

// retain keeps the bytes of a release that was just committed, as far as there is room.
func (l *Ledger) retain(e *Entry) {
	l.kept.add(e)
	l.dropAll(l.kept.trim())
}

func (l *Ledger) dropAll(entries []*Entry) {
	for _, e := range entries {
		l.drop(e.Content)
	}
}

// findKept looks which committed releases' bytes are in the folder, by its names.
func (l *Ledger) findKept(names []string) {
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	for _, e := range l.state.order {
		if e.Status == Committed && there[e.Content.String()] {
			l.kept.add(e)
		}
	}
	l.kept.trim() // their files are cleared away with the others
}

// Keeps says whether a committed slot's bytes can be sent again.
func (l *Ledger) Keeps(s Slot) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	e, ok := l.state.entries[s]
	return ok && e.kept
}

// Forget lets go of the bytes that are kept of a run: it has ended, and nobody will ask
// for them again. What was spent stays.
func (l *Ledger) Forget(federation, run string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.broken != nil {
		return // who opens it next has them
	}
	l.dropAll(l.kept.release(func(e *Entry) bool { return e.Slot.Federation == federation && e.Slot.Run == run }))
}

// gone is what is said of a committed slot without bytes, and why.
func gone(s Slot, why error) error {
	if why == nil {
		return fmt.Errorf("%w: %s", ErrGone, s)
	}
	return fmt.Errorf("%w: %s: %w", ErrGone, s, why)
}
