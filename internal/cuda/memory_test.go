package cuda

import "testing"

func TestEvenly(t *testing.T) {
	for _, c := range [][3]int{{0, 576, 1}, {1, 576, 1}, {576, 576, 576}, {577, 576, 289}, {4096, 576, 512}, {43, 16, 15}} {
		if got := evenly(c[0], c[1]); got != c[2] {
			t.Errorf("%d examples by %d at most: %d at a time instead of %d", c[0], c[1], got, c[2])
		}
	}
}
