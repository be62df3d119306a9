package ledger

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Why an operation fails. Whatever the reason, nothing may be sent that was not
// reserved and stored without an error.
var (
	// ErrRefused: a ceiling would be exceeded, or no ceiling covers the release.
	ErrRefused = errors.New("refused by the privacy ledger")
	// ErrBusy: another process holds the ledger.
	ErrBusy = errors.New("another process holds this ledger")
	// ErrCorrupt: the ledger is not what was written. Nothing is released from it.
	ErrCorrupt = errors.New("the ledger is damaged")
	// ErrPoisoned: an earlier write failed; what is on disk is known again after
	// the ledger is opened anew.
	ErrPoisoned = errors.New("the ledger must be opened again after a failed write")
	// ErrRollback: a server's receipt or the ledger's witness knows something that this
	// ledger does not contain: an old copy was restored, or the ledger is another one.
	ErrRollback = errors.New("the ledger is older than what was seen of it")
	// ErrPolicy: a ceiling differs from the one that releases were already made under.
	ErrPolicy = errors.New("a ceiling is fixed once something was released under it")
	// ErrConflict: the slot holds another release, or other bytes.
	ErrConflict = errors.New("the slot is taken by something else")
	// ErrStored: the slot's noised bytes exist already: Load them and send those.
	ErrStored = errors.New("the slot's release exists already: send the stored bytes again")
	// ErrUnknownSlot: nothing was reserved for the slot.
	ErrUnknownSlot = errors.New("nothing is reserved for this slot")
	// ErrAbandoned: the slot was given up; it stays spent and is never sent.
	ErrAbandoned = errors.New("the slot was abandoned")
	// ErrStranger: the federation was not reconciled since the ledger was opened, or
	// is not the one that the ledger knows by this name.
	ErrStranger = errors.New("the federation is not reconciled with this ledger")
	// ErrReceipt: a receipt is malformed, wrongly signed or about something else.
	ErrReceipt = errors.New("not a valid receipt")
)

// Ledger is one dataset's record, locked against other processes. It serves many
// runs and federations; one ceiling covers all of them. It is safe for concurrent
// use.
type Ledger struct {
	mutex   sync.Mutex
	dir     string
	disk    disk
	lock    io.Closer
	log     file
	size    int64 // of the log
	broken  error // why nothing can be released any more
	now     func() time.Time
	state   state
	allowed map[Terms]bool  // by the policy of this Open
	known   map[string]bool // federations reconciled since Open
	torn    int64           // bytes behind the last whole record, as they were read
	kept    kept            // bytes of committed releases

	witness   string     // path of the file that sees every record; empty: none
	testified *testimony // what it had seen before the log was read
	met       bool       // the log has it
}

// Head is the last record's hash, and the number of records.
func (l *Ledger) Head() (head Hash, records int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.state.head, l.state.records
}

// Entries are all slots, as they were reserved.
func (l *Ledger) Entries() []Entry {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	all := make([]Entry, len(l.state.order))
	for i, e := range l.state.order {
		all[i] = *e
	}
	return all
}

// Member is how the dataset takes part in a federation, if it does.
func (l *Ledger) Member(federation string) (Membership, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	m, ok := l.state.members[federation]
	return m, ok
}

// Summary is what was spent, by terms and by run.
func (l *Ledger) Summary() (Summary, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	sum, err := l.state.summary()
	sum.Torn = l.torn
	return sum, err
}

// Witnessed says that the ledger's witness was heard and has seen nothing that the
// ledger does not contain.
func (l *Ledger) Witnessed() bool { return l.met }
