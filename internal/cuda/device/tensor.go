//go:build linux

package device

import (
	"fmt"
	"maps"
	"slices"
)

// tile is how a block of a product on tensor cores is cut (products.cuh): lines and columns, how
// many of k it takes at a time, and its threads; groups says that groups of warps have it.
type tile struct {
	lines, columns, k, threads int
	groups                     bool
}

// productTiles are those that there are kernels for, by what they do, the largest first.
var productTiles = map[string][]tile{
	"times":      {{128, 64, 16, 128, false}, {64, 64, 32, 128, false}, {32, 32, 64, 128, false}},
	"times_back": {{128, 64, 16, 256, false}, {64, 64, 32, 128, false}, {32, 32, 64, 128, false}},
	"times_sum":  {{128, 64, 16, 128, false}, {64, 64, 32, 128, false}, {32, 32, 64, 128, false}},
}

// name is lines, columns and warps.
func (t tile) name() string { return fmt.Sprint(t.lines, "x", t.columns, "x", t.threads/32) }

func (t tile) kernel(name string) string {
	if t.groups {
		return "group_" + name
	}
	return "tensor_" + name + "_" + t.name()
}

// blocks is how many of them a product of m x n values has.
func (t tile) blocks(m, n int) int { return tiles(m, t.lines) * tiles(n, t.columns) }

// shared is how many bytes of shared memory a block has: two steps of both sides, in three parts
// of two bytes each, with 16 bytes behind every row. A side lies along k or across it.
func (t tile) shared(along, columnsAlong bool) int {
	if t.groups {
		return groupSumShared
	}
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
	for _, name := range slices.Sorted(maps.Keys(productTiles)) {
		for _, t := range productTiles[name] {
			names = append(names, t.kernel(name))
		}
	}
	return slices.Concat(names, []string{"tensor_parts_sum"}, patchKernels())
}

// tilesFor are the tiles for products with such lengths, which have to be multiples of 4; none
// if the device has no tensor cores.
func (n *Network) tilesFor(name string, lengths ...int) []tile {
	for _, v := range lengths {
		if v%4 != 0 {
			return nil
		}
	}
	if !n.d.tensor {
		return nil
	}
	if n.tiles != nil {
		return n.tiles
	}
	return productTiles[name]
}

// fills says that so many blocks leave few processors idle.
func (n *Network) fills(blocks int) bool { return 4*blocks >= 3*int(n.d.processors) }

// tensorTile is the largest tile of which a product has blocks enough, or the smallest; ok is
// false if there is none for such lengths.
func (n *Network) tensorTile(name string, m, columns int, lengths ...int) (t tile, ok bool) {
	for _, t = range n.tilesFor(name, lengths...) {
		ok = true
		if n.fills(t.blocks(m, columns)) {
			break
		}
	}
	return t, ok
}

// summed is a layer whose examples' gradients are added up, as products.cuh has it.
type summed struct {
	x, d, parts, sum           uintptr
	m, n, bias, first, adds, _ int32
}

// summeds are those of a launch.
type summeds struct {
	of           [16]summed
	count, split int32
}

// together is how many blocks of sums the processors have at a time.
func (t tile) together() int {
	if t.groups {
		return processors
	}
	return 3 * processors
}

// tensorSplit is in how many parts sums of so many blocks are made: as few as nearly fill the
// processors some whole times.
func tensorSplit(blocks, together int) int {
	const most = 4
	best, share := 1, 0.0
	for turns := 1; turns <= most && share < 0.95; turns++ {
		if split := turns * together / blocks; float64(split*blocks)/float64(turns*together) > share {
			best, share = split, float64(split*blocks)/float64(turns*together)
		}
	}
	return best
}

// tensorSums adds the weighted gradients of layers on places of so many rows to their sums, and
// does meanwhile what is to run beside, unless that is nil.
func (n *Network) tensorSums(all []summed, rows int, beside func()) {
	for len(all) > 0 {
		list := summeds{}
		list.count = int32(copy(list.of[:], all))
		all = all[list.count:]
		t, split := n.sumTile(list.of[:list.count], rows)
		list.split = int32(split)
		parts, blocks, adds := n.parts, 0, 0
		for i := range list.of[:list.count] {
			l := &list.of[i]
			l.parts, l.first, l.adds = parts, int32(blocks), int32(adds)
			parts += uintptr(4 * split * l.values())
			blocks += split * t.blocks(int(l.m), int(l.n))
			adds += tiles(l.values(), 32)
		}
		product := func() {
			n.callShared(t.kernel("times_sum"), along(blocks, 1), t.threads, t.shared(false, false), n.parted.weights, list, rows)
		}
		if beside == nil {
			product()
		} else {
			n.d.atOnce(beside, product)
			beside = nil
		}
		n.call("tensor_parts_sum", along(adds, 1), 256, list)
	}
}

// values is how many a sum has.
func (l summed) values() int { return int((l.m + l.bias) * l.n) }

// sumBlocks is how many blocks one part of sums has.
func (t tile) sumBlocks(of []summed) (count int) {
	for _, l := range of {
		count += t.blocks(int(l.m), int(l.n))
	}
	return count
}

// sumTiles are the tiles for sums, the largest first.
func (n *Network) sumTiles(of []summed, rows int) []tile {
	if n.sumsByGroups(of, rows) {
		return append([]tile{groupTile}, n.tilesFor("times_sum")...)
	}
	return n.tilesFor("times_sum")
}

// sumTile is how sums are cut, and in how many parts: there is a tile for them.
func (n *Network) sumTile(of []summed, rows int) (t tile, split int) {
	for _, t = range n.sumTiles(of, rows) {
		blocks := t.sumBlocks(of)
		split = min(tensorSplit(blocks, t.together()), tiles(rows, 128))
		if n.fills(split * blocks) {
			break
		}
	}
	return t, split
}

// sumShape is of which size the sum of a layer on places is, or of scores.
func sumShape(l *layer) summed {
	if l.Kind == "scores" { // whose matrix is of vectors
		return summed{m: int32(l.Words), n: int32(l.In.Channels)}
	}
	return summed{m: int32(l.In.Channels), n: int32(l.Out.Channels), bias: int32(l.biases())}
}

// summedOf is that sum, and what it is of.
func (n *Network) summedOf(l *layer, sum uintptr) summed {
	one := sumShape(l)
	one.x, one.d, one.sum = n.values[l.From], l.gradient, sum+uintptr(4*l.Start)
	if l.Kind == "scores" {
		one.x, one.d = one.d, one.x
	}
	return one
}

// roomForSums says how many values the parts of sums have at the most.
func (n *Network) roomForSums() {
	var all []summed
	rows := 0
	for i := range n.layers {
		if l := &n.layers[i]; l.Kind == "places" || l.Kind == "scores" {
			if one := sumShape(l); len(n.tilesFor("times_sum", int(one.m), int(one.n))) > 0 {
				all = append(all, one)
			}
			rows = max(rows, n.chunk*placesOf(l))
		}
	}
	together := 1
	if n.onlyPlaces() {
		together = len(summeds{}.of)
	}
	for some := range slices.Chunk(all, together) {
		values, split := 0, 0
		for _, l := range some {
			values += l.values()
		}
		for _, t := range n.sumTiles(some, 4*rows) { // whatever rows there will be
			split = max(split, min(tensorSplit(t.sumBlocks(some), t.together()), tiles(rows, 128)))
		}
		n.partCount = max(n.partCount, split*values)
	}
}
