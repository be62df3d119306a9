package federation_test

import (
	"context"
	"crypto/ed25519"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

var (
	oneSeed = flag.Int64("simulation-seed", -1, "run the simulation from this seed on")
	seeds   = flag.Int("simulation-seeds", 0, "how many seeds to run; 0: 1 from a given seed, otherwise the default")
)

func newWorld(t *testing.T, seed uint64, members, rounds int) *world {
	var key [ed25519.SeedSize]byte
	key[0] = byte(seed)
	return &world{
		t: t, seed: seed, dir: ramDisk(t), members: members, rounds: rounds, size: members,
		store: func(s store.Store) store.Store { return s }, ledger: func(l *ledger.Ledger) participant.Ledger { return l },
		signer: ed25519.NewKeyFromSeed(key[:]), net: &network{faulty: true},
		states: map[int][]byte{}, sent: map[sentSlot][32]byte{},
	}
}

// run lets the federation live in made-up time, and then looks at what is left.
func (w *world) run() {
	synctest.Test(w.t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 7*24*time.Hour)
		defer cancel()
		serving, stop := context.WithCancel(ctx)
		served := make(chan error, 1)
		go func() { served <- w.serve(serving) }()
		var all sync.WaitGroup
		for i := range w.members {
			all.Go(func() {
				if err := w.member(ctx, i); err != nil {
					w.complain("%s ended with: %v", w.name(i), err)
				}
			})
		}
		all.Wait()
		w.net.copies.Wait()
		stop()
		if err := <-served; err != nil && w.finished == nil {
			w.complain("the server ended with: %v", err)
		}
		t.Logf("seed %d: %v of made-up time, %d faults, %d crashes, %d rounds closed",
			w.seed, time.Since(began).Round(time.Second), w.net.faults, w.crashes, len(w.states))
	})
	w.inspect()
}

// report fails the test with everything that went wrong.
func (w *world) report() {
	for _, a := range w.anomalies {
		w.t.Errorf("seed %d: %s (again: -run %s -simulation-seed %d)", w.seed, a, w.t.Name(), w.seed)
	}
}

// inspect holds states, store and ledgers against each other.
func (w *world) inspect() {
	ctx := context.Background()
	if w.finished == nil {
		w.complain("the run did not finish")
		return
	}
	s, err := w.openStore(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	run := w.plan().Run
	if cheats, err := s.Equivocations(ctx, run); err != nil || len(cheats) > 0 {
		w.complain("equivocations %v, %v", cheats, err)
	}
	books := make([]*ledger.Ledger, w.members)
	for i := range books {
		if books[i], err = ledger.Read(filepath.Join(w.dir, w.name(i))); err != nil {
			w.t.Fatal(err)
		}
	}
	rounds, err := s.Rounds(ctx, run)
	if err != nil || len(rounds) != w.rounds {
		w.complain("%d rounds are recorded, %v", len(rounds), err)
	}
	for _, r := range rounds {
		answers, err := s.Answers(ctx, run, r.Number)
		if err != nil {
			w.t.Fatal(err)
		}
		in := w.contributors(r)
		answered := map[int]store.Answer{}
		for _, a := range answers {
			answered[a.Participant] = a
		}
		for i, book := range books {
			e, known := book.Entry(ledger.Slot{Federation: "simulated", Run: run, Round: r.Number})
			a, asked := answered[i]
			w.judge(r, i, in[i], asked && a.Kind == store.Released, a.SHA256, e, known)
		}
	}
}

// contributors are those whose release is in the state after a round.
func (w *world) contributors(r store.Round) map[int]bool {
	in := map[int]bool{}
	raw, closed := w.states[r.Number]
	if closed != (r.Status == store.RoundClosed) {
		w.complain("round %d is %s, and its state was recorded: %v", r.Number, r.Status, closed)
	}
	if !closed {
		return in
	}
	var state fl.State
	if err := transfer.DecodeGob(raw, &state); err != nil {
		w.complain("the state after round %d: %v", r.Number, err)
		return in
	}
	for i, v := range state.Hypotheses {
		if v != 0 {
			in[i] = true
		}
	}
	for i := range in {
		// The mean of unit vectors times round+1: anybody counted twice would stand out.
		if want := float64(r.Number+1) / float64(len(in)); i >= w.members || math.Abs(state.Hypotheses[i]-want) > 1e-9*want {
			w.complain("round %d: value %d is %v, with %d contributors it should be %v", r.Number, i, state.Hypotheses[i], len(in), want)
		}
	}
	return in
}

// judge is the law about one release.
func (w *world) judge(r store.Round, i int, counted, accepted bool, sum [32]byte, e ledger.Entry, known bool) {
	who := fmt.Sprintf("round %d (%s), %s, ledger %q", r.Number, r.Status, w.name(i), e.Status)
	_, left := w.sent[sentSlot{i, r.Number}]
	switch {
	case counted != (accepted && r.Status == store.RoundClosed):
		w.complain("%s: counted %v, but accepted %v", who, counted, accepted)
	case accepted && (!known || e.Status != ledger.Committed):
		w.complain("%s: it was accepted", who) // every participant lived to hear of it
	case accepted && [32]byte(e.Content) != sum:
		w.complain("%s: other bytes were accepted", who)
	case !accepted && known && e.Status == ledger.Committed:
		w.complain("%s: signed for, but not accepted", who)
	case left && (!known || e.Status == ledger.Reserved):
		w.complain("%s: it left unrecorded", who)
	case known && e.Status == ledger.Stored:
		w.complain("%s: nobody asked what became of it", who)
	}
}

// simulate runs one seed. Now and then a release is so large that it travels in two
// parts.
func simulate(t *testing.T, seed uint64) *world {
	// Members that wake each other across threads cost twice the time.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := newWorld(t, seed, 20, 30)
	if seed%50 == 7 {
		w = newWorld(t, seed, 8, 12)
		w.size = transfer.PartBytes/8 + 1000
	}
	w.run()
	w.report()
	os.RemoveAll(w.dir)
	return w
}

// TestSimulatedFederation: no update is lost or counted twice, nothing hangs, and
// every release that left is in a ledger, whatever the network does.
func TestSimulatedFederation(t *testing.T) {
	first, count := uint64(0), 20
	if *federationtest.Soak {
		count = 2000
	}
	if *oneSeed >= 0 {
		first, count = uint64(*oneSeed), 1
	}
	if *seeds > 0 {
		count = *seeds
	}
	var faults, crashes, abandoned int
	for seed := first; seed < first+uint64(count); seed++ {
		w := simulate(t, seed)
		if t.Failed() {
			t.Fatalf("stopped at seed %d", seed)
		}
		faults, crashes, abandoned = faults+w.net.faults, crashes+w.crashes, abandoned+w.rounds-len(w.states)
	}
	t.Logf("%d seeds: %d faults, %d crashes, %d rounds abandoned", count, faults, crashes, abandoned)
	if count > 4 && (abandoned == 0 || crashes < count || faults < 100*count) {
		t.Error("the network was too kind to show anything")
	}
}

// TestServerRestartsBetweenOfferAndUpload: a server that forgot an offer is offered
// the release again.
func TestServerRestartsBetweenOfferAndUpload(t *testing.T) {
	w := newWorld(t, 5, 3, 4) // a seed whose rounds wait for everybody
	w.net.faulty = false
	var done atomic.Bool
	w.afterOffer = func(round int) {
		if round != 1 || done.Swap(true) {
			return
		}
		w.mu.Lock()
		w.kill()
		w.mu.Unlock()
		time.Sleep(90 * time.Second) // it is back by then
	}
	w.run()
	w.report()
	if w.crashes != 1 || len(w.states) != 4 {
		t.Errorf("%d crashes, %d rounds closed", w.crashes, len(w.states))
	}
}
