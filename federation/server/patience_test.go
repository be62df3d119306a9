package server

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// moody is a store whose calls fail twice before they succeed: once without having
// been made, and once when they were made and the answer was lost.
type moody struct {
	store.Store
	mu   sync.Mutex
	made map[string]int
}

var errMoody = errors.New("connection reset by peer")

// mood makes a call, or not, and says how it went.
func (m *moody) mood(call string, make func() error) error {
	m.mu.Lock()
	m.made[call]++
	n := m.made[call]
	m.mu.Unlock()
	if n == 1 {
		return errMoody
	}
	if err := make(); err != nil || n > 2 {
		return err
	}
	return errMoody
}

func (m *moody) OpenRound(ctx context.Context, r store.Round) error {
	return m.mood(fmt.Sprint("open ", r.Number), func() error { return m.Store.OpenRound(ctx, r) })
}

func (m *moody) CloseRound(ctx context.Context, run string, number int, state []byte, at time.Time) error {
	return m.mood(fmt.Sprint("close ", number), func() error { return m.Store.CloseRound(ctx, run, number, state, at) })
}

func (m *moody) AbandonRound(ctx context.Context, run string, number int, reason string, at time.Time) error {
	return m.mood(fmt.Sprint("abandon ", number), func() error { return m.Store.AbandonRound(ctx, run, number, reason, at) })
}

func (m *moody) SetRunStatus(ctx context.Context, id string, status store.RunStatus, detail string) error {
	return m.mood("end", func() error { return m.Store.SetRunStatus(ctx, id, status, detail) })
}

func (m *moody) OpenUpdate(ctx context.Context, run string, round, participant int) (b store.Blob, err error) {
	err = m.mood(fmt.Sprint("read ", round, participant), func() error { b, err = m.Store.OpenUpdate(ctx, run, round, participant); return err })
	return b, err
}

func (m *moody) SmallUpdates(ctx context.Context, run string, round, after, most int) (all []store.Small, err error) {
	err = m.mood(fmt.Sprint("read small ", round, after), func() error {
		all, err = m.Store.SmallUpdates(ctx, run, round, after, most)
		return err
	})
	return all, err
}

func (m *moody) Accept(ctx context.Context, u store.Update, content []byte, receipt *store.Receipt) (repeated bool, err error) {
	err = m.mood(fmt.Sprint("accept ", u.Round, u.Participant), func() error {
		repeated, err = m.Store.Accept(ctx, u, content, receipt)
		return err
	})
	return repeated, err
}

func (m *moody) Upload(ctx context.Context, u store.Update) (store.Upload, error) {
	up, err := m.Store.Upload(ctx, u)
	return moodyUpload{up, m, u}, err
}

type moodyUpload struct {
	store.Upload
	m *moody
	u store.Update
}

func (u moodyUpload) Commit(ctx context.Context, receipt *store.Receipt) (repeated bool, err error) {
	err = u.m.mood(fmt.Sprint("commit ", u.u.Round, u.u.Participant), func() error { repeated, err = u.Upload.Commit(ctx, receipt); return err })
	return repeated, err
}

// shortRun has two rounds.
func shortRun(p *plan.Plan) {
	p.RunFile = strings.Replace(federationtest.Run, "rounds: 5", "rounds: 2", 1)
	p.DeadlineSeconds = 600
}

// playTwoRounds makes all releases of a short run, trying again as a participant does.
func playTwoRounds(b *bench) *Finished {
	b.t.Helper()
	for round := range int64(2) {
		for i, name := range federationtest.Names {
			if w := b.work(name); int64(w.Round) != round {
				b.t.Fatalf("%s is asked for round %d, want %d", name, w.Round+1, round+1)
			}
			var err error
			for range 3 {
				if _, err = b.send(name, round, float64(i), float64(round)); !errors.Is(err, errMoody) {
					break
				}
			}
			if err != nil {
				b.t.Fatalf("%s, round %d: %v", name, round+1, err)
			}
		}
	}
	_, f, err := b.c.next(b.t.Context(), "north", b.plan.Run, b.c.sum[:], 10*time.Second)
	if err != nil || f == nil {
		b.t.Fatalf("the run does not end: %v", err)
	}
	return f
}

// TestStoreThatFailsForAWhile: every call that writes fails twice, once before and once
// after it was recorded. Nothing is lost and nothing is done twice: the models are
// those of a run that was not disturbed.
func TestStoreThatFailsForAWhile(t *testing.T) {
	want := playTwoRounds(newBench(t, shortRun))
	for name, c := range map[string]struct {
		small    int64
		enclosed bool
		calls    []string // that must have failed
	}{
		"large releases":               {small: -1, calls: []string{"read 0 0", "commit 1 2"}},
		"small ones":                   {calls: []string{"read small 0 -1", "accept 1 2"}},
		"small ones with their offers": {enclosed: true, calls: []string{"read small 0 -1", "accept 1 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(p *plan.Plan) { shortRun(p); p.Run = "idle" })
			b.stop()
			b.plan.Run, b.small, b.enclosed = "r", c.small, c.enclosed
			good, m := b.store, &moody{Store: b.store, made: map[string]int{}}
			b.store = m
			b.begin()
			got := playTwoRounds(b)
			if got.ModelSHA256 != want.ModelSHA256 || got.Rounds != 2 || got.Abandoned != 0 {
				t.Errorf("%d rounds, %d abandoned, model %.8s; want 2, 0 and %.8s", got.Rounds, got.Abandoned, got.ModelSHA256, want.ModelSHA256)
			}
			receipts, err := good.Receipts(t.Context(), b.plan.Run)
			if err != nil || len(receipts) != 6 {
				t.Errorf("%d receipts (%v), want 6", len(receipts), err)
			}
			for _, call := range append([]string{"open 0", "open 1", "close 0", "close 1", "end"}, c.calls...) {
				if m.made[call] < 3 {
					t.Errorf("%q was tried %d times: it did not fail", call, m.made[call])
				}
			}
		})
	}
}

// TestAbandonedOnceByAMoodyStore: the same for a round that is given up.
func TestAbandonedOnceByAMoodyStore(t *testing.T) {
	b := newBench(t, func(p *plan.Plan) { p.Run = "idle" })
	b.stop()
	b.plan.Run, b.plan.DeadlineSeconds = "r", 0.2
	m := &moody{Store: b.store, made: map[string]int{}}
	b.store = m
	b.begin()
	for w := b.work("north"); w.Round == 0; w = b.work("north") {
		time.Sleep(10 * time.Millisecond) // until the deadline
	}
	if r, err := m.Round(t.Context(), b.plan.Run, 0); err != nil || r.Status != store.RoundAbandoned || m.made["abandon 0"] != 3 {
		t.Errorf("round 1 is %q (%v) after %d attempts; want abandoned after 3", r.Status, err, m.made["abandon 0"])
	}
}

// TestAnotherServersWordStands: what a store holds when an attempt is repeated must be
// what was wanted; another server's round or state is not taken for one's own.
func TestAnotherServersWordStands(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	b.stop()
	ctx := t.Context()
	p := patient{b.store, federationtest.Quiet(), time.Minute}
	failing := 0
	lost := patient{failsFirst{b.store, &failing}, federationtest.Quiet(), time.Minute}
	if err := lost.CloseRound(ctx, b.plan.Run, 0, []byte("mine"), time.Now()); err != nil {
		t.Errorf("a close that had failed: %v", err)
	}
	failing = 0
	if err := lost.CloseRound(ctx, b.plan.Run, 0, []byte("another's"), time.Now()); !errors.Is(err, store.ErrRoundClosed) {
		t.Errorf("a round that another state closed: %v; want %v", err, store.ErrRoundClosed)
	}
	failing = 0
	if err := lost.AbandonRound(ctx, b.plan.Run, 0, "why", time.Now()); !errors.Is(err, store.ErrRoundClosed) {
		t.Errorf("abandoning a round that was closed: %v; want %v", err, store.ErrRoundClosed)
	}
	r := store.Round{Run: b.plan.Run, Number: 1, Clients: []int{0, 1}, Sampler: []byte("drawn")}
	if err := p.OpenRound(ctx, r); err != nil {
		t.Fatal(err)
	}
	for _, other := range []store.Round{
		{Run: r.Run, Number: 1, Clients: []int{0, 2}, Sampler: r.Sampler}, {Run: r.Run, Number: 1, Clients: r.Clients, Sampler: []byte("other")},
	} {
		failing = 0
		if err := lost.OpenRound(ctx, other); !errors.Is(err, store.ErrExists) {
			t.Errorf("opening a round with other participants or another draw: %v; want %v", err, store.ErrExists)
		}
	}
	if err := p.OpenRound(ctx, r); !errors.Is(err, store.ErrExists) {
		t.Errorf("opening a round for the first time, and it is there: %v; want %v", err, store.ErrExists)
	}
}

// failsFirst fails before its first call.
type failsFirst struct {
	store.Store
	calls *int
}

func (f failsFirst) first() error {
	if *f.calls++; *f.calls == 1 {
		return errMoody
	}
	return nil
}

func (f failsFirst) OpenRound(ctx context.Context, r store.Round) error {
	if err := f.first(); err != nil {
		return err
	}
	return f.Store.OpenRound(ctx, r)
}

func (f failsFirst) CloseRound(ctx context.Context, run string, number int, state []byte, at time.Time) error {
	if err := f.first(); err != nil {
		return err
	}
	return f.Store.CloseRound(ctx, run, number, state, at)
}

func (f failsFirst) AbandonRound(ctx context.Context, run string, number int, reason string, at time.Time) error {
	if err := f.first(); err != nil {
		return err
	}
	return f.Store.AbandonRound(ctx, run, number, reason, at)
}

// TestPatienceEnds: a store that stays away ends the server, with a word, and what was
// recorded is there when it is started again. Damage is not waited for.
func TestPatienceEnds(t *testing.T) {
	var words bytes.Buffer
	p := patient{nil, slog.New(slog.NewTextHandler(&words, nil)), 400 * time.Millisecond}
	tries := 0
	err := p.again(t.Context(), "open a round", func(repeated bool) error {
		if tries++; repeated != (tries > 1) {
			t.Errorf("attempt %d is told repeated: %v", tries, repeated)
		}
		return errMoody
	})
	if !errors.Is(err, errMoody) || !strings.Contains(err.Error(), "start the server again") || tries != 3 { // at 0, 0.1 and 0.3 s
		t.Errorf("after %d attempts: %v; want 3 and a word on what to do", tries, err)
	}
	if lines := strings.Count(words.String(), "trying again"); lines != 2 {
		t.Errorf("%d lines tell of 2 repetitions", lines)
	}
	for _, known := range []error{store.ErrSuperseded, store.ErrDamaged, store.ErrRoundClosed} {
		tries = 0
		if err := p.again(t.Context(), "x", func(bool) error { tries++; return known }); !errors.Is(err, known) || tries != 1 {
			t.Errorf("%v: %v after %d attempts, want it after one", known, err, tries)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = p.again(ctx, "x", func(bool) error { cancel(); return errMoody })
	if !errors.Is(err, transfer.ErrInterrupted) {
		t.Errorf("a server that is stopped meanwhile: %v; want %v", err, transfer.ErrInterrupted)
	}
}

// unlocking ends a lock when the server says that it tries again.
type unlocking struct{ free func() }

func (u unlocking) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "trying again") {
		u.free()
	}
	return len(line), nil
}

// TestLockedFileIsWaitedFor: another program, a backup say, locks the SQLite file for
// longer than SQLite itself waits, which is 10 seconds: a soak.
func TestLockedFileIsWaitedFor(t *testing.T) {
	if !*federationtest.Soak {
		t.Skip("only with -soak: it takes 10 seconds")
	}
	b := newBench(t, nil)
	b.work("north")
	b.stop()
	other, err := sql.Open("sqlite", "file:"+filepath.Join(b.dir, "state.db")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var lock *sql.Tx
	freed := 0
	b.log = slog.New(slog.NewTextHandler(unlocking{func() { freed++; _ = lock.Rollback() }}, nil))
	b.begin()
	b.mustSend("north", 0, 1, 2)
	b.mustSend("south", 0, 1, 2)
	if lock, err = other.BeginTx(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1) // west's decline is recorded by the loop
	b.c.presence.leaves(2)
	b.c.progress.ring()
	go func() {
		w, _, err := b.c.next(t.Context(), "north", b.plan.Run, b.c.sum[:], time.Minute)
		if err == nil && (w == nil || w.Round != 1) {
			err = fmt.Errorf("north gets %+v, want round 2", w)
		}
		left <- err
	}()
	if err := <-left; err != nil {
		t.Error(err)
	}
	b.stop()
	if freed == 0 {
		t.Error("the lock was not noticed")
	}
}
