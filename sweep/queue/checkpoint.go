package queue

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// mark says where a cell's newest checkpoint lies.
type mark struct {
	Run    string `json:"run"`    // of the cell's runs, which one
	Rounds int    `json:"rounds"` // made by then
	Object string `json:"object"` // its name in the object store
	Turn   turn   `json:"turn"`   // whose it is
}

// turn is one delivery of a cell: a later one has been given the cell after an earlier one
// was given up.
type turn struct {
	Order    uint64 `json:"order"`    // of all that were queued, which: a cell may be queued again
	Delivery int    `json:"delivery"` // how often this one has been handed out
}

func (t turn) after(other turn) bool {
	return t.Order > other.Order || t.Order == other.Order && t.Delivery > other.Delivery
}

func turnOf(m jetstream.Msg) turn {
	meta, err := m.Metadata()
	if err != nil {
		return turn{}
	}
	return turn{meta.Sequence.Stream, int(meta.NumDelivered)}
}

// keeper keeps one cell's checkpoints. It moves forward only: a worker that was given up
// and comes back with an older one changes nothing.
type keeper struct {
	*shift
	ctx     context.Context
	id      string
	turn    turn
	touched bool // there is a checkpoint, or may be
	slot    int
	words   string // what the slot does; under mu
}

// does says what the slot does.
func (k *keeper) does(words string) {
	k.mu.Lock()
	k.words = words
	k.mu.Unlock()
	k.says(k.slot, words)
}

// Every is the least time between two checkpoints.
func (k *keeper) Every() time.Duration {
	if k.CheckpointEvery > 0 {
		return k.CheckpointEvery
	}
	return k.lease / 3
}

// patient is a context for what has to be done also when the worker is being stopped.
func (k *keeper) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(k.ctx), 20*time.Second)
}

func (k *keeper) read(ctx context.Context) (m mark, revision uint64, err error) {
	entry, err := k.state.Get(ctx, checkpointKey(k.id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return m, 0, nil
	}
	if err != nil {
		return m, 0, err
	}
	return m, entry.Revision(), json.Unmarshal(entry.Value(), &m)
}

// lost is how many workers were lost over the cell since a checkpoint was kept last.
func (k *keeper) lost() int {
	if k.turn.Delivery <= 1 {
		return 0
	}
	k.touched = true
	m, _, err := k.read(k.ctx)
	switch {
	case err != nil:
		return 0 // not known: nobody is blamed
	case m.Turn.Order == k.turn.Order:
		return k.turn.Delivery - 1 - m.Turn.Delivery
	}
	return k.turn.Delivery - 1
}

// Load is the newest checkpoint of a run of this cell; nil: there is none.
func (k *keeper) Load(run string) []byte {
	m, _, err := k.read(k.ctx)
	if err != nil || m.Run != run {
		return nil
	}
	raw, err := k.objects.store.GetBytes(k.ctx, m.Object)
	if err != nil {
		k.Log("cell %.12s begins again: %v", k.id, err)
		return nil
	}
	k.touched = true
	k.Tell("cell %.12s goes on after round %d, where another worker was", k.id, m.Rounds)
	return raw
}

// Save keeps a checkpoint, unless a later one is kept.
func (k *keeper) Save(run string, rounds int, write func(io.Writer) error) {
	k.mu.Lock()
	words := k.words
	k.mu.Unlock()
	k.says(k.slot, fmt.Sprintf("%s, after round %d", words, rounds))
	if err := k.save(run, rounds, write); err != nil {
		k.Log("cell %.12s: its checkpoint cannot be kept, a worker that takes it up begins at an older one: %v", k.id, err)
	}
}

func (k *keeper) save(run string, rounds int, write func(io.Writer) error) error {
	ctx, cancel := k.patient()
	defer cancel()
	last, revision, err := k.read(ctx)
	if err != nil {
		return err
	}
	if last.Run == run && last.Rounds > rounds || last.Turn.after(k.turn) {
		return nil // somebody is further
	}
	var raw bytes.Buffer
	if err := write(&raw); err != nil {
		return err
	}
	k.touched = true
	// Under a name of its own: two workers may keep the same bytes, and whoever comes too late
	// removes what it has stored.
	m := mark{Run: run, Rounds: rounds, Turn: k.turn, Object: checkpointKey(k.id) + "." + rand.Text()}
	if _, err = k.objects.store.PutBytes(ctx, m.Object, raw.Bytes()); err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if revision == 0 {
		_, err = k.state.Create(ctx, checkpointKey(k.id), text)
	} else {
		_, err = k.state.Update(ctx, checkpointKey(k.id), text, revision)
	}
	if err != nil {
		return errors.Join(err, k.objects.store.Delete(ctx, m.Object))
	}
	if last.Object != "" {
		_ = k.objects.store.Delete(ctx, last.Object)
	}
	return nil
}

// forget removes the checkpoint of a cell that is made.
func (k *keeper) forget() {
	if !k.touched {
		return
	}
	ctx, cancel := k.patient()
	defer cancel()
	if m, _, err := k.read(ctx); err == nil && m.Object != "" {
		_ = k.objects.store.Delete(ctx, m.Object)
		_ = k.state.Delete(ctx, checkpointKey(k.id))
	}
}
