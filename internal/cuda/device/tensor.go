//go:build linux

package device

import (
	"fmt"
	"os"
)

// tile is how a block of a product on tensor cores is cut (products.cuh): lines and columns, how
// many of k it takes at a time, and its threads.
type tile struct{ lines, columns, k, threads int }

// tensorTiles are those that there are kernels for, the largest first; the first is for whoever
// times them.
var tensorTiles = []tile{{128, 128, 16, 256}, {128, 64, 16, 256}, {64, 64, 32, 128}, {32, 32, 32, 128}}

func (t tile) kernel(name string) string {
	return fmt.Sprint("tensor_", name, "_", t.lines, "x", t.columns)
}

// blocks is how many of them a product of m x n values has.
func (t tile) blocks(m, n int) int { return tiles(m, t.lines) * tiles(n, t.columns) }

// shared is how many bytes of shared memory a block has: two steps of both sides, in three parts
// of two bytes each, with 16 bytes behind every row. A side lies along k or across it.
func (t tile) shared(along, columnsAlong bool) int {
	side := func(lines int, along bool) int {
		if along {
			return lines * (t.k + 8)
		}
		return t.k * (lines + 8)
	}
	return 2 * 3 * 2 * (side(t.lines, along) + side(t.columns, columnsAlong))
}

// tensorKernels are the names of the kernels in tensor.cu.
func tensorKernels() (names []string) {
	for _, t := range tensorTiles {
		for _, name := range []string{"times", "times_back", "times_sum"} {
			names = append(names, t.kernel(name))
		}
	}
	return names
}

// tensorTile is the largest tile of which a product in so many parts has blocks for all
// processors, or the smallest; ok is false if the device has no tensor cores, or lengths are not
// multiples of 4.
func (n *Network) tensorTile(m, columns, split int, lengths ...int) (t tile, ok bool) {
	if !n.d.tensor {
		return t, false
	}
	for _, v := range lengths {
		if v%4 != 0 {
			return t, false
		}
	}
	if named := os.Getenv("COTERIE_CUDA_TILE"); named != "" { // for whoever works on them
		for _, t = range tensorTiles {
			if named == fmt.Sprint(t.lines, "x", t.columns) {
				return t, true
			}
		}
		return t, false
	}
	for _, t = range tensorTiles[1:] {
		if split*t.blocks(m, columns) >= int(n.d.processors) {
			break
		}
	}
	return t, true
}
