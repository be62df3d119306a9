package server

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// TestReleasesWithTheirOffers: one call brings a small release in; again it brings the same
// receipt, and other bytes are refused and recorded.
func TestReleasesWithTheirOffers(t *testing.T) {
	b := newBench(t, nil)
	b.enclosed = true
	b.work("north")
	ctx := t.Context()
	good, raw := b.offer("north", 0, 1, 2)
	with := func(release []byte) error {
		o := good
		o.Release = release
		_, err := b.c.offer(ctx, "north", o)
		return err
	}
	for name, release := range map[string][]byte{
		"fewer":  raw[:8],
		"more":   append(bytes.Clone(raw), raw...),
		"odd":    raw[:13],
		"others": transfer.AppendVector(nil, []float64{1, 3}),
	} {
		if err := with(release); transfer.ReasonOf(err) != transfer.ReasonMalformed {
			t.Errorf("%s: %v; want malformed", name, err)
		}
	}
	for name, value := range map[string]float64{"endless": math.Inf(1), "no number": math.NaN(), "too much": 1e300} {
		o, raw := b.offer("north", 0, 1, value) // announced as what it is
		o.Release = raw
		if _, err := b.c.offer(ctx, "north", o); transfer.ReasonOf(err) != transfer.ReasonMalformed {
			t.Errorf("%s: %v; want malformed", name, err)
		}
	}
	if a, err := b.store.Answer(ctx, b.plan.Run, 0, 0); err != nil || a.Kind != store.Waiting {
		t.Fatalf("after what was refused: %+v, %v", a, err)
	}
	first := b.mustSend("north", 0, 1, 2)
	if len(first) == 0 {
		t.Fatal("no receipt")
	}
	if again := b.mustSend("north", 0, 1, 2); !bytes.Equal(first, again) {
		t.Errorf("receipts differ:\n%s\n%s", first, again)
	}
	b.enclosed = false // as one of before would ask
	if again := b.mustSend("north", 0, 1, 2); !bytes.Equal(first, again) {
		t.Errorf("receipts differ:\n%s\n%s", first, again)
	}
	b.enclosed = true
	_, err := b.send("north", 0, 1, 5)
	b.wantReason(err, transfer.ReasonEquivocation)
	if found, err := b.store.Equivocations(ctx, b.plan.Run); err != nil || len(found) != 1 {
		t.Errorf("%d equivocations, %v", len(found), err)
	}
	_, err = b.c.offer(ctx, "nobody", good)
	b.wantReason(err, transfer.ReasonForeign)
}

// slow is a store that takes small releases when it is told to.
type slow struct {
	store.Store
	begun chan struct{}
	goOn  chan struct{}
}

func (s slow) Accept(ctx context.Context, u store.Update, content []byte, r *store.Receipt) (bool, error) {
	s.begun <- struct{}{}
	<-s.goOn
	return s.Store.Accept(ctx, u, content, r)
}

// TestNobodyIsAnsweredEarly: while the store records a release, its sender has no receipt,
// a copy of it is told to wait, and the round does not close without it.
func TestNobodyIsAnsweredEarly(t *testing.T) {
	b := newBench(t, func(p *plan.Plan) { shortRun(p); p.Run = "idle"; p.Quorum = 3 })
	b.stop()
	s := slow{b.store, make(chan struct{}), make(chan struct{})}
	b.plan.Run, b.enclosed, b.store = "r", true, s
	b.begin()
	b.work("north")
	var all sync.WaitGroup
	receipts := make(chan []byte, 1)
	all.Go(func() { receipts <- b.mustSend("north", 0, 1, 2) })
	<-s.begun
	goOn := sync.OnceFunc(func() { close(s.goOn) })
	t.Cleanup(goOn) // before the bench is stopped
	o, raw := b.offer("north", 0, 1, 2)
	o.Release = raw
	told := make(chan error, 1)
	go func() {
		_, err := b.c.offer(t.Context(), "north", o)
		told <- err
	}()
	select {
	case err := <-told:
		b.wantReason(err, transfer.ReasonBusy)
	case <-s.begun:
		t.Error("a copy is recorded beside the first")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	select {
	case <-receipts:
		t.Error("a receipt before the release was recorded")
	case <-ctx.Done():
	}
	if waiting, released, _ := b.c.round.tally(); waiting != 3 || released != 0 {
		t.Errorf("%d are waited for, %d have released", waiting, released)
	}
	goOn()
	if len(<-receipts) == 0 {
		t.Error("no receipt")
	}
	all.Wait()
	if waiting, released, _ := b.c.round.tally(); waiting != 2 || released != 1 {
		t.Errorf("%d are waited for, %d have released", waiting, released)
	}
}

// counting is a store that counts what is read of all participants at once.
type counting struct {
	store.Store
	mu    sync.Mutex
	calls map[string]int
}

func (s *counting) count(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
}

func (s *counting) Answers(ctx context.Context, run string, round int) ([]store.Answer, error) {
	s.count("answers")
	return s.Store.Answers(ctx, run, round)
}

func (s *counting) OpenUpdate(ctx context.Context, run string, round, participant int) (store.Blob, error) {
	s.count("open")
	return s.Store.OpenUpdate(ctx, run, round, participant)
}

func (s *counting) SmallUpdates(ctx context.Context, run string, round, after, most int) ([]store.Small, error) {
	s.count("small")
	return s.Store.SmallUpdates(ctx, run, round, after, most)
}

func (s *counting) Upload(ctx context.Context, u store.Update) (store.Upload, error) {
	s.count("upload")
	return s.Store.Upload(ctx, u)
}

// TestReleasesCostTheSameInACrowd: what the server asks its store for in a round of small
// releases does not grow with their number, but for recording them.
func TestReleasesCostTheSameInACrowd(t *testing.T) {
	b := newBench(t, func(p *plan.Plan) { shortRun(p); p.Run = "idle" })
	b.stop()
	s := &counting{Store: b.store, calls: map[string]int{}}
	b.plan.Run, b.enclosed, b.store = "r", true, s
	b.begin()
	b.work("north")
	s.mu.Lock()
	clear(s.calls)
	s.mu.Unlock()
	for i, name := range federationtest.Names {
		b.mustSend(name, 0, float64(i), 1)
	}
	b.work("north") // the next round
	s.mu.Lock()
	defer s.mu.Unlock()
	for call, most := range map[string]int{"answers": 1, "open": 0, "small": 1, "upload": 0} {
		if s.calls[call] > most {
			t.Errorf("%d times %s in a round, wanted %d at most", s.calls[call], call, most)
		}
	}
}

// TestTallyCounts: the counts are those of the answers, whatever is settled in which order.
func TestTallyCounts(t *testing.T) {
	r := newRound(0, []int{0, 1, 2, 5}, content{}, time.Now())
	for _, step := range []struct {
		i    int
		kind store.AnswerKind
		news bool
	}{{1, store.Released, true}, {1, store.Released, false}, {2, store.Declined, true}, {2, store.Released, true}, {5, store.Waiting, false}, {0, store.Declined, true}} {
		if news := r.settle(step.i, step.kind, ""); news != step.news {
			t.Errorf("%+v: news %v", step, news)
		}
		counted := map[store.AnswerKind]int{}
		for _, kind := range r.answers {
			counted[kind]++
		}
		waiting, released, declined := r.tally()
		if waiting != counted[store.Waiting] || released != counted[store.Released] || declined != counted[store.Declined] {
			t.Errorf("after %+v: %d, %d, %d; counted %v", step, waiting, released, declined, counted)
		}
	}
}

// failing is a store that cannot record small releases.
type failing struct{ store.Store }

var errDisk = errors.New("no space left on device")

func (failing) Accept(context.Context, store.Update, []byte, *store.Receipt) (bool, error) {
	return false, errDisk
}

// TestNoReceiptWithoutARecord: a release that cannot be recorded is not signed for, and may
// come again.
func TestNoReceiptWithoutARecord(t *testing.T) {
	b := newBench(t, func(p *plan.Plan) { shortRun(p); p.Run = "idle" })
	b.stop()
	good := b.store
	b.plan.Run, b.enclosed, b.store = "r", true, failing{good}
	b.begin()
	b.work("north")
	if receipt, err := b.send("north", 0, 1, 2); !errors.Is(err, errDisk) || receipt != nil {
		t.Errorf("%q, %v", receipt, err)
	}
	if waiting, _, _ := b.c.round.tally(); waiting != 3 {
		t.Errorf("%d are waited for", waiting)
	}
	b.c.direct = good
	b.mustSend("north", 0, 1, 2)
}

// deaf is a store that records no decline of participants themselves.
type deaf struct{ store.Store }

func (deaf) Decline(context.Context, string, int, int, string, time.Time) error { return errDisk }

// TestWhoLeftIsNotWaitedFor: that a participant declines the rest of the run could not be
// recorded when it said so; the server does it, and the open round does not wait for it.
func TestWhoLeftIsNotWaitedFor(t *testing.T) {
	b := newBench(t, nil)
	b.work("north")
	b.mustSend("north", 0, 1, 2)
	b.c.direct = deaf{b.store}
	if err := b.c.decline(t.Context(), "west", b.slot(0), true, "budget"); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	for began := time.Now(); b.c.round.waitsFor(2); time.Sleep(time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatal("the round waits for somebody who left")
		}
	}
	if a, err := b.store.Answer(t.Context(), b.plan.Run, 0, 2); err != nil || a.Kind != store.Declined || a.Reason != leftRun {
		t.Errorf("recorded: %+v, %v", a, err)
	}
}
