package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/dp/event"
)

// witness is a server that notes everything it is sent.
type witness struct {
	seen     map[Slot]string
	last     *SignedReceipt
	attempts int // noise is drawn afresh in every attempt
}

func (w *witness) receive(s Slot, noised []byte, draft Receipt) (SignedReceipt, error) {
	if before, ok := w.seen[s]; ok && before != string(noised) {
		return SignedReceipt{}, fmt.Errorf("two different releases in one slot: %q and %q", before, noised)
	}
	w.seen[s] = string(noised)
	signed, err := Sign(draft, testKey)
	if err == nil && (w.last == nil || w.last.Receipt.Counter <= draft.Counter) {
		w.last = &signed
	}
	return signed, err
}

const (
	crashRounds  = 4
	crashCeiling = 1.5 // three of four releases fit
)

// crashPolicy has room for three releases of 1/2.
var (
	crashPolicy  = Policy{Ceilings: []Ceiling{{Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimMetric, Epsilon: crashCeiling, EpsilonSwitch: 1000}}}
	crashRelease = metricRelease(4)
)

func fixedClock() time.Time { return time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC) }

func openOn(d disk, p Policy) (*Ledger, error) {
	var options []Option
	if m, ok := d.(*memDisk); ok {
		options = append(options, WithWitness(m.witness), WithKept(m.keeps))
	}
	return open(d, "ledger", fixedClock, func(l *Ledger) ([]record, error) { return l.adopt(p) }, options...)
}

// participate does what a participant does, until all rounds are done or something fails.
func participate(d disk, w *witness) (refused int, err error) {
	l, err := openOn(d, crashPolicy)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	if err := l.Reconcile(testMember, w.last); err != nil {
		return 0, err
	}
	for round := range crashRounds {
		slot := slotAt(round)
		e, _ := l.Entry(slot)
		if e.Status == Committed {
			continue
		}
		if e.Status != Stored {
			err := l.Reserve(charge(round, crashRelease))
			if errors.Is(err, ErrRefused) {
				refused++
				continue
			}
			if err != nil {
				return refused, err
			}
			w.attempts++
			if err := l.Store(slot, fmt.Appendf(nil, "round %d, noise %d", round, w.attempts)); err != nil {
				return refused, err
			}
		}
		bytes, err := l.Load(slot)
		if err != nil {
			return refused, err
		}
		draft, err := l.Draft(slot)
		if err != nil {
			return refused, err
		}
		signed, err := w.receive(slot, bytes, draft)
		if err != nil {
			return refused, fmt.Errorf("VIOLATION: %w", err)
		}
		if err := l.Commit(slot, signed); err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// checkRecorded opens what is left on a disk: everything that the witness saw must
// be in it, once, and within the ceiling.
func checkRecorded(d *memDisk, w *witness) error {
	l, err := openOn(d, crashPolicy)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer l.Close()
	if err := l.Reconcile(testMember, w.last); err != nil {
		return err
	}
	for slot, seen := range w.seen {
		e, ok := l.Entry(slot)
		if !ok || (e.Status != Stored && e.Status != Committed) || e.Content != hashOf(seen) {
			return fmt.Errorf("unrecorded release in %s: %+v", slot, e)
		}
		if d.keeps == 0 || e.Status != Committed {
			continue
		}
		if again, err := l.Load(slot); err != nil || string(again) != seen {
			return fmt.Errorf("%s was sent as %q, and is kept as %q, %w", slot, seen, again, err)
		}
	}
	sum, err := l.Summary()
	if err != nil {
		return err
	}
	spent := float64(sum.Budgets[0].Epsilon)
	if releases := sum.Budgets[0].Releases; releases > crashRounds-1 || spent != 0.5*float64(releases) || spent > crashCeiling {
		return fmt.Errorf("%d releases cost %v of %v", releases, spent, crashCeiling)
	}
	return nil
}

// finish goes on until the run is done, as a restarted participant would.
func finish(d *memDisk, w *witness) error {
	for range 3 {
		refused, err := participate(d, w)
		if errors.Is(err, ErrPoisoned) {
			continue
		}
		if err != nil {
			return err
		}
		if refused != 1 || len(w.seen) != crashRounds-1 {
			return fmt.Errorf("a double charge or an over-spend: %d rounds refused, %d released; want 1 and %d", refused, len(w.seen), crashRounds-1)
		}
		return checkRecorded(d, w)
	}
	return fmt.Errorf("still poisoned after three starts")
}

// surviveCrash runs into a fault at one operation, then into each of the states
// that it may leave, and goes on from there. It returns how many states it tried.
func surviveCrash(op int, f fault, plant func(*memDisk)) (states int, err error) {
	d := newMemDisk()
	plant(d)
	w := &witness{seen: map[Slot]string{}}
	d.fault = func(n int, _ string) *fault {
		if n == op {
			return &f
		}
		return nil
	}
	_, err = participate(d, w)
	if err == nil && op <= d.ops && d.trace[op-1] != "remove" {
		return 0, fmt.Errorf("a failed %s went unnoticed", d.trace[op-1])
	}
	if err != nil && strings.Contains(err.Error(), "VIOLATION") {
		return 0, err
	}
	left := d.survivors()
	names := slices.Sorted(maps.Keys(left))
	for i, name := range names {
		if !*soak && i%4 != op%4 { // another quarter of the states at every operation
			continue
		}
		left := left[name]
		if !f.crash && name == "kill" { // the process starts again on the same machine
			left = d
			clear(d.locked)
		}
		again := &witness{seen: maps.Clone(w.seen), last: w.last, attempts: w.attempts}
		states++
		if err := finish(left, again); err != nil {
			return states, fmt.Errorf("%s: %w", name, err)
		}
		// What was done since must survive a power loss too, also after a failed sync.
		if err := checkRecorded(left.restart(left.durable, func(n *inode) []byte { return n.synced }), again); err != nil {
			return states, fmt.Errorf("%s, then power loss: %w", name, err)
		}
	}
	return states, nil
}

// faults are those to try at an operation. A write can stop after any byte.
func faults(kind string) []fault {
	list := []fault{{crash: true}, {crash: true, after: true}, {}}
	var length int
	if _, err := fmt.Sscanf(kind, "write %d", &length); err != nil {
		return append(list, fault{after: true})
	}
	step := max(1, length/3)
	if *soak {
		step = 5
	}
	for prefix := 1; prefix < length; prefix += step {
		list = append(list, fault{crash: true, prefix: prefix}, fault{prefix: prefix})
	}
	return list
}

// operations are those of an undisturbed run.
func operations(t *testing.T, plant func(*memDisk)) []string {
	d := newMemDisk()
	plant(d)
	w := &witness{seen: map[Slot]string{}}
	if refused, err := participate(d, w); err != nil || refused != 1 {
		t.Fatal(refused, err)
	}
	return d.trace
}

// TestCrashAtEveryOperation: whatever operation fails or is the last one, no release
// is unrecorded, charged twice or above the ceiling.
func TestCrashAtEveryOperation(t *testing.T) {
	for name, sound := range map[string]func(*memDisk){
		"alone":          func(*memDisk) {},
		"with a witness": func(d *memDisk) { d.witness = "elsewhere/witness" },
		"bytes are kept": func(d *memDisk) { d.keeps = 1 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			trace := operations(t, sound)
			states := 0
			for i, kind := range trace {
				for _, f := range faults(kind) {
					n, err := surviveCrash(i+1, f, sound)
					if err != nil {
						t.Fatalf("operation %d (%s), %+v: %v", i+1, kind, f, err)
					}
					states += n
				}
			}
			t.Logf("%d operations, %d states after a fault", len(trace), states)
		})
	}
}

// TestCrashTestNoticesMissingSyncs: the test above can fail.
func TestCrashTestNoticesMissingSyncs(t *testing.T) {
	for name, plant := range map[string]func(*memDisk){
		"no sync of files":   func(d *memDisk) { d.ignoreSync = true },
		"no sync of folders": func(d *memDisk) { d.ignoreSyncDir = true },
	} {
		if !crashShows(t, plant) {
			t.Errorf("%s: no crash showed it", name)
		}
	}
}

func crashShows(t *testing.T, plant func(*memDisk)) bool {
	for i, kind := range operations(t, plant) {
		for _, f := range faults(kind) {
			if _, err := surviveCrash(i+1, f, plant); err != nil {
				return true
			}
		}
	}
	return false
}

// TestCrashTwice: a fault while the ledger recovers from the first one.
func TestCrashTwice(t *testing.T) {
	trace := operations(t, func(*memDisk) {})
	stride := 7
	if *soak {
		stride = 1
	}
	states := 0
	for first := 1; first <= len(trace); first += stride {
		for second := 1; second <= len(trace); second += stride {
			for _, crash := range []bool{true, false} {
				d := newMemDisk()
				w := &witness{seen: map[Slot]string{}}
				at := func(op int) {
					d.fault = func(n int, _ string) *fault {
						if n == op {
							return &fault{crash: crash, prefix: 50}
						}
						return nil
					}
				}
				at(first)
				if _, err := participate(d, w); err != nil && strings.Contains(err.Error(), "VIOLATION") {
					t.Fatal(err)
				}
				if crash {
					d = d.survivors()[slices.Sorted(maps.Keys(d.survivors()))[(first+second)%10]]
				}
				clear(d.locked)
				at(d.ops + second)
				if _, err := participate(d, w); err != nil && strings.Contains(err.Error(), "VIOLATION") {
					t.Fatal(err)
				}
				if crash {
					d = d.survivors()["power, synced only"]
				}
				clear(d.locked)
				d.fault = nil
				if err := finish(d, w); err != nil {
					t.Fatalf("faults at operations %d and %d, crash %v: %v", first, second, crash, err)
				}
				states++
			}
		}
	}
	t.Logf("%d pairs of faults", states)
}
