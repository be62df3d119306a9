package cuda

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
	"unsafe"
)

// Mailbox is how both programs talk once they share memory: a ring of messages in it, read
// by whoever looks at it all the time, for a step has several and waits for each. Who has
// looked for long sleeps at a pipe, and the other one wakes it with a byte; the pipe's end
// is the other program's.
type Mailbox struct {
	asked, taken, answered *atomic.Uint64
	client, server         *atomic.Uint32 // 1: it sleeps
	fault                  []byte         // length, then text
	slots                  []byte
	want                   uint64 // answers that the client has asked for
	out                    io.Writer
	in                     io.Reader
}

// look is how long somebody looks before it sleeps: longer than a chunk of examples takes.
const look = 2 * time.Millisecond

// NewMailbox lies at the start of the memory that both see; out wakes the other one, and in
// is where one is woken.
func NewMailbox(shared []byte, out io.Writer, in io.Reader) *Mailbox {
	word := func(i int) unsafe.Pointer { return unsafe.Pointer(&shared[64*i]) }
	return &Mailbox{
		asked: (*atomic.Uint64)(word(0)), taken: (*atomic.Uint64)(word(1)), answered: (*atomic.Uint64)(word(2)),
		client: (*atomic.Uint32)(word(3)), server: (*atomic.Uint32)(word(4)),
		fault: shared[headerBytes:][:faultBytes], slots: shared[headerBytes+faultBytes:][:mailSlots*slotBytes],
		out: out, in: in,
	}
}

// until waits for a condition, awake for a while, with rest now and then, so that others run,
// and then, after idle, asleep. Both may be nil.
func (m *Mailbox) until(done func() bool, sleeps *atomic.Uint32, rest, idle func()) error {
	began := time.Time{}
	for i := 0; ; i++ {
		if done() {
			return nil
		}
		if i%256 != 255 {
			continue
		}
		if rest != nil {
			rest()
		}
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) < look {
			continue
		}
		if idle != nil {
			idle()
		}
		sleeps.Store(1)
		if done() && sleeps.CompareAndSwap(1, 0) {
			return nil
		}
		var one [1]byte // if the swap failed, it is on its way
		if _, err := io.ReadFull(m.in, one[:]); err != nil {
			return err
		}
		began = time.Time{}
	}
}

func (m *Mailbox) wake(sleeps *atomic.Uint32) error {
	if sleeps.CompareAndSwap(1, 0) {
		_, err := m.out.Write([]byte{1})
		return err
	}
	return nil
}

// Put sends a message with what belongs to it.
func (m *Mailbox) Put(a Ask, payload []byte, rest func()) error {
	if len(payload) > slotBytes-askBytes {
		return fmt.Errorf("a message of %d bytes; there is room for %d", len(payload), slotBytes-askBytes)
	}
	at := m.asked.Load()
	if err := m.until(func() bool { return at-m.taken.Load() < mailSlots }, m.client, rest, nil); err != nil {
		return err
	}
	slot := m.slots[at%mailSlots*slotBytes:][:slotBytes]
	*(*Ask)(unsafe.Pointer(&slot[0])) = a
	copy(slot[askBytes:], payload)
	if a.answered() {
		m.want++
	}
	m.asked.Store(at + 1)
	return m.wake(m.server)
}

// Answer is what the last message came to: empty if it was done.
func (m *Mailbox) Answer(rest func()) (fault string, err error) {
	if err := m.until(func() bool { return m.answered.Load() >= m.want }, m.client, rest, nil); err != nil {
		return "", err
	}
	n := *(*uint32)(unsafe.Pointer(&m.fault[0]))
	return string(m.fault[4:][:min(int(n), faultBytes-4)]), nil
}

// Slot is room for a message and what belongs to it.
type Slot [slotBytes]byte

// Take waits for the next message. What belongs to it is room's. Done says that nothing is
// read any more of what lies in the shared memory for it. If it has waited for long, it does
// what idle does before it sleeps.
func (m *Mailbox) Take(room *Slot, idle func()) (Ask, []byte, error) {
	at := m.taken.Load()
	if err := m.until(func() bool { return m.asked.Load() > at }, m.server, nil, idle); err != nil {
		return Ask{}, nil, err
	}
	copy(room[:], m.slots[at%mailSlots*slotBytes:][:slotBytes])
	return *(*Ask)(unsafe.Pointer(&room[0])), room[askBytes:], nil
}

// Done ends a message, and answers it if it is one that is answered.
func (m *Mailbox) Done(a Ask, fault string) error {
	if a.answered() {
		n := copy(m.fault[4:], fault)
		*(*uint32)(unsafe.Pointer(&m.fault[0])) = uint32(n)
		m.answered.Add(1)
	}
	m.taken.Add(1)
	return m.wake(m.client)
}

// Idle waits until all messages are done with the shared memory.
func (m *Mailbox) Idle(rest func()) error {
	at := m.asked.Load()
	return m.until(func() bool { return m.taken.Load() == at }, m.client, rest, nil)
}
