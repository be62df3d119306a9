package federation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/fl"
)

// aggregate reads the releases back in client order and moves the state on.
func (c *Coordinator) aggregate(ctx context.Context, r *openRound, answers []store.Answer, released int) error {
	n := c.algorithm.ReleaseLength()
	room, err := newVectors(released*n, c.scratch)
	if err != nil {
		return err
	}
	defer room.free()
	clients := make([]int, 0, released)
	for _, a := range answers {
		if a.Kind != store.Released {
			continue
		}
		i := len(clients)
		if err := c.readUpdate(ctx, r.number, a, room.bytes[8*n*i:8*n*(i+1)]); err != nil {
			return fmt.Errorf("the release of %s: %w", c.names[a.Participant], err)
		}
		clients = append(clients, a.Participant)
	}
	room.settle()
	out := c.algorithm.Aggregate(c.state, fl.Releases{Clients: clients, Vectors: room.values, Declined: len(r.clients) - released})
	if out.Err != nil {
		c.log.Warn("the round's releases could not be used; the models are as before", "round", r.number+1, "error", out.Err)
	}
	return nil
}

// readUpdate reads an accepted release back and checks that it is what was accepted.
func (c *Coordinator) readUpdate(ctx context.Context, round int, a store.Answer, raw []byte) error {
	err := c.store.again(ctx, "read a release back", func(bool) error {
		blob, err := c.store.OpenUpdate(ctx, c.plan.Run, round, a.Participant)
		if err != nil {
			return err
		}
		defer blob.Close()
		if blob.Size() != int64(len(raw)) {
			return fmt.Errorf("%w: it has %d bytes on disk, wanted %d", store.ErrDamaged, blob.Size(), len(raw))
		}
		if _, err := blob.ReadAt(raw, 0); err != nil {
			return fmt.Errorf("read it back: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if sha256.Sum256(raw) != a.SHA256 {
		return errors.New("is not on disk what it was when it came: the disk has failed")
	}
	return nil
}

func encodeGob(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b.Bytes(), nil
}

func decodeGob(raw []byte, into any) error {
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(into); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	return nil
}

func decodeState(raw []byte) (*fl.State, error) {
	var s fl.State
	if err := decodeGob(raw, &s); err != nil {
		return nil, fmt.Errorf("the server's state: %w", err)
	}
	return &s, nil
}
