package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/coterie-fl/coterie/sweep/cells"
)

// listen takes up results as they are written.
func (q *Queue) listen(ctx context.Context, watch jetstream.KeyWatcher) {
	defer func() { _ = watch.Stop() }()
	mine := q.resultKey("")
	for {
		select {
		case <-ctx.Done():
			return
		case entry, ok := <-watch.Updates():
			if !ok {
				return // lookAfter finds what is missed
			}
			if entry == nil || entry.Operation() != jetstream.KeyValuePut {
				continue
			}
			id, isMine := strings.CutPrefix(entry.Key(), mine)
			var found record
			switch {
			case strings.HasPrefix(entry.Key(), differKey("")):
				q.differs(entry.Value())
			case isMine && json.Unmarshal(entry.Value(), &found) == nil:
				q.deliver(id, found)
			}
		}
	}
}

// difference is a cell whose results differ, as workers report it.
type difference struct {
	Cell          string `json:"cell"`
	Code          Code   `json:"code"`
	First, Second string // workers
	FirstSHA256   string `json:"first_sha256"`
	SecondSHA256  string `json:"second_sha256"`
}

func (d difference) err() error {
	return fmt.Errorf("%w: cell %s is %.16s by %s and %.16s by %s (%s). Results of equal programs are equal bytes: one of the machines is broken, its data changed while it ran, or its program is not the one it names. Nothing of this queue is to be trusted before it is known which",
		ErrDiffer, d.Cell, d.FirstSHA256, d.First, d.SecondSHA256, d.Second, d.Code)
}

func (q *Queue) differs(text []byte) {
	var d difference
	if json.Unmarshal(text, &d) == nil && d.Code == q.Code {
		q.breakOff(d.err())
	}
}

// lookAfterEvery is how often the queue is held against what is waited for; tests do so
// more often.
var lookAfterEvery = 5 * time.Second

// lookAfter finds cells that are waited for and neither lie in the queue nor have a
// result: servers acknowledge before they have synced, and may lose what they promised.
// Such cells are queued again: to make one twice costs time and harms nothing. Where the
// places themselves are gone, waiting ends: files that cells need were lost with them.
func (q *Queue) lookAfter(ctx context.Context) {
	missing := 0
	for pause(ctx, lookAfterEvery) == nil {
		if what := q.gone(ctx); what == "" {
			missing = 0
		} else if missing++; missing == 3 { // not while a cluster moves it
			q.breakOff(fmt.Errorf("%w: at %s there is no %s any more. Somebody took it away, or the servers lost what they store: the same command makes it anew and goes on, with the results that are here already", ErrLost, WithoutSecrets(q.URL), what))
			return
		}
		if err := q.announce(ctx); err != nil && ctx.Err() == nil {
			q.Log("say that cells are asked for: %v", err)
		}
		q.count(ctx)
		if err := q.restore(ctx); err != nil && ctx.Err() == nil {
			q.Log("look after the queue: %v", err)
		}
	}
}

// gone is the place of the queue that its servers say they do not have; empty: they have all,
// or do not answer.
func (q *Queue) gone(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, lookAfterEvery)
	defer cancel()
	if _, err := q.js.Stream(ctx, q.streamName()); errors.Is(err, jetstream.ErrStreamNotFound) {
		return "stream " + q.streamName()
	}
	for _, b := range []jetstream.KeyValue{q.results, q.state, q.alive} {
		if _, err := q.js.KeyValue(ctx, b.Bucket()); errors.Is(err, jetstream.ErrBucketNotFound) {
			return "bucket " + b.Bucket()
		}
	}
	if _, err := q.js.ObjectStore(ctx, q.objectsName()); errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return "object store " + q.objectsName()
	}
	if _, err := q.js.Consumer(ctx, q.streamName(), q.consumerName()); errors.Is(err, jetstream.ErrConsumerNotFound) {
		return "consumer " + q.consumerName()
	}
	return ""
}

func (q *Queue) restore(ctx context.Context) error {
	q.mu.Lock()
	ids := make([]string, 0, len(q.waiting))
	for id := range q.waiting {
		ids = append(ids, id)
	}
	q.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	info, err := q.cells.Info(ctx, jetstream.WithSubjectFilter(q.subject(">")))
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, lies := info.State.Subjects[q.subject(id)]
		body := q.missed(id, lies)
		if body == nil {
			continue
		}
		found, err := q.result(ctx, id)
		if err != nil {
			return err
		}
		if found != nil {
			q.deliver(id, *found)
			continue
		}
		if err := q.publish(ctx, id, body); err != nil {
			return err
		}
	}
	return nil
}

// missed counts that a cell was not found. At the second time it is its order, to look
// closer: what was on its way at the first one has arrived by then.
func (q *Queue) missed(id string, lies bool) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.waiting[id]
	switch {
	case w == nil:
		return nil
	case lies:
		w.missed = 0
		return nil
	}
	if w.missed++; w.missed < 2 {
		return nil
	}
	return w.order
}

// announce says that somebody asks for cells of this program.
func (q *Queue) announce(ctx context.Context) error {
	text, err := json.Marshal(q.Code)
	if err == nil {
		_, err = q.alive.Put(ctx, codeKey(q.Code), text)
	}
	return err
}

func codeKey(c Code) string { return "code." + c.name() }

const workerPrefix = "worker."

// count finds out which workers there are, and what they say.
func (q *Queue) count(ctx context.Context) {
	mine := workerPrefix + q.Code.name() + "."
	watch, err := q.alive.Watch(ctx, mine+"*", jetstream.IgnoreDeletes())
	if err != nil {
		return
	}
	defer func() { _ = watch.Stop() }()
	crew, most := []cells.Hand{}, time.After(lookAfterEvery)
	for {
		var entry jetstream.KeyValueEntry
		var ok bool
		select {
		case entry, ok = <-watch.Updates():
			if !ok {
				return
			}
		case <-ctx.Done():
			return
		case <-most: // servers that are busy, or gone: what was known stays
			return
		}
		if entry == nil { // these were all
			break
		}
		var h cells.Hand
		if json.Unmarshal(entry.Value(), &h) == nil {
			h.Name = strings.TrimPrefix(entry.Key(), mine)
			crew = append(crew, h)
		}
	}
	slices.SortFunc(crew, func(a, b cells.Hand) int { return strings.Compare(a.Name, b.Name) })
	q.mu.Lock()
	defer q.mu.Unlock()
	q.crew = crew
}
