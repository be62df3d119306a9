package data

import (
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
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	family.Stream(purpose, 0).Shuffle(order)
	return order
}
