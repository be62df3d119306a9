package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"

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
		f.Train[i] = f.Train[i].withHeldOut(seed, share)
	}
	f.NotCovered = append(slices.Clip(f.NotCovered), notHeldOut)
}

func (c *Client) withHeldOut(seed uint64, share float64) Client {
	train, held := c.split(share, seed)
	if len(train) == 0 {
		train, held = held, nil
	}
	return c.divide(train, held)
}

// divide is the client with some of its examples to train on and others held out.
func (c *Client) divide(train, held []int) Client {
	out, heldOut := c.Pick(train), c.Pick(held)
	out.Held = &heldOut
	return out
}

// split says which examples, by their places, train and which are held out.
func (c *Client) split(share float64, seed uint64) (train, held []int) {
	limit := uint64(share * 0x1p64)
	for i, number := range c.numbers(seed, holdOut) {
		if number < limit {
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
func (c *Client) numbers(seed uint64, purpose string) []uint64 {
	key := drawKey(seed, purpose, c.Name)
	out := make([]uint64, c.Len())
	var running sync.WaitGroup
	share := max(leastShare, (len(out)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for from := 0; from < len(out); from += share {
		draw := func() {
			buffer := slices.Clone(key[:])
			for i := from; i < min(from+share, len(out)); i++ {
				buffer = c.appendBytes(i, buffer[:len(key)])
				out[i] = drawn(buffer)
			}
		}
		if share >= len(out) {
			draw()
		} else {
			running.Go(draw)
		}
	}
	running.Wait()
	return out
}

func drawKey(seed uint64, purpose, client string) [32]byte {
	b := binary.LittleEndian.AppendUint64([]byte("coterie rows 1\x00"), seed)
	return sha256.Sum256(append(append(append(b, purpose...), 0), client...))
}

// drawn is the number of a key and an example.
func drawn(keyAndExample []byte) uint64 {
	hash := sha256.Sum256(keyAndExample)
	return binary.LittleEndian.Uint64(hash[:])
}

// Holder says which rows of a client are held out, each by itself, as Silos.Federation
// does: for whoever can put rows where they belong at once.
type Holder struct {
	key   [32]byte
	limit uint64
}

// NewHolder holds out a share of a client's rows.
func NewHolder(seed uint64, share float64, client string) Holder {
	return Holder{drawKey(seed, holdOut, client), uint64(share * 0x1p64)}
}

// Holds says whether a row is held out. The buffer is for its use, from call to call.
func (h *Holder) Holds(x []float64, y float64, buffer *[]byte) bool {
	*buffer = appendRow(append((*buffer)[:0], h.key[:]...), x, y)
	return drawn(*buffer) < h.limit
}

// holdOut is the purpose of a draw.
const holdOut = "hold out"

// leastShare is how many examples are worth a goroutine.
const leastShare = 4096

// atMost keeps the examples with the smallest numbers, in their old order. One example
// less lets another one in: where the number of examples is private that is not covered.
func (c *Client) atMost(limit int, index []int, seed uint64) []int {
	if limit == 0 || len(index) <= limit {
		return index
	}
	numbers := c.numbers(seed, "limit")
	slices.SortStableFunc(index, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	index = index[:limit]
	slices.Sort(index)
	return index
}
