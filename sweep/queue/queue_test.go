package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/coterie-fl/coterie/sweep/cells"
)

func TestMain(m *testing.M) {
	lookAfterEvery, beatEvery = 300*time.Millisecond, 100*time.Millisecond
	m.Run()
}

var code = Code{Version: "1", Kernel: "test"}

// embed is a queue in a folder, with leases of a second.
func embed(t *testing.T, folder string) *Embedded {
	t.Helper()
	q, err := Embed(t.Context(), "127.0.0.1:0", folder, Options{Code: code, Lease: time.Second, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// number is a cell that a maker turns into a number.
func number(n int) cells.Cell {
	return cells.Cell{
		Kind:  "number",
		Order: func(context.Context) (cells.Order, error) { return cells.Order{Spec: n, Identity: n}, nil },
	}
}

// making are a worker's makers, of which there is one.
func making(m func(ctx context.Context, b cells.Bench, n int) (any, error)) func(cells.Objects) map[string]cells.Maker {
	return func(cells.Objects) map[string]cells.Maker {
		return map[string]cells.Maker{"number": func(ctx context.Context, b cells.Bench, spec json.RawMessage) (any, error) {
			var n int
			if err := json.Unmarshal(spec, &n); err != nil {
				return nil, err
			}
			return m(ctx, b, n)
		}}
	}
}

// employ has a worker take cells until the test, or what it returns, ends it.
func employ(t *testing.T, q *Embedded, w Worker) (dismiss func()) {
	t.Helper()
	w.Tell = t.Logf
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		if err := q.Work(ctx, w); err != nil && !errors.Is(err, ErrDiffer) {
			t.Error(err)
		}
	})
	return func() { cancel(); over.Wait() }
}

// all asks for cells 0..n-1 at once.
func all(ctx context.Context, q cells.Runner, n int) ([]string, []error) {
	got, errs := make([]string, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			text, err := q.Make(ctx, number(i))
			got[i], errs[i] = string(text), err
		})
	}
	wg.Wait()
	return got, errs
}

// TestEveryCellIsMadeOnce: whoever asks again, in the same process or after it ended, is
// given what was made.
func TestEveryCellIsMadeOnce(t *testing.T) {
	folder := t.TempDir()
	var made atomic.Int64
	large := strings.Repeat("x", 2*largest)
	for round := range 3 {
		q := embed(t, folder)
		dismiss := employ(t, q, Worker{Slots: 2, Makers: making(func(_ context.Context, _ cells.Bench, n int) (any, error) {
			made.Add(1)
			if n == 7 { // no message holds it
				return large, nil
			}
			return n * n, nil
		})})
		for range 2 {
			got, errs := all(t.Context(), q, 40)
			for i := range got {
				want := fmt.Sprint(i * i)
				if i == 7 {
					want = `"` + large + `"`
				}
				if errs[i] != nil || got[i] != want {
					t.Fatalf("round %d, cell %d: %.20s, %v", round, i, got[i], errs[i])
				}
			}
		}
		dismiss()
		if round == 1 { // one of them is forgotten: it alone is made again
			id, _ := name("number", 3)
			if err := q.results.Delete(t.Context(), q.resultKey(id)); err != nil {
				t.Fatal(err)
			}
		}
		q.Close()
	}
	if n := made.Load(); n != 41 {
		t.Errorf("40 cells, one of them forgotten, were made %d times", n)
	}
}

// TestAStoppedCoordinator leaves its cells in the queue: workers make them while nobody
// waits, and the same questions find the answers.
func TestAStoppedCoordinator(t *testing.T) {
	q := embed(t, t.TempDir())
	defer q.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	if _, errs := all(ctx, q, 10); !errors.Is(errors.Join(errs...), context.Canceled) {
		t.Fatal(errs)
	}
	asked, cancel := context.WithCancel(t.Context()) // once more: they wait already
	time.AfterFunc(100*time.Millisecond, cancel)
	all(asked, q, 10)
	info, err := q.cells.Info(t.Context())
	if err != nil || info.State.Msgs != 10 {
		t.Fatalf("%d cells wait, want 10 (%v)", info.State.Msgs, err)
	}
	var made atomic.Int64
	defer employ(t, q, Worker{Slots: 1, Makers: making(func(_ context.Context, _ cells.Bench, n int) (any, error) { made.Add(1); return n, nil })})()
	got, errs := all(t.Context(), q, 10)
	if err := errors.Join(errs...); err != nil || got[9] != "9" || made.Load() != 10 {
		t.Errorf("%v, %v; made %d times", got, err, made.Load())
	}
}

// TestLostCells: a server may lose what it acknowledged. Cells that are waited for come back.
func TestLostCells(t *testing.T) {
	q := embed(t, t.TempDir())
	defer q.Close()
	time.AfterFunc(200*time.Millisecond, func() {
		if err := q.cells.Purge(context.Background()); err != nil {
			t.Error(err)
		}
		employ(t, q, Worker{Slots: 1, Makers: making(func(_ context.Context, _ cells.Bench, n int) (any, error) { return n, nil })})
	})
	got, errs := all(t.Context(), q, 5)
	if err := errors.Join(errs...); err != nil || got[4] != "4" {
		t.Error(got, err)
	}
}

// TestLostPlaces: where a place of the queue is gone whoever waits is told which, and what to
// do; so is whoever asks later. A queue that is opened again has it, and the worker from
// before takes its cells.
func TestLostPlaces(t *testing.T) {
	for place, remove := range map[string]func(ctx context.Context, q *Embedded) error{
		"stream COTERIE_CELLS":         func(ctx context.Context, q *Embedded) error { return q.js.DeleteStream(ctx, q.streamName()) },
		"bucket coterie-results":       func(ctx context.Context, q *Embedded) error { return q.js.DeleteKeyValue(ctx, "coterie-results") },
		"bucket coterie-state":         func(ctx context.Context, q *Embedded) error { return q.js.DeleteKeyValue(ctx, "coterie-state") },
		"bucket coterie-alive":         func(ctx context.Context, q *Embedded) error { return q.js.DeleteKeyValue(ctx, "coterie-alive") },
		"object store coterie-objects": func(ctx context.Context, q *Embedded) error { return q.js.DeleteObjectStore(ctx, "coterie-objects") },
		"consumer workers-": func(ctx context.Context, q *Embedded) error {
			return q.js.DeleteConsumer(ctx, q.streamName(), q.consumerName())
		},
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			q := embed(t, t.TempDir())
			defer q.Close()
			idle := make(chan struct{}) // the worker has nothing to make it with before
			dismiss := employ(t, q, Worker{Slots: 1, Makers: making(func(ctx context.Context, _ cells.Bench, n int) (any, error) {
				select {
				case <-idle:
				case <-ctx.Done():
				}
				return n, ctx.Err()
			})})
			defer dismiss()
			time.AfterFunc(200*time.Millisecond, func() {
				if err := remove(context.Background(), q); err != nil {
					t.Error(err)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for _, when := range []string{"waiting", "later"} {
				if _, errs := all(ctx, q, 2); !errors.Is(errs[0], ErrLost) || !errors.Is(errs[1], ErrLost) || !strings.Contains(errs[0].Error(), place) || !strings.Contains(errs[0].Error(), "the same command makes it anew") {
					t.Errorf("%s: %v", when, errs)
				}
			}
			close(idle)
			again, err := open(ctx, q.link)
			if err != nil {
				t.Fatal(err)
			}
			if got, errs := all(ctx, again, 2); errors.Join(errs...) != nil || got[1] != "1" {
				t.Errorf("opened again: %v, %v", got, errs)
			}
			again.end()
			again.over.Wait()
		})
	}
}

// TestPoison: a cell that fails is tried three times and then reported with its error; one
// that panics is a failure like others; the rest is made. Whoever asks again has it tried
// again.
func TestPoison(t *testing.T) {
	q := embed(t, t.TempDir())
	defer q.Close()
	var tried, healed atomic.Int64
	defer employ(t, q, Worker{Slots: 2, Makers: making(func(_ context.Context, _ cells.Bench, n int) (any, error) {
		switch {
		case n == 2 && healed.Load() == 0:
			tried.Add(1)
			return nil, errors.New("no such luck")
		case n == 3 && healed.Load() == 0:
			panic("out of range")
		}
		return n, nil
	})})()
	got, errs := all(t.Context(), q, 6)
	for i, err := range errs {
		bad := i == 2 || i == 3
		if errors.Is(err, cells.ErrFailed) != bad || !bad && got[i] != fmt.Sprint(i) {
			t.Errorf("cell %d: %s, %v", i, got[i], err)
		}
	}
	if tried.Load() != tries || !strings.Contains(errs[2].Error(), "3 tries; the last: no such luck") || !strings.Contains(errs[3].Error(), "out of range") {
		t.Errorf("tried %d times: %v; %v", tried.Load(), errs[2], errs[3])
	}
	healed.Store(1)
	got, errs = all(t.Context(), q, 6)
	if err := errors.Join(errs...); err != nil || got[2] != "2" {
		t.Error(got, err)
	}
}

// lose is a worker that is lost with a cell in its hands: it says no more.
func lose(t *testing.T, q *Embedded, before func(b cells.Bench)) {
	t.Helper()
	l, err := connect(Options{URL: "nats://" + q.Address, TokenFile: q.TokenFile, Code: code})
	if err != nil {
		t.Fatal(err)
	}
	taken, never := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(never) })
	go func() {
		_ = l.work(context.Background(), Worker{Slots: 1, Tell: t.Logf, Makers: making(func(_ context.Context, b cells.Bench, _ int) (any, error) {
			before(b)
			l.nc.Close()
			close(taken)
			<-never
			return nil, nil
		})})
	}()
	<-taken
}

// TestALostWorkersCell goes to another when its lease is over, and on from its checkpoint;
// a checkpoint of the one that was given up does not come after that.
func TestALostWorkersCell(t *testing.T) {
	q := embed(t, t.TempDir())
	defer q.Close()
	answer := make(chan string, 1)
	go func() {
		got, err := q.Make(t.Context(), number(1))
		if err != nil {
			t.Error(err)
		}
		answer <- string(got)
	}()
	save := func(k cells.Keeper, rounds int, text string) {
		k.Save("run", rounds, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	var stale cells.Keeper
	lose(t, q, func(b cells.Bench) { save(b.Keep, 5, "five"); stale = b.Keep })
	began := time.Now()
	defer employ(t, q, Worker{Slots: 1, Makers: making(func(_ context.Context, b cells.Bench, n int) (any, error) {
		from := string(b.Keep.Load("run"))
		if other := b.Keep.Load("another run"); other != nil {
			t.Errorf("another run's checkpoint is %q", other)
		}
		save(b.Keep, 7, "seven")
		k := *stale.(*keeper) // comes back, by another way than its lost connection
		k.shift = b.Keep.(*keeper).shift
		k.turn = b.Keep.(*keeper).turn // as if it had not been given up: the same bytes, too late
		write := func(w io.Writer) error { save(b.Keep, 8, "eight"); _, err := io.WriteString(w, "eight"); return err }
		k.Save("run", 8, write)
		if now := string(b.Keep.Load("run")); now != "eight" {
			t.Errorf("who came too late with the same checkpoint left %q", now)
		}
		k.turn = stale.(*keeper).turn
		save(&k, 6, "six")
		save(&k, 9, "nine")
		if now := string(b.Keep.Load("run")); now != "eight" {
			t.Errorf("a worker that was given up changed the checkpoint to %q", now)
		}
		return from, nil
	})})()
	if got := <-answer; got != `"five"` || time.Since(began) > 10*time.Second {
		t.Errorf("went on from %s after %v", got, time.Since(began))
	}
	id, _ := name("number", 1)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := q.state.Get(t.Context(), checkpointKey(id)); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the checkpoint of a finished cell is still there")
		}
	}
}

// TestWhoIsThere: whoever asks for cells sees its workers, what each slot makes and after
// which round its last checkpoint was, and no longer those that have left.
func TestWhoIsThere(t *testing.T) {
	q := embed(t, t.TempDir())
	defer q.Close()
	is := func(what string, want func(crew []cells.Hand) bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !want(q.Crew()); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: never; there are %+v", what, q.Crew())
			}
		}
	}
	is("nobody at first", func(crew []cells.Hand) bool { return len(crew) == 0 })
	further, end := make(chan struct{}), make(chan struct{})
	dismiss := employ(t, q, Worker{Slots: 2, Makers: making(func(_ context.Context, b cells.Bench, n int) (any, error) {
		b.Tell("the number 4")
		<-further
		b.Keep.Save("run", 7, func(w io.Writer) error { _, err := io.WriteString(w, "seven"); return err })
		<-end
		return n, nil
	})})
	does := func(made int64, words ...string) func([]cells.Hand) bool {
		return func(crew []cells.Hand) bool {
			return len(crew) == 1 && crew[0].Name != "" && crew[0].Slots == 2 && crew[0].Made == made && slices.Equal(crew[0].Doing, words)
		}
	}
	is("a worker without a cell", does(0))
	answer := make(chan error, 1)
	go func() { _, err := q.Make(t.Context(), number(4)); answer <- err }()
	is("a worker with one", does(0, "the number 4"))
	close(further)
	is("further on", does(0, "the number 4, after round 7"))
	close(end)
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	is("done", does(1))
	dismiss()
	is("it has left", func(crew []cells.Hand) bool { return len(crew) == 0 })
}

// TestSlowServers: whoever begins while servers choose who leads tries again, up to an end,
// and what another try cannot change ends it at once.
func TestSlowServers(t *testing.T) {
	old, oldStore := startFor, storeFor
	startFor, storeFor = time.Second, time.Second
	t.Cleanup(func() { startFor, storeFor = old, oldStore })
	l := &link{Options: Options{URL: "nats://me:secret@one:4222", Log: t.Logf}}
	slow := fmt.Errorf("create: %w", context.DeadlineExceeded)
	tries := 0
	if err := l.patiently(t.Context(), func() error {
		if tries++; tries < 2 {
			return slow
		}
		return nil
	}); err != nil || tries != 2 {
		t.Errorf("servers that are slow once: %v after %d tries", err, tries)
	}
	tries = 0
	other := errors.New("no room")
	if err := l.patiently(t.Context(), func() error { tries++; return other }); !errors.Is(err, other) || tries != 1 {
		t.Errorf("another fault: %v after %d tries", err, tries)
	}
	err := l.patiently(t.Context(), func() error { return slow })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "needs most of its nodes") || strings.Contains(err.Error(), "secret") {
		t.Errorf("servers that are always slow: %v", err)
	}
	unable := fmt.Errorf("create: %w", &jetstream.APIError{Code: 500, ErrorCode: 10049, Description: "error creating store for stream"})
	tries = 0
	if err := l.patiently(t.Context(), func() error {
		if tries++; tries < 2 {
			return unable
		}
		return nil
	}); err != nil || tries != 2 {
		t.Errorf("servers that cannot store once: %v after %d tries", err, tries)
	}
	if err := l.patiently(t.Context(), func() error { return unable }); !errors.Is(err, unable) || !strings.Contains(err.Error(), "store_dir") || strings.Contains(err.Error(), "secret") {
		t.Errorf("servers that can never store: %v", err)
	}
}

// TestTheFirstResultCounts: a worker that was given up and ends after all changes nothing.
// The same bytes are the rule; others end everything, and say so to both sides.
func TestTheFirstResultCounts(t *testing.T) {
	for name, c := range map[string]struct {
		late   any
		varies bool
		differ bool
	}{"the same": {1, false, false}, "others": {2, false, true}, "others, drawn by chance": {2, true, false}} {
		t.Run(name, func(t *testing.T) {
			q := embed(t, t.TempDir())
			defer q.Close()
			gone := make(chan error, 1)
			go func() {
				gone <- q.Work(t.Context(), Worker{Slots: 1, Tell: t.Logf, Idle: 300 * time.Millisecond, Makers: making(func(_ context.Context, b cells.Bench, n int) (any, error) {
					k := b.Keep.(*keeper)
					first := record{Result: json.RawMessage("1"), SHA256: hash([]byte("1")), Worker: "the first"}
					if err := k.write(t.Context(), k.id, first, false); err != nil {
						t.Error(err)
					}
					return c.late, nil
				})})
			}()
			cell := number(1)
			cell.Varies = c.varies
			got, err := q.Make(t.Context(), cell)
			if err == nil && string(got) != "1" {
				t.Errorf("the result is %s, want the first", got)
			}
			if err := <-gone; errors.Is(err, ErrDiffer) != c.differ {
				t.Errorf("the worker ends with %v", err)
			}
			if !c.differ {
				return
			}
			for deadline := time.Now().Add(5 * time.Second); !errors.Is(q.err(), ErrDiffer); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("who asked is not told")
				}
			}
			if _, err := q.Make(t.Context(), number(2)); !errors.Is(err, ErrDiffer) || !strings.Contains(err.Error(), "the first") {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestAnotherProgram is refused with a sentence, and takes nothing.
func TestAnotherProgram(t *testing.T) {
	q := embed(t, t.TempDir())
	defer q.Close()
	for _, other := range []Code{{Version: "2", Kernel: "test"}, {Version: "1", Kernel: "other"}, {Version: "1", Kernel: "test", Build: "abc"}} {
		o := Options{URL: "nats://" + q.Address, TokenFile: q.TokenFile, Code: other, Log: t.Logf}
		err := Work(t.Context(), o, Worker{Slots: 1, Tell: t.Logf, Makers: making(nil)})
		if !errors.Is(err, cells.ErrUnfit) || !strings.Contains(err.Error(), other.String()+", but cells are asked for by version 1, kernel test") {
			t.Errorf("%v: %v", other, err)
		}
	}
}

// TestTheDoor: without the token nobody comes in; open to other machines is refused where
// it is not encrypted; and of one folder there is one queue.
func TestTheDoor(t *testing.T) {
	folder := t.TempDir()
	q := embed(t, folder)
	defer q.Close()
	err := Work(t.Context(), Options{URL: "nats://" + q.Address, Code: code}, Worker{Slots: 1, Makers: making(nil)})
	if err == nil || !strings.Contains(err.Error(), "Authorization") {
		t.Errorf("without a token: %v", err)
	}
	for listen, want := range map[string]string{
		"0.0.0.0:0": "--nats-cert", "[::]:0": "--nats-cert", "example.org:1": "--nats-cert", "127.0.0.1": "HOST:PORT", "127.0.0.1:x": "no port", "127.0.0.1:0": "another process has its queue",
	} {
		if _, err := Embed(t.Context(), listen, folder, Options{Code: code}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", listen, err, want)
		}
	}
}

// TestUnfitWorkers give their cell back and end; another makes it.
func TestUnfitWorkers(t *testing.T) {
	q := embed(t, t.TempDir())
	defer q.Close()
	answer := make(chan error, 1)
	go func() { _, err := q.Make(t.Context(), number(1)); answer <- err }()
	err := q.Work(t.Context(), Worker{Slots: 1, Tell: t.Logf, Makers: making(func(context.Context, cells.Bench, int) (any, error) {
		return nil, fmt.Errorf("%w: no data", cells.ErrUnfit)
	})})
	if !errors.Is(err, cells.ErrUnfit) {
		t.Error(err)
	}
	defer employ(t, q, Worker{Slots: 1, Makers: making(func(_ context.Context, _ cells.Bench, n int) (any, error) { return n, nil })})()
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// TestObjects: what does not hold what its name says is neither kept nor given.
func TestObjects(t *testing.T) {
	q := embed(t, t.TempDir())
	defer q.Close()
	wrong := hash([]byte("a"))
	if err := q.objects.Put(t.Context(), strings.NewReader("b"), wrong); err == nil || !strings.Contains(err.Error(), "changed while it was sent") {
		t.Error(err)
	}
	if err := q.objects.Get(t.Context(), wrong, io.Discard); err == nil {
		t.Error("it was kept")
	}
	if _, err := q.objects.store.PutBytes(t.Context(), wrong, []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := q.objects.Get(t.Context(), wrong, io.Discard); err == nil || !strings.Contains(err.Error(), "damaged or replaced") {
		t.Error(err)
	}
}
