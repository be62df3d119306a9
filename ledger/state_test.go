package ledger

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

func TestSlotsGoTheirWay(t *testing.T) {
	l := openTest(t, t.TempDir())
	c, s := charge(0, metricRelease(5)), slotAt(0)
	mustFail(t, l.Store(s, noised(0)), ErrUnknownSlot)
	mustFail(t, l.Abandon(s, "never asked"), ErrUnknownSlot)
	_, err := l.Load(s)
	mustFail(t, err, ErrUnknownSlot)

	must(t, l.Reserve(c))
	must(t, l.Reserve(c)) // the same charge
	mustFail(t, l.Reserve(charge(0, metricRelease(6))), ErrConflict)
	other := c
	other.Enforcement = Attested
	mustFail(t, l.Reserve(other), ErrConflict)
	_, err = l.Load(s)
	mustFail(t, err, ErrConflict)
	_, err = l.Draft(s)
	mustFail(t, err, ErrConflict)

	must(t, l.Store(s, noised(0)))
	must(t, l.Store(s, noised(0)))
	mustFail(t, l.Store(s, noised(1)), ErrConflict)
	mustFail(t, l.Reserve(c), ErrStored) // noise must not be drawn again
	got, err := l.Load(s)
	must(t, err)
	if string(got) != string(noised(0)) {
		t.Fatalf("loaded %q", got)
	}

	draft, err := l.Draft(s)
	must(t, err)
	receipt, err := Sign(draft, testKey)
	must(t, err)
	must(t, l.Commit(s, receipt))
	must(t, l.Commit(s, receipt))
	mustFail(t, l.Abandon(s, "too late"), ErrConflict)
	mustFail(t, l.Reserve(c), ErrStored)
	_, err = l.Load(s)
	mustFail(t, err, ErrGone)
	if _, err := os.Stat(l.path(contentDir, hashOf(string(noised(0))).String())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("acknowledged bytes are kept: %v", err)
	}
	sum, err := l.Summary()
	must(t, err)
	if b := sum.Budgets[1]; b.Releases != 1 || b.Committed != 1 || b.Epsilon != 0.4 {
		t.Errorf("spent %+v", b)
	}
}

func TestAbandonedStaysSpent(t *testing.T) {
	l := openTest(t, t.TempDir())
	must(t, l.Reserve(charge(0, metricRelease(5))))
	must(t, l.Store(slotAt(0), noised(0)))
	draft, err := l.Draft(slotAt(0))
	must(t, err)
	must(t, l.Abandon(slotAt(0), "below the minimum"))
	_, err = l.Load(slotAt(0))
	mustFail(t, err, ErrAbandoned)
	mustFail(t, l.Store(slotAt(0), noised(0)), ErrAbandoned)
	mustFail(t, l.Reserve(charge(0, metricRelease(5))), ErrAbandoned)
	sum, err := l.Summary()
	must(t, err)
	if b := sum.Budgets[1]; b.Abandoned != 1 || b.Epsilon != 0.4 {
		t.Errorf("spent %+v", b)
	}
	// The server had it after all: the receipt is the truth.
	receipt, err := Sign(draft, testKey)
	must(t, err)
	must(t, l.Commit(slotAt(0), receipt))
}

func TestSameBytesInTwoSlots(t *testing.T) {
	l := openTest(t, t.TempDir())
	for round := range 2 {
		must(t, l.Reserve(charge(round, metricRelease(5))))
		must(t, l.Store(slotAt(round), []byte("same")))
	}
	must(t, l.Abandon(slotAt(0), "given up"))
	if got, err := l.Load(slotAt(1)); err != nil || string(got) != "same" {
		t.Fatalf("%q, %v", got, err)
	}
}

// TestCeilingsHold fills each kind of ceiling to the brim.
func TestCeilingsHold(t *testing.T) {
	zcdp := exampleCeiling
	zcdp.Filter = FilterZCDP
	far := metricCeiling
	far.Distance = 2 // four radii: at most two releases of 0.4*4
	apart := metricCeiling
	apart.EpsilonSwitch = 30 // 0.8*(2*0.5 + 9) = 8 a release
	wide := metricRelease(5)
	wide.What = event.MetricLaplace{Dimension: 2, NoiseMultiplier: 5, Radius: 0.5, Spread: 9}
	for name, c := range map[string]struct {
		ceiling Ceiling
		one     event.Release
		fit     int // -1: see the filter
	}{
		"metric":             {metricCeiling, metricRelease(5), 10},
		"metric at distance": {far, metricRelease(5), 2},
		"metric at a switch": {apart, wide, 3},
		"renyi":              {exampleCeiling, gaussian(8), -1},
		"zcdp":               {zcdp, gaussian(8), -1},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fit < 0 {
				f, err := newFilter(c.ceiling)
				must(t, err)
				for c.fit = 0; f.Spend(c.one) == nil; c.fit++ {
				}
			}
			dir := t.TempDir()
			fits := 0
			for round := range c.fit + 3 {
				if round%3 == 0 { // what is spent survives
					l, err := Open(dir, Policy{Ceilings: []Ceiling{c.ceiling}})
					must(t, err)
					defer l.Close()
					must(t, l.Reconcile(testMember, nil))
					err = release(l, round, c.one)
					if err == nil {
						fits++
					} else {
						mustFail(t, err, ErrRefused)
					}
					must(t, l.Close())
					continue
				}
				l, err := Open(dir, Policy{Ceilings: []Ceiling{c.ceiling}})
				must(t, err)
				must(t, l.Reconcile(testMember, nil))
				if err := l.Check(c.one); (err == nil) != (fits < c.fit) {
					t.Fatalf("after %d releases Check says %v", fits, err)
				}
				if err = release(l, round, c.one); err == nil {
					fits++
				} else {
					mustFail(t, err, ErrRefused)
				}
				must(t, l.Close())
			}
			if fits != c.fit {
				t.Errorf("%d releases fit, want %d", fits, c.fit)
			}
		})
	}
}

// TestOneCeilingCoversAllFederations: the budget is the dataset's.
func TestOneCeilingCoversAllFederations(t *testing.T) {
	l := openTest(t, t.TempDir())
	second := testMember
	second.Federation = "hospitals"
	must(t, l.Reconcile(second, nil))
	for i := range 10 {
		c := charge(i, metricRelease(5))
		if i%2 == 1 {
			c.Slot.Federation, c.Slot.Run = second.Federation, "other"
		}
		must(t, l.Reserve(c))
	}
	mustFail(t, l.Reserve(charge(10, metricRelease(5))), ErrRefused)
	// A refusal changes nothing: what fits still fits.
	must(t, l.Reserve(charge(10, gaussian(5))))
	sum, err := l.Summary()
	must(t, err)
	if len(sum.Runs) != 3 || sum.Runs[0].Federation != "hospitals" || sum.Runs[0].Epsilon != 2 {
		t.Errorf("runs %+v", sum.Runs)
	}
}

func TestBadCharges(t *testing.T) {
	l := openTest(t, t.TempDir())
	_, before := l.Head()
	deep := event.Event(event.Gaussian{Noise: 1})
	for range 20 {
		deep = event.Repeated{Times: 1, Of: deep}
	}
	bad := map[string]func(*Charge){
		"no plan":        func(c *Charge) { c.Plan = Hash{} },
		"no enforcement": func(c *Charge) { c.Enforcement = "" },
		"no run":         func(c *Charge) { c.Slot.Run = "" },
		"control bytes":  func(c *Charge) { c.Slot.Run = "a\x1b[2J" },
		"long name":      func(c *Charge) { c.Slot.Run = strings.Repeat("a", 1000) },
		"negative round": func(c *Charge) { c.Slot.Round = -1 },
		"no event":       func(c *Charge) { c.Release.What = nil },
		"not a number":   func(c *Charge) { c.Release.What = event.Gaussian{Noise: math.NaN()} },
		"nested deeply":  func(c *Charge) { c.Release.What = deep },
		"wrong sampling": func(c *Charge) {
			c.Release.What = event.Sampled{Sampling: event.WithoutReplacement, Batch: 1, Examples: 10, Of: event.Gaussian{Noise: 100}}
		},
		"huge": func(c *Charge) {
			c.Release.What = event.Composed{Parts: slices.Repeat([]event.Event{event.Gaussian{Noise: 1e9}}, 5000)}
		},
		"stranger": func(c *Charge) { c.Slot.Federation = "unknown" },
	}
	for name, spoil := range bad {
		c := charge(0, gaussian(10))
		spoil(&c)
		if err := l.Reserve(c); err == nil {
			t.Errorf("%s: reserved", name)
		}
	}
	if _, after := l.Head(); after != before {
		t.Errorf("%d records were written", after-before)
	}
	must(t, l.Reserve(charge(0, gaussian(10))))
}

func TestSecondProcessIsLockedOut(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, dir)
	_, err := Open(dir, testPolicy)
	mustFail(t, err, ErrBusy)
	mustFail(t, Amend(dir, metricCeiling, "why not"), ErrBusy)
	r, err := Read(dir) // looking is allowed
	must(t, err)
	if err := r.Reserve(charge(0, metricRelease(5))); err == nil {
		t.Error("reserved on a ledger that was opened for reading")
	}
	must(t, l.Close())
	if err := l.Reserve(charge(0, metricRelease(5))); err == nil {
		t.Error("reserved on a closed ledger")
	}
	openTest(t, dir)
}

// TestConcurrentReserves: many goroutines never spend more than there is.
func TestConcurrentReserves(t *testing.T) {
	d := newMemDisk()
	var mutex sync.Mutex // the disk in memory is for one user at a time, and the ledger sees to it
	l, err := openOn(d, testPolicy)
	must(t, err)
	must(t, l.Reconcile(testMember, nil))
	paid := 0
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for i := range 50 {
				round := (worker*50 + i) % 400 // every slot is asked for by several
				err := release(l, round, metricRelease(5))
				switch {
				case err == nil:
					mutex.Lock()
					paid++
					mutex.Unlock()
				case !errors.Is(err, ErrRefused) && !errors.Is(err, ErrStored) && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrGone):
					t.Errorf("round %d: %v", round, err)
				}
				_, _ = l.Summary()
			}
		})
	}
	all.Wait()
	sum, err := l.Summary()
	must(t, err)
	if b := sum.Budgets[1]; b.Releases != 10 || b.Epsilon > 4 || b.Used > 1 || paid < 10 {
		t.Errorf("%d paid, %+v", paid, b)
	}
}

// TestSpentAgreesWithAccountants holds the summary against a fresh accountant.
func TestSpentAgreesWithAccountants(t *testing.T) {
	l := openTest(t, t.TempDir())
	rdp, err := account.NewRDP(exampleCeiling.Terms().Terms, account.WithExactNoise())
	must(t, err)
	for i := range 4 {
		r := gaussian(8)
		r.What = event.Repeated{Times: int64(i + 1), Of: event.Sampled{Sampling: event.Poisson, Rate: 0.1, Of: event.Gaussian{Noise: 1 + float64(i)}}}
		must(t, release(l, i, r))
		must(t, rdp.Compose(r))
	}
	want, err := rdp.Guarantee(1e-5)
	must(t, err)
	sum, err := l.Summary()
	must(t, err)
	got := sum.Budgets[0]
	e, _ := l.Entry(slotAt(3))
	if float64(got.Epsilon) != want.Epsilon || got.Delta != 1e-5 || e.Receipt.Receipt.Spent.Epsilon != got.Epsilon {
		t.Errorf("epsilon %v, receipt %v, want %v", got.Epsilon, e.Receipt.Receipt.Spent.Epsilon, want.Epsilon)
	}
	if got.Used <= 0 || got.Used > 1 {
		t.Errorf("used %v", got.Used)
	}
	if _, err := json.Marshal(sum); err != nil {
		t.Error(err)
	}
}
