//go:build linux

package device

import (
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/internal/cuda"
)

// TestNormalsAreTheSame: noise that is drawn ahead has the bits of noise that is drawn where
// it is added, however many values there are.
func TestNormalsAreTheSame(t *testing.T) {
	n := bare(t)
	var keys cuda.Keys
	for i := range keys {
		keys[i] = 2654435761 * uint32(i+1)
	}
	for _, size := range []int{1, 4, 7, 11, 16, 29, 4101} {
		ahead := put(n, make([]float32, size+1))
		n.call("normals", along(tiles(size, 16)*2, 256), 256, ahead, keys, size)
		zero, sum := put(n, make([]float32, size)), put(n, make([]float32, size))
		last, direction, products := put(n, make([]float32, size)), put(n, make([]float32, size)), n.d.alloc(8*5*cuda.ProductParts(size))
		n.call("directions", along(size, 16*256), 256, sum, zero, last, direction, turning{deviation: 1}, keys, keys, products, size)
		got, want := get(t, n, ahead, size+1), get(t, n, sum, size)
		if !slices.Equal(got[:size], want) || got[size] != 0 {
			t.Errorf("%d values: others, or more", size)
		}
	}
}
