package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/internal/rng"
)

// splitKeyed draws which of n clients train, by a shuffle keyed by seed and
// purpose: floor(share*n) of them. Both parts come in ascending order, so that a
// client's place never depends on the draw.
func splitKeyed(seed uint64, purpose string, n int, share float64) (train, rest []int, err error) {
	if !(share > 0 && share <= 1) {
		return nil, nil, fmt.Errorf("a training share of %v; allowed: above 0, at most 1", share)
	}
	// (1-0.9)*10 is 0.999…: the small addend undoes rounding, and adds no client.
	count := int(share*float64(n) + 1e-9)
	if count == 0 {
		return nil, nil, fmt.Errorf("a share of %v of %d clients is nobody: take a larger share or more clients", share, n)
	}
	order := shuffled(seed, purpose, n)
	train, rest = order[:count:count], order[count:]
	slices.Sort(train)
	slices.Sort(rest)
	return train, rest, nil
}

// those are the values at some places.
func those[T any](values []T, places []int) []T {
	out := make([]T, len(places))
	for i, place := range places {
		out[i] = values[place]
	}
	return out
}

// shuffled is 0..n-1 in the order of a draw, by seed and purpose.
func shuffled(seed uint64, purpose string, n int) []int {
	family := rng.NewFamily(seed, purpose)
	return keyedOrder(&family, 0, n)
}

// keyedOrder is 0..n-1 in the order of a draw of a family.
func keyedOrder(family *rng.Family, purpose, n int) []int {
	order := places(n)
	family.Stream(purpose, 0).Shuffle(order)
	return order
}

// places are 0..n-1.
func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

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
