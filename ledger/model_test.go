package ledger

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coterie-fl/coterie/dp/event"
)

// simpleSlot is all that the simple model knows of a slot.
type simpleSlot struct {
	kind   int // index of what was released
	status Status
	bytes  string
}

// What sequences release: cost is exact.
var simpleKinds = []struct {
	release event.Release
	cost    *big.Rat
}{
	{metricRelease(4), big.NewRat(1, 2)},
	{metricRelease(8), big.NewRat(1, 4)},
	{metricRelease(16), big.NewRat(1, 8)},
}

var simpleCeiling = big.NewRat(3, 2)

// machine runs a ledger on a disk in memory beside the simple model.
type machine struct {
	disk   *memDisk
	l      *Ledger
	slots  map[Slot]simpleSlot
	last   *SignedReceipt // the highest that the server signed
	broken bool

	old      *memDisk // a copy that somebody kept
	oldSlots map[Slot]simpleSlot
}

func (m *machine) spent() *big.Rat {
	sum := new(big.Rat)
	for _, s := range m.slots {
		sum.Add(sum, simpleKinds[s.kind].cost)
	}
	return sum
}

// start opens the ledger and reconciles it.
func (m *machine) start(t *rapid.T) {
	clear(m.disk.locked)
	l, err := openOn(m.disk, crashPolicy)
	if err == nil {
		err = l.Reconcile(testMember, m.last)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.l, m.broken = l, false
	if m.last == nil {
		return
	}
	// A lost acknowledgement was made good.
	if s := m.slots[m.last.Receipt.Slot]; s.status != Committed {
		s.status = Committed
		m.slots[m.last.Receipt.Slot] = s
	}
}

// breakNext lets one of the next operations of the disk fail, sometimes.
func (m *machine) breakNext(t *rapid.T) {
	m.disk.fault = nil
	if !rapid.Bool().Draw(t, "fault") || !rapid.Bool().Draw(t, "really") {
		return
	}
	at := m.disk.ops + rapid.IntRange(1, 7).Draw(t, "operation")
	f := fault{after: rapid.Bool().Draw(t, "after"), prefix: rapid.IntRange(0, 600).Draw(t, "prefix")}
	m.disk.fault = func(op int, _ string) *fault {
		if op == at {
			return &f
		}
		return nil
	}
}

// step runs an operation on the ledger that the model says has this outcome. If the
// disk failed under it, the ledger must be poisoned, and after a restart the slot is
// as it was, or as it was to become.
func (m *machine) step(t *rapid.T, slot Slot, want error, next simpleSlot, do func() error) {
	if m.broken {
		mustFail(t, do(), ErrPoisoned)
		return
	}
	before, was := m.slots[slot]
	m.breakNext(t)
	err := do()
	m.disk.fault = nil
	switch {
	case errors.Is(err, ErrPoisoned):
		m.broken = true
		m.restart(t)
		e, there := m.l.Entry(slot)
		switch {
		case there && e.Status == next.status && want == nil:
			m.slots[slot] = next
		case there != was || e.Status != m.slots[slot].status:
			t.Fatalf("%s was %v (%v) and became %v (%v) by a failed operation", slot, before, was, e.Status, there)
		}
	case want != nil:
		mustFail(t, err, want)
	case err != nil:
		t.Fatal(err)
	default:
		m.slots[slot] = next
	}
}

// restart is a new process, after a kill or after a power loss.
func (m *machine) restart(t *rapid.T) {
	states := m.disk.survivors()
	if m.broken { // the machine was not switched off: the failed pages are still there
		delete(states, "kill")
		states["same machine"] = m.disk
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(states))).Draw(t, "survivor")
	m.disk = states[name]
	m.start(t)
}

func (m *machine) slot(t *rapid.T) Slot { return slotAt(rapid.IntRange(0, 5).Draw(t, "round")) }

func (m *machine) reserve(t *rapid.T) {
	slot, kind := m.slot(t), rapid.IntRange(0, len(simpleKinds)-1).Draw(t, "kind")
	next := simpleSlot{kind: kind, status: Reserved}
	var want error
	if s, taken := m.slots[slot]; taken {
		next = s
		switch {
		case s.kind != kind:
			want = ErrConflict
		case s.status == Abandoned:
			want = ErrAbandoned
		case s.status != Reserved:
			want = ErrStored
		}
	} else if new(big.Rat).Add(m.spent(), simpleKinds[kind].cost).Cmp(simpleCeiling) > 0 {
		want = ErrRefused
	}
	m.step(t, slot, want, next, func() error { return m.l.Reserve(charge(slot.Round, simpleKinds[kind].release)) })
}

func (m *machine) store(t *rapid.T) {
	slot := m.slot(t)
	bytes := fmt.Sprintf("noise %d", rapid.IntRange(0, 2).Draw(t, "noise"))
	s, taken := m.slots[slot]
	next := s
	var want error
	switch {
	case !taken:
		want = ErrUnknownSlot
	case s.status == Abandoned:
		want = ErrAbandoned
	case s.status == Reserved:
		next.status, next.bytes = Stored, bytes
	case s.bytes != bytes:
		want = ErrConflict
	}
	m.step(t, slot, want, next, func() error { return m.l.Store(slot, []byte(bytes)) })
}

// commit sends, and hands the receipt back, or loses it on the way.
func (m *machine) commit(t *rapid.T) {
	slot := m.slot(t)
	s := m.slots[slot]
	draft, err := m.l.Draft(slot)
	kept := s.status == Committed && m.l.Keeps(slot)
	if s.status != Stored && !kept || m.broken {
		if err == nil {
			t.Fatalf("a draft for a slot that is %q", s.status)
		}
		return
	}
	must(t, err)
	got, err := m.l.Load(slot)
	if err != nil || string(got) != s.bytes {
		t.Fatalf("loaded %q, %v; stored was %q", got, err, s.bytes)
	}
	signed, err := Sign(draft, testKey)
	must(t, err)
	if m.last == nil || m.last.Receipt.Counter < draft.Counter {
		m.last = &signed
	}
	if kept { // a server that was put back to an earlier state signs again: nothing is recorded
		before, records := m.l.Head()
		must(t, m.l.Commit(slot, signed))
		if after, more := m.l.Head(); after != before || more != records {
			t.Fatal("a second receipt for the same bytes changed the ledger")
		}
		return
	}
	if rapid.Bool().Draw(t, "lost") {
		return
	}
	s.status = Committed
	m.step(t, slot, nil, s, func() error { return m.l.Commit(slot, signed) })
}

// forge offers receipts that must not be taken.
func (m *machine) forge(t *rapid.T) {
	slot := m.slot(t)
	if m.last == nil || m.broken {
		return
	}
	forged := *m.last
	forged.Receipt.Slot = slot
	forged.Receipt.Counter++
	if signed, err := Sign(forged.Receipt, testKey); err == nil {
		forged = signed
	}
	if err := m.l.Commit(slot, forged); err == nil {
		t.Fatal("a receipt about something else was taken")
	}
}

func (m *machine) abandon(t *rapid.T) {
	slot := m.slot(t)
	s, taken := m.slots[slot]
	var want error
	switch {
	case !taken:
		want = ErrUnknownSlot
	case s.status != Reserved && s.status != Stored:
		want = ErrConflict
	}
	next := s
	next.status = Abandoned
	m.step(t, slot, want, next, func() error { return m.l.Abandon(slot, "given up") })
}

func (m *machine) keepCopy(*rapid.T) {
	m.old = m.disk.restart(m.disk.names, func(n *inode) []byte { return n.data })
	m.oldSlots = maps.Clone(m.slots)
}

// restoreCopy opens an old copy: it must be recognised if the server knows more.
func (m *machine) restoreCopy(t *rapid.T) {
	if m.old == nil || m.last == nil {
		return
	}
	copied := m.old.restart(m.old.names, func(n *inode) []byte { return n.data })
	l, err := openOn(copied, crashPolicy)
	must(t, err)
	defer l.Close()
	s := m.oldSlots[m.last.Receipt.Slot]
	err = l.Reconcile(testMember, m.last)
	if m.last.Receipt.Content == hashOf(s.bytes) && s.bytes != "" {
		must(t, err)
		return
	}
	mustFail(t, err, ErrRollback)
	mustFail(t, l.Reserve(charge(9, simpleKinds[2].release)), ErrRollback)
}

// agree holds the ledger against the model.
func (m *machine) agree(t *rapid.T) {
	if len(m.l.state.entries) != len(m.slots) || len(m.l.state.order) != len(m.slots) {
		t.Fatalf("%d slots, the model has %d", len(m.l.state.entries), len(m.slots))
	}
	for slot, s := range m.slots {
		e, ok := m.l.Entry(slot)
		if !ok || e.Status != s.status || (s.bytes != "" && e.Content != hashOf(s.bytes)) {
			t.Fatalf("%s: %+v, the model has %+v", slot, e, s)
		}
	}
	if m.l.kept.bytes > m.l.kept.most || m.l.kept.bytes != block*int64(len(m.l.kept.holds)) {
		t.Fatalf("%d bytes in %d files are kept, of %d", m.l.kept.bytes, len(m.l.kept.holds), m.l.kept.most)
	}
	spent, _ := m.spent().Float64()
	b := m.l.state.budgets[metricCeiling.Terms()]
	if got := b.filter.(*metricFilter).spent.Epsilon(); got != spent || m.spent().Cmp(simpleCeiling) > 0 || b.over {
		t.Fatalf("spent %v, the model has %v of %v", got, spent, simpleCeiling)
	}
}

// TestRandomSequences: whatever is done, in whatever order, with disks that fail and
// processes that die, the ledger is what a map and a sum say.
func TestRandomSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{disk: newMemDisk(), slots: map[Slot]simpleSlot{}}
		m.disk.keeps = block * rapid.Int64Range(0, 2).Draw(t, "kept files")
		m.start(t)
		t.Repeat(map[string]func(*rapid.T){
			"":        m.agree,
			"reserve": m.reserve, "reserve more": m.reserve, "store": m.store, "store more": m.store,
			"commit": m.commit, "forge": m.forge, "abandon": m.abandon, "restart": m.restart,
			"keep a copy": m.keepCopy, "restore a copy": m.restoreCopy,
		})
	})
}
