package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/coterie-fl/coterie/federation/store"
)

// read reads a round's releases back in client order.
func (c *Coordinator) read(ctx context.Context, r *openRound, answers []store.Answer, released int) (room *vectors, clients []int, err error) {
	n, _ := c.expected(r.number)
	if room, err = newVectors(released*n, c.scratch); err != nil {
		return nil, nil, err
	}
	early := newAhead()
	for _, a := range answers {
		if a.Kind != store.Released {
			continue
		}
		i := len(clients)
		if err := c.readUpdate(ctx, r.number, a, early, room.bytes[8*n*i:8*n*(i+1)]); err != nil {
			room.free()
			return nil, nil, fmt.Errorf("the release of %s: %w", c.names[a.Participant], err)
		}
		clients = append(clients, a.Participant)
	}
	room.settle()
	return room, clients, nil
}

// readUpdate reads an accepted release back and checks that it is what was accepted.
func (c *Coordinator) readUpdate(ctx context.Context, round int, a store.Answer, early *ahead, raw []byte) error {
	if c.isSmall(a.Size) {
		content, found, err := c.readSmall(ctx, round, a.Participant, early)
		if err != nil {
			return err
		}
		if found {
			if len(content) != len(raw) {
				return fmt.Errorf("%w: it has %d bytes in the database, wanted %d", store.ErrDamaged, len(content), len(raw))
			}
			copy(raw, content)
			return unchanged(a, raw)
		}
	}
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
	return unchanged(a, raw)
}

// unchanged says whether a release is what it was when it came.
func unchanged(a store.Answer, raw []byte) error {
	if sha256.Sum256(raw) != a.SHA256 {
		return errors.New("is not on disk what it was when it came: the disk has failed")
	}
	return nil
}

// mappedFrom is the size from which a round's releases lie in a mapped file: memory
// then holds only what is being worked on.
const mappedFrom = 256 << 20

// vectors is room for a round's releases, one after another, as the bytes that came
// in and as the numbers that they are.
type vectors struct {
	bytes  []byte
	values []float64
	free   func()
}

// newVectors makes room, in a file of dir if there is much of it and dir is not
// empty.
func newVectors(values int, dir string) (*vectors, error) {
	if 8*values >= mappedFrom && dir != "" {
		raw, free, err := mapFile(dir, 8*values)
		if err != nil {
			return nil, err
		}
		if raw != nil {
			return &vectors{bytes: raw, values: unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(raw))), values), free: free}, nil
		}
	}
	v := make([]float64, values)
	return &vectors{bytes: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*values), values: v, free: func() {}}, nil
}

// settle turns little-endian bytes into this machine's numbers, in place: on most
// machines they are that already.
func (v *vectors) settle() {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return
	}
	for i := range v.values {
		v.values[i] = math.Float64frombits(binary.LittleEndian.Uint64(v.bytes[8*i:]))
	}
}
