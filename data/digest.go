package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
)

// Digest reads all that is trained on, held out or validated by: who the clients are, how
// many examples each has, and what these are. Of clients that are not held it asks the crowd.
func (f *Federation) Digest() Digest {
	names, counts, examples := newHasher(), newHasher(), newHasher()
	examples.federation(f)
	if f.Crowd != nil {
		examples.crowd(f.Crowd)
	}
	for _, clients := range [][]Client{f.Train, f.Validation} {
		for _, h := range []*hasher{names, counts, examples} {
			h.number(len(clients))
		}
		for i := range clients {
			c := &clients[i]
			names.text(c.Name)
			counts.number(c.Len())
			if c.Held != nil {
				counts.number(c.Held.Len())
			}
			examples.client(c)
		}
	}
	return Digest{f.Clients() + len(f.Validation), names.sum(), counts.sum(), examples.sum()}
}

// Digested is a crowd whose examples are not drawn by the seed: it has hashed them when it
// read them, and is not asked to read them all again.
type Digested interface {
	Digest() [sha256.Size]byte
}

// hashed are people who say what their examples are made of, which is less than the inputs
// that are computed of it, and more than they show before contacts are drawn. What several
// clients' people are made of is one part with one key.
type hashed interface {
	Hash(part func(key any, write func(w io.Writer)))
}

// hasher hashes examples. Everything has its length before it, so that no two contents are
// the same bytes.
type hasher struct {
	hash.Hash
	buffer []byte
	parts  map[any][sha256.Size]byte // that were hashed already
}

func newHasher() *hasher {
	return &hasher{Hash: sha256.New(), parts: map[any][sha256.Size]byte{}}
}

func (h *hasher) sum() (sum [sha256.Size]byte) {
	h.Sum(sum[:0])
	return sum
}

func (h *hasher) number(v int) {
	h.Write(binary.LittleEndian.AppendUint64(h.buffer[:0], uint64(v)))
}

func (h *hasher) text(s string) {
	h.number(len(s))
	io.WriteString(h.Hash, s)
}

// hashedAtOnce is how many values become bytes at a time.
const hashedAtOnce = 1 << 10

// numbers hashes values of 8 bytes each.
func numbers[T any](h *hasher, all []T, bits func(T) uint64) {
	h.number(len(all))
	for some := range slices.Chunk(all, hashedAtOnce) {
		h.buffer = slices.Grow(h.buffer[:0], 8*len(some))[:8*len(some)]
		for i, v := range some {
			binary.LittleEndian.PutUint64(h.buffer[8*i:], bits(v))
		}
		h.Write(h.buffer)
	}
}

func (h *hasher) floats(all []float64) { numbers(h, all, math.Float64bits) }

// federation hashes what is no client's own.
func (h *hasher) federation(f *Federation) {
	h.text(fmt.Sprint(f.Features, f.Classes, f.Reconstruct, f.Vocabulary, f.Unit))
	encoding, err := json.Marshal(f.Encoding)
	h.text(fmt.Sprintf("%s %v", encoding, err))
	if f.Words != nil {
		_ = f.Words.Write(h) // a hash takes everything
	}
	for _, a := range f.Sensitive {
		h.text(fmt.Sprintf("%q %q", a.Name, a.Values))
		h.groups(a.Groups)
	}
}

// groups hashes places in lists.
func (h *hasher) groups(all [][]int32) {
	h.number(len(all))
	for _, groups := range all {
		numbers(h, groups, func(v int32) uint64 { return uint64(v) })
	}
}

// client hashes a client's examples and those that it holds out.
func (h *hasher) client(c *Client) {
	h.number(c.Group)
	h.number(c.Features)
	h.groups(c.Sensitive)
	h.floats(c.X)
	h.floats(c.Y)
	if c.Images != nil {
		h.pictures(c.Pictures)
	}
	if c.People != nil {
		h.people(c.People)
	}
	if c.Held == nil {
		h.number(0)
		return
	}
	h.number(1)
	h.client(c.Held)
}

func (h *hasher) pictures(p Pictures) {
	h.text(fmt.Sprint("pictures", p.Images.Height, p.Images.Width, p.Images.Channels, len(p.Index), p.Images.Targets != nil))
	for _, i := range p.Index {
		h.Write(p.Images.picture(i))
		if p.Images.Targets != nil {
			h.number(int(math.Float64bits(p.Images.Targets[i])))
		} else {
			h.number(p.Images.Labels[i])
		}
	}
}

func (h *hasher) people(p People) {
	if some, ok := p.(somePeople); ok {
		numbers(h, some.places, func(v int) uint64 { return uint64(v) })
		p = some.People
	}
	h.text(fmt.Sprint("people", p.Persons(), p.Inputs(), p.Windows()))
	for i := range p.Persons() {
		h.number(int(p.ID(i)))
	}
	if made, ok := p.(hashed); ok {
		made.Hash(h.part)
		return
	}
	input := make([]float32, p.Inputs())
	for i := range p.Persons() {
		for window := range p.Windows() {
			h.number(p.Input(input, i, window))
			numbers(h, input, func(v float32) uint64 { return uint64(math.Float32bits(v)) })
		}
	}
}

// part hashes what several clients' examples are made of, the first time only.
func (h *hasher) part(key any, write func(w io.Writer)) {
	sum, known := h.parts[key]
	if !known {
		own := newHasher()
		write(own)
		sum = own.sum()
		h.parts[key] = sum
	}
	h.Write(sum[:])
}

// crowd hashes what is known of clients that are not held. Those that are drawn follow from
// the run file.
func (h *hasher) crowd(c Crowd) {
	switch of := c.(type) {
	case *heldOut:
		h.crowd(of.Crowd)
	case *settledCrowd:
		h.crowd(of.Crowd)
	case Digested:
		sum := of.Digest()
		h.Write(sum[:])
	}
	h.number(c.Len())
}
