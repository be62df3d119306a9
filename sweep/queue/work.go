package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/coterie-fl/coterie/sweep/cells"
)

// Worker says how a process takes cells.
type Worker struct {
	Slots int // cells at the same time
	// Makers are those of one slot, by kind: what they remember from cell to cell is its own.
	Makers func(o cells.Objects) map[string]cells.Maker
	// Data is the folder of real data.
	Data string
	// CheckpointEvery is the least time between two checkpoints of a cell; 0: a third of the
	// lease.
	CheckpointEvery time.Duration
	// Idle ends the worker after so long without a cell; 0: never.
	Idle time.Duration
	// Tell says what a slot does.
	Tell func(format string, args ...any)
}

// Work takes cells from the queue at o until ctx ends, and waits for it as long as it is
// not there.
func Work(ctx context.Context, o Options, w Worker) error {
	var l *link
	if _, err := o.access(); err != nil { // nothing to wait for
		return err
	}
	began := time.Now()
	for said := false; ; said = true {
		var err error
		if l, err = connect(o); err == nil {
			break
		}
		if errors.Is(err, ErrRefused) {
			return err
		}
		if w.Idle > 0 && time.Since(began) > w.Idle {
			return err
		}
		if !said && o.Log != nil {
			o.Log("%v: waiting for it", err)
		}
		if pause(ctx, time.Second) != nil {
			return nil
		}
	}
	defer l.nc.Close()
	return l.work(ctx, w)
}

// Work takes cells of the queue in this process, beside whoever else does.
func (q *Queue) Work(ctx context.Context, w Worker) error { return q.link.work(ctx, w) }

// shift is a worker at work.
type shift struct {
	Worker
	*stores
	name string
	made atomic.Int64
	last atomic.Int64 // when a cell was here, in nanoseconds

	mu    sync.Mutex
	doing map[int]string // by slot
}

// work takes cells until ctx ends. What it was making is given back, with a checkpoint.
func (l *link) work(ctx context.Context, w Worker) error {
	s, err := l.waitForQueue(ctx, w)
	if s == nil {
		return err
	}
	host, _ := os.Hostname()
	h := &shift{Worker: w, stores: s, name: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:6]), doing: map[int]string{}}
	h.last.Store(time.Now().UnixNano())
	asked := ctx
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var slots, beat sync.WaitGroup
	beat.Go(func() { h.beat(ctx) })
	for slot := range max(1, w.Slots) {
		slots.Go(func() {
			if err := h.serve(ctx, slot); err != nil {
				end(err)
			}
		})
	}
	slots.Wait()
	cause := context.Cause(ctx)
	end(nil)
	beat.Wait()
	if asked.Err() != nil || errors.Is(cause, errIdle) {
		return nil
	}
	return cause
}

var errIdle = errors.New("no cell for a while")

// waitForQueue waits until somebody asks for cells of this program, and refuses to wait
// where all who ask are of another. Nil: ctx has ended, or the wait was for nothing.
func (l *link) waitForQueue(ctx context.Context, w Worker) (*stores, error) {
	began, complained := time.Now(), time.Time{}
	for said := false; ; said = true {
		one, cancel := context.WithTimeout(ctx, 10*time.Second)
		s, err := l.find(one)
		if err == nil {
			cancel()
			return s, nil
		}
		if s != nil {
			err = s.fit(one)
		} else if !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, jetstream.ErrBucketNotFound) && ctx.Err() == nil && time.Since(complained) > 10*time.Second {
			l.Log("%v", err)
			complained = time.Now()
		}
		cancel()
		if errors.Is(err, cells.ErrUnfit) {
			return nil, err
		}
		if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
			return nil, l.withoutJetStream(err)
		}
		if !said && ctx.Err() == nil {
			l.Log("nobody asks for cells of %s yet: waiting", l.Code)
		}
		if w.Idle > 0 && time.Since(began) > w.Idle {
			return nil, nil
		}
		if pause(ctx, 500*time.Millisecond) != nil {
			return nil, nil
		}
	}
}

// fit refuses this worker where cells are asked for, all by other programs.
func (s *stores) fit(ctx context.Context) error {
	keys, err := s.alive.Keys(ctx)
	if err != nil {
		return nil // nobody, or not known
	}
	var others []string
	for _, key := range keys {
		if !strings.HasPrefix(key, "code.") {
			continue
		}
		if key == codeKey(s.Code) {
			return nil
		}
		entry, err := s.alive.Get(ctx, key)
		var c Code
		if err == nil && json.Unmarshal(entry.Value(), &c) == nil {
			others = append(others, c.String())
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%w: it is %s, but cells are asked for by %s. Results are the same bytes for one program and one kernel set only: start the worker from the same release, on the same kind of processor", cells.ErrUnfit, s.Code, strings.Join(others, " and "))
}

// askFor is how long a slot waits for a cell before it looks whether it is to end.
const askFor = 500 * time.Millisecond

// serve is one slot: a cell after another.
func (h *shift) serve(ctx context.Context, slot int) error {
	makers := h.Makers(h.objects)
	for ctx.Err() == nil {
		batch, err := h.workers.Fetch(1, jetstream.FetchMaxWait(askFor)) // a cell on its way to who no longer asks would wait for a lease
		if err != nil {
			h.Log("ask for a cell: %v", err)
			_ = pause(ctx, 500*time.Millisecond)
			continue
		}
		got := false
		for m := range batch.Messages() {
			got = true
			h.last.Store(time.Now().UnixNano())
			if err := h.take(ctx, slot, makers, m); err != nil {
				return err
			}
			h.last.Store(time.Now().UnixNano())
		}
		if err := batch.Error(); err != nil && !got && ctx.Err() == nil {
			_ = pause(ctx, 200*time.Millisecond) // a node was lost, or the queue is being moved
		}
		if got {
			continue
		}
		if h.Idle > 0 && time.Since(time.Unix(0, h.last.Load())) > h.Idle && h.busy() == 0 {
			return errIdle
		}
		if err := h.fit(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (h *shift) busy() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.doing)
}

// says notes what a slot does; empty: nothing.
func (h *shift) says(slot int, words string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if words == "" {
		delete(h.doing, slot)
		return
	}
	h.doing[slot] = words
}

// beatEvery is how often a worker says that it is there; tests do so more often.
var beatEvery = aliveFor / 4

// beat says every few seconds that the worker is there, and how far it is.
func (h *shift) beat(ctx context.Context) {
	key := workerPrefix + h.Code.name() + "." + word(h.name)
	for {
		h.mu.Lock()
		p := cells.Hand{Name: h.name, Slots: max(1, h.Slots), Made: h.made.Load(), Doing: []string{}}
		for _, slot := range slices.Sorted(maps.Keys(h.doing)) {
			p.Doing = append(p.Doing, h.doing[slot])
		}
		h.mu.Unlock()
		text, err := json.Marshal(p)
		if err == nil {
			_, err = h.alive.Put(ctx, key, text)
		}
		if err != nil && ctx.Err() == nil {
			h.Log("say that this worker is there: %v", err)
		}
		if pause(ctx, beatEvery) != nil {
			break
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = h.alive.Delete(last, key)
}

// word is text as keys may hold it.
func word(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, text)
}
