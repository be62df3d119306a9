package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// notHeldOut is what holding out leaves to the other examples of a client.
const notHeldOut = "which examples are held out (a client all of whose examples would be keeps them: one example more or less then moves the others)"

// holdOut takes a share of every training client's own examples away from it and gives
// it them to be judged on, each by a number drawn from the example alone. A client that
// would be left without any to train on keeps all and holds out none.
func (f *Federation) holdOut(seed uint64, share float64) {
	for i := range f.Train {
		c := &f.Train[i]
		train, held := c.split(share, seed)
		if len(train) == 0 {
			train, held = held, nil
		}
		*c = c.divide(train, held)
	}
	f.NotCovered = append(slices.Clip(f.NotCovered), notHeldOut)
}

// divide is the client with some of its examples to train on and others held out.
func (c *Client) divide(train, held []int) Client {
	out, heldOut := c.Pick(train), c.Pick(held)
	out.Held = &heldOut
	return out
}

// split says which examples, by their places, train and which are held out.
func (c *Client) split(share float64, seed uint64) (train, held []int) {
	number, limit := c.numbers(seed, "hold out"), uint64(share*0x1p64)
	for i := range c.Len() {
		if number(i) < limit {
			held = append(held, i)
		} else {
			train = append(train, i)
		}
	}
	return train, held
}

// numbers draws a number for every example from the example alone, uniform on 64 bits,
// keyed by seed, purpose and client. A split that goes by it does with an example what
// it does whoever else is there: one more or less changes nothing about the others, as
// a shuffle of places would. Clients without a name have one key.
func (c *Client) numbers(seed uint64, purpose string) func(i int) uint64 {
	b := binary.LittleEndian.AppendUint64([]byte("coterie rows 1\x00"), seed)
	b = append(append(append(b, purpose...), 0), c.Name...)
	key := sha256.Sum256(b)
	var buffer []byte
	return func(i int) uint64 {
		buffer = c.bytes(i, buffer)
		h := sha256.New()
		h.Write(key[:])
		h.Write(buffer)
		return binary.LittleEndian.Uint64(h.Sum(nil))
	}
}

// atMost keeps the examples with the smallest numbers, in their old order. One example
// less lets another one in: where the number of examples is private that is not covered.
func atMost(limit int, index []int, number func(i int) uint64) []int {
	if limit == 0 || len(index) <= limit {
		return index
	}
	numbers := make(map[int]uint64, len(index))
	for _, i := range index {
		numbers[i] = number(i)
	}
	slices.SortStableFunc(index, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	index = index[:limit]
	slices.Sort(index)
	return index
}
