package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/coterie-fl/coterie/sweep/cells"
)

const (
	// tries is how often a cell may fail with an error.
	tries = 3
	// deaths is how often workers may be lost over a cell, since its last checkpoint, before
	// the cell is thought to be the reason.
	deaths = 10
)

// take makes a cell. An error means that this worker is not fit to go on.
func (h *shift) take(ctx context.Context, slot int, makers map[string]cells.Maker, m jetstream.Msg) error {
	id := m.Subject()[strings.LastIndexByte(m.Subject(), '.')+1:]
	found, err := h.result(ctx, id)
	if err != nil { // the servers cannot say: another time
		h.Log("cell %.12s: %v", id, err)
		return h.giveBack(m, time.Second)
	}
	if found != nil && found.Failed == "" {
		return h.settle(m) // made before: only the word of it was lost
	}
	var o order
	if err := json.Unmarshal(m.Data(), &o); err != nil {
		return h.fail(ctx, id, m, fmt.Errorf("the cell is not understood: %w", err), true)
	}
	maker, ok := makers[o.Kind]
	if !ok {
		return h.fail(ctx, id, m, fmt.Errorf("this program makes no cells of the kind %q", o.Kind), true)
	}
	keep := &keeper{shift: h, ctx: ctx, id: id, turn: turnOf(m), slot: slot}
	if lost := keep.lost(); lost > deaths {
		return h.fail(ctx, id, m, fmt.Errorf("%d workers took it and none of them lived to finish it or to keep a checkpoint: it may need more memory than they have", lost), true)
	}
	release := h.hold(m)
	keep.does(o.Kind + " " + id[:12])
	began := time.Now()
	value, err := attempt(ctx, maker, cells.Bench{Data: h.Data, Keep: keep, Objects: h.objects, Tell: keep.does, Made: h.other}, o.Spec)
	defer h.says(slot, "")
	defer release()
	switch {
	case ctx.Err() != nil && err != nil:
		return h.giveBack(m, 0)
	case errors.Is(err, cells.ErrUnfit):
		_ = h.giveBack(m, 0)
		return err
	case err != nil:
		return h.fail(ctx, id, m, err, false)
	}
	return h.finish(ctx, id, m, value, time.Since(began), keep, o.Varies)
}

// other is what came of another cell; nil: nothing yet.
func (h *shift) other(ctx context.Context, kind string, identity any) (json.RawMessage, error) {
	id, err := name(kind, identity)
	if err != nil {
		return nil, err
	}
	found, err := h.result(ctx, id)
	if err != nil || found == nil || found.Failed != "" {
		return nil, err
	}
	return h.read(ctx, id, *found)
}

// attempt makes a cell; one that panics has failed.
func attempt(ctx context.Context, maker cells.Maker, b cells.Bench, spec json.RawMessage) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return maker(ctx, b, spec)
}

// hold renews the lease of a cell until it is released.
func (h *shift) hold(m jetstream.Msg) (release func()) {
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(h.lease / 3)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				_ = m.InProgress() // lost: another worker takes it, and the first result counts
			}
		}
	}()
	return func() { close(done) }
}

// finish writes what came of a cell. The first result counts: that is the fence against a
// worker that was given up and comes back. The second must be the same bytes.
func (h *shift) finish(ctx context.Context, id string, m jetstream.Msg, value any, took time.Duration, keep *keeper, varies bool) error {
	result, err := json.Marshal(value)
	if err != nil {
		return h.fail(ctx, id, m, fmt.Errorf("its result: %w", err), true)
	}
	r := record{SHA256: hash(result), Worker: h.name, Seconds: took.Seconds()}
	if len(result) > largest {
		err = h.persist(ctx, "store a result", func(ctx context.Context) (err error) {
			r.Object, err = h.objects.putBytes(ctx, result)
			return err
		})
	} else {
		r.Result = result
	}
	if err == nil {
		err = h.write(ctx, id, r, varies)
	}
	if errors.Is(err, ErrDiffer) {
		_ = h.settle(m)
		return err
	}
	if err != nil { // ctx ended: whoever takes the cell next makes it again
		h.Log("cell %.12s: %v", id, err)
		return h.giveBack(m, 0)
	}
	h.made.Add(1)
	keep.forget()
	return h.settle(m)
}

// write writes a cell's record unless there is one, which must be the same.
func (h *shift) write(ctx context.Context, id string, r record, varies bool) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var differ error
	err = h.persist(ctx, "write a result", func(ctx context.Context) error {
		_, err := h.results.Create(ctx, h.resultKey(id), text)
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		first, err := h.result(ctx, id)
		if err != nil || first == nil {
			return errors.Join(errors.New("a result was there, and is not"), err)
		}
		if first.Failed != "" && r.Failed == "" { // it can be made after all
			_, err = h.results.Put(ctx, h.resultKey(id), text)
			return err
		}
		if varies || first.Failed != "" || r.Failed != "" || first.SHA256 == r.SHA256 {
			return nil
		}
		d := difference{Cell: id, Code: h.Code, First: first.Worker, FirstSHA256: first.SHA256, Second: r.Worker, SecondSHA256: r.SHA256}
		differ = d.err()
		text, err := json.Marshal(d)
		if err == nil {
			_, err = h.results.Put(ctx, differKey(id), text)
		}
		return err
	})
	return errors.Join(err, differ)
}

// fail notes why a cell failed. It is tried again, by whoever takes it, unless that would
// be for nothing or has been done often enough.
func (h *shift) fail(ctx context.Context, id string, m jetstream.Msg, why error, final bool) error {
	h.Log("cell %.12s failed: %v", id, why)
	var before []string
	entry, err := h.state.Get(ctx, errorKey(id))
	if err == nil {
		_ = json.Unmarshal(entry.Value(), &before)
	}
	before = append(before, fmt.Sprintf("%s: %v", h.name, why))
	if !final && len(before) < tries {
		text, err := json.Marshal(before)
		if err == nil {
			_, err = h.state.Put(ctx, errorKey(id), text)
		}
		if err != nil {
			h.Log("cell %.12s: its error cannot be noted: %v", id, err)
		}
		return h.giveBack(m, time.Duration(len(before))*time.Second)
	}
	words := why.Error()
	if len(before) > 1 {
		words = fmt.Sprintf("%d tries; the last: %v", len(before), why)
	}
	if err := h.write(ctx, id, record{Worker: h.name, Failed: words}, false); err != nil {
		return h.giveBack(m, 0)
	}
	_ = m.TermWithReason("failed")
	return nil
}

// settle says that a cell is made. If the word is lost the cell comes again, and its
// result is found.
func (h *shift) settle(m jetstream.Msg) error {
	_ = m.Ack()
	return nil
}

// giveBack lets another worker have a cell.
func (h *shift) giveBack(m jetstream.Msg, after time.Duration) error {
	if after > 0 {
		_ = m.NakWithDelay(after)
	} else {
		_ = m.Nak()
	}
	return nil
}
