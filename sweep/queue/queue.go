package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coterie-fl/coterie/sweep/cells"
)

// Queue has cells made by workers: a cells.Sender.
type Queue struct {
	*stores
	end  context.CancelFunc
	over sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]*wait // by cell
	broken  error            // what nothing can be trusted after
	crew    []cells.Hand     // workers, when they were last looked for
}

// wait is a cell that somebody waits for.
type wait struct {
	done   chan struct{} // closed once found is set
	found  record
	order  []byte // as it was published
	missed int    // looks in a row that found it neither waiting nor made
}

// order is a cell as it lies in the queue.
type order struct {
	Kind   string          `json:"kind"`
	Spec   json.RawMessage `json:"spec"`
	Varies bool            `json:"varies,omitempty"`
}

// record is what came of a cell, as it lies in the key-value store.
type record struct {
	Result  json.RawMessage `json:"result,omitempty"`
	Object  string          `json:"object,omitempty"` // where a large result lies
	SHA256  string          `json:"sha256,omitempty"` // of the result
	Worker  string          `json:"worker"`
	Seconds float64         `json:"seconds"`
	// Failed is why it could not be made; the next who asks for the cell has it tried again.
	Failed string `json:"failed,omitempty"`
}

// largest is what a message may hold; more lies in the object store.
const largest = 256 << 10

// ErrDiffer means that a cell was made twice and the results are not the same bytes: the
// machines or programs are not what they say they are.
var ErrDiffer = errors.New("two workers made the same cell and got different results")

// ErrLost means that places of the queue are no longer on its servers.
var ErrLost = errors.New("the queue is no longer on its servers")

// Open reaches an existing queue's servers and makes its places there, or finds them.
func Open(ctx context.Context, o Options) (*Queue, error) {
	l, err := connect(o)
	if err != nil {
		return nil, err
	}
	q, err := open(ctx, l)
	if err != nil {
		l.nc.Close()
	}
	return q, err
}

func open(ctx context.Context, l *link) (*Queue, error) {
	var s *stores
	if err := l.patiently(ctx, func() (err error) { s, err = l.create(ctx); return err }); err != nil {
		return nil, err
	}
	q := &Queue{stores: s, waiting: map[string]*wait{}}
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	q.end = end
	var watch jetstream.KeyWatcher
	err := l.patiently(ctx, func() error { return q.announce(lasting) })
	if err == nil {
		err = l.patiently(ctx, func() (err error) {
			watch, err = q.results.WatchAll(lasting, jetstream.UpdatesOnly())
			return err
		})
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("queue: %w", err)
	}
	q.over.Go(func() { q.listen(lasting, watch) })
	q.over.Go(func() { q.lookAfter(lasting) })
	return q, nil
}

// startFor is how long servers may take to choose who leads, after a node was lost, before
// whoever begins gives up; tests wait less.
var startFor = time.Minute

// late says that servers have not answered in time.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// storeFor is how long servers may fail to make a place: some do in the moment in which they
// hear of an account for the first time, from several at once.
var storeFor = 5 * time.Second

// unstored says that servers could not make a place for a stream.
func unstored(err error) bool {
	const failed = 10049 // JSStreamCreateErrF of the servers
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == failed
}

// patiently tries again what servers have not answered in time, or could not store.
func (l *link) patiently(ctx context.Context, try func() error) error {
	for began := time.Now(); ; {
		err := try()
		if !late(err) && !unstored(err) || ctx.Err() != nil {
			return err
		}
		switch took := time.Since(began); {
		case late(err) && took > startFor:
			return fmt.Errorf("the servers at %s do not answer in time (%w): a cluster needs most of its nodes", WithoutSecrets(l.URL), err)
		case unstored(err) && took > storeFor:
			return fmt.Errorf("the servers at %s cannot make a place for what is to be stored (%w): their log says why; look at the disk and the owner of their store_dir", WithoutSecrets(l.URL), err)
		}
		l.Log("the queue's servers cannot answer yet (%v): trying again", err)
		if pause(ctx, 500*time.Millisecond) != nil {
			return err
		}
	}
}

// Close leaves the queue as it is: what waits in it goes on waiting.
func (q *Queue) Close() {
	q.end()
	q.over.Wait()
	q.nc.Close()
}

// Width is how many cells lie in the queue at the same time.
func (q *Queue) Width() int { return 1024 }

// Objects is the store of files.
func (q *Queue) Objects() cells.Objects { return q.objects }

// Crew is the workers of this program that are there, and what they do.
func (q *Queue) Crew() []cells.Hand {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.crew)
}

// Make has a worker make a cell, unless one has before.
func (q *Queue) Make(ctx context.Context, c cells.Cell) (json.RawMessage, error) {
	if c.Kind == "" {
		return cells.Here{}.Make(ctx, c)
	}
	o, err := c.Order(ctx)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o.Spec)
	if err != nil {
		return nil, err
	}
	id, err := name(c.Kind, o.Identity)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(order{c.Kind, text, c.Varies})
	if err != nil {
		return nil, err
	}
	if len(body) > largest {
		return nil, fmt.Errorf("a cell of %d bytes is larger than a message may be (%d)", len(body), largest)
	}
	w := q.await(id, body)
	if err := q.ask(ctx, id, body); err != nil {
		return nil, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := q.err(); err != nil {
		return nil, err
	}
	return q.read(ctx, id, w.found)
}

// name is a cell's name among those of its program.
func name(kind string, identity any) (string, error) {
	text, err := json.Marshal(struct {
		Kind     string
		Identity any
	}{kind, identity})
	return hash(text)[:32], err
}

// await has somebody wait for a cell; two may for the same.
func (q *Queue) await(id string, body []byte) *wait {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.waiting[id]
	if w == nil {
		w = &wait{done: make(chan struct{}), order: body}
		if q.broken != nil { // there is nothing to wait for
			close(w.done)
			return w
		}
		q.waiting[id] = w
	}
	return w
}

func (q *Queue) err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.broken
}

// ask takes up a result that is there, or queues the cell, as long as it takes.
func (q *Queue) ask(ctx context.Context, id string, body []byte) error {
	return q.persist(ctx, "queue a cell", func(ctx context.Context) error {
		if err := q.err(); err != nil {
			return err
		}
		found, err := q.result(ctx, id)
		if err != nil {
			return err
		}
		if found != nil && found.Failed == "" {
			q.deliver(id, *found)
			return nil
		}
		if found != nil { // somebody asked before, and it failed: tried again now
			if err := q.forget(ctx, id); err != nil {
				return err
			}
		}
		return q.publish(ctx, id, body)
	})
}

// forget makes room for another try of a cell that failed.
func (q *Queue) forget(ctx context.Context, id string) error {
	if err := q.state.Delete(ctx, errorKey(id)); err != nil {
		return err
	}
	return q.results.Delete(ctx, q.resultKey(id))
}

func (q *Queue) publish(ctx context.Context, id string, body []byte) error {
	_, err := q.js.Publish(ctx, q.subject(id), body)
	if err != nil && strings.Contains(err.Error(), "maximum messages per subject") {
		return nil // it waits already
	}
	return err
}

// persist tries again what the servers cannot do just now: a node that was lost, a leader
// that is being chosen, a disk that is full. It says so, and goes on until ctx ends.
func (l *link) persist(ctx context.Context, what string, try func(ctx context.Context) error) error {
	wait, said := 100*time.Millisecond, time.Time{}
	for {
		one, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := try(one)
		cancel()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		var refused *jetstream.APIError
		if errors.Is(err, ErrLost) || errors.Is(err, ErrDiffer) || errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrPermissionViolation) || errors.Is(err, nats.ErrMaxPayload) || errors.As(err, &refused) && refused.Code == 400 && !passing(refused) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if time.Since(said) > 10*time.Second {
			l.Log("%s: the queue's servers cannot (%v): trying again", what, err)
			said = time.Now()
		}
		if pause(ctx, wait) != nil {
			return errors.Join(err, ctx.Err())
		}
		wait = min(2*wait, 2*time.Second)
	}
}

// passing says that a refusal may be another one in a moment: places move between servers.
func passing(e *jetstream.APIError) bool {
	return e.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence
}

// result reads what came of a cell; nil: nothing yet.
func (s *stores) result(ctx context.Context, id string) (*record, error) {
	entry, err := s.results.Get(ctx, s.resultKey(id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found record
	if err := json.Unmarshal(entry.Value(), &found); err != nil {
		return nil, fmt.Errorf("the result of cell %s: %w", id, err)
	}
	return &found, nil
}

func (s *stores) resultKey(id string) string { return "made." + s.Code.name() + "." + id }
func differKey(id string) string             { return "differs." + id }
func errorKey(id string) string              { return "errors." + id }
func checkpointKey(id string) string         { return "checkpoint." + id }

// read is a record's result, checked against its hash.
func (s *stores) read(ctx context.Context, id string, r record) (json.RawMessage, error) {
	if r.Failed != "" {
		return nil, fmt.Errorf("%w (%s, last on %s): %s", cells.ErrFailed, id, r.Worker, r.Failed)
	}
	result := []byte(r.Result)
	if r.Object != "" {
		var large bytes.Buffer
		err := s.persist(ctx, "fetch a result", func(ctx context.Context) error {
			large.Reset()
			return s.objects.Get(ctx, r.Object, &large)
		})
		if err != nil {
			return nil, err
		}
		result = large.Bytes()
	}
	if got := hash(result); got != r.SHA256 {
		return nil, fmt.Errorf("the result of cell %s has the hash %.12s and not the %.12s that %s wrote: it was damaged or replaced", id, got, r.SHA256, r.Worker)
	}
	return result, nil
}

// deliver hands a record to whoever waits for it.
func (q *Queue) deliver(id string, r record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.waiting[id]; w != nil {
		w.found = r
		delete(q.waiting, id)
		close(w.done)
	}
}

// breakOff ends all waiting: nothing can be trusted any more.
func (q *Queue) breakOff(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.broken != nil {
		return
	}
	q.broken = err
	for id, w := range q.waiting {
		delete(q.waiting, id)
		close(w.done)
	}
}
