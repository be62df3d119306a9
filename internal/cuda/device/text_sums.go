//go:build linux

package device

import "slices"

// textSummed is a layer whose examples' gradients are added up, as text_sums.cuh has it.
type textSummed struct {
	x, d        parts
	parts       uintptr
	bias, first int32
}

// textSummeds are those of a launch.
type textSummeds struct {
	of           [16]textSummed
	count, split int32
}

// addTexts adds the last g texts' gradients times their factors to a sum.
func (n *Network) addTexts(g int, sum, factors uintptr) {
	others := func() {
		for i := range n.layers {
			if l := &n.layers[i]; l.Kind == "embedding" || l.Kind == "positions" {
				n.addParted(l, g, sum, factors)
			}
		}
		n.addNorms(g, sum, factors)
	}
	for _, some := range n.textSums(func(l *layer) summed { return n.summedOf(l, sum) }) {
		split := some.split(g)
		list, adding := textSummeds{count: int32(len(some)), split: int32(split)}, summeds{count: int32(len(some)), split: int32(split)}
		copy(adding.of[:], some)
		room, blocks, adds := n.parts, 0, 0
		for k := range some {
			l := &adding.of[k]
			list.of[k] = textSummed{x: n.partsAt(l.x, int(l.m)), d: n.partsAt(l.d, int(l.n)), parts: room, bias: l.bias, first: int32(blocks)}
			l.parts, l.adds = room, int32(adds)
			room += uintptr(4 * split * l.values())
			blocks += split * groupTile.blocks(int(l.m), int(l.n))
			adds += tiles(l.values(), 4*256)
		}
		product := func() {
			n.callShared("text_sum", along(tiles(blocks, sumCluster)*sumCluster, 1), 384, textSumBytes, factors, list, g)
		}
		if others == nil {
			product()
		} else {
			n.d.part()
			product()
			n.d.onBeside(others) // on the processors that it leaves
			n.d.rejoin()
			others = nil
		}
		n.call("text_adds", along(adds, 1), 256, adding)
	}
}

// textSums are the sums of layers whose gradients are products, by launch.
func (n *Network) textSums(of func(*layer) summed) (launches []together) {
	for some := range slices.Chunk(n.texts.products(), len(textSummeds{}.of)) {
		var launch together
		for _, i := range some {
			launch = append(launch, of(&n.layers[i]))
		}
		launches = append(launches, launch)
	}
	return launches
}

// together are sums of a launch.
type together []summed

// split is in how many parts they are made, of so many examples: a processor has one block at a time,
// and every part is added up once more.
func (t together) split(examples int) int {
	return max(1, min(processors/groupTile.sumBlocks(t), tiles(examples*textPlaces, 128)))
}

// values is how many values a part of theirs has.
func (t together) values() (count int) {
	for _, l := range t {
		count += l.values()
	}
	return count
}

// keptRows are norms whose gradients are kept, as text_sums.cuh has it.
type keptRows struct{ kept0, to [32]int32 }

// addNorms adds the gradients of norms' factors and constants.
func (n *Network) addNorms(g int, sum, factors uintptr) {
	norms := []int{n.texts.norm}
	for _, b := range n.texts.blocks {
		norms = append(norms, b.norm, b.between)
	}
	for some := range slices.Chunk(norms, len(keptRows{}.to)) {
		var list keptRows
		for k, i := range some {
			list.kept0[k], list.to[k] = int32(n.layers[i].kept0), int32(n.layers[i].Start)
		}
		n.call("text_rows", along(len(some)*2*textColumns, 32), 256, n.room.kept, factors, sum, g, n.keptRow, list)
	}
}
