//go:build linux

package device

import (
	"fmt"

	"github.com/coterie-fl/coterie/internal/cuda"
)

// merging is how one kernel of merged.cuh takes gradients back through a convolution and a
// pool, and makes those of the first convolution's filter, which the pool reads; no name: it
// does not.
type merging struct {
	sliding
	taps taps
}

// mergedStrips are strips that merged.cuh has kernels for, by the widths of the filters: of the
// convolution behind the pool, and of the first one.
var mergedStrips = map[[2]int]strip{{4, 8}: {13, 4, true, 224, 1}}

// mergedKernel is the name of that for filters of k columns behind a pool, and first ones
// before it.
func (s strip) mergedKernel(k, first int) string {
	return fmt.Sprint("merged_", k, "_", s.pixels, "_", first)
}

// merge chooses what blocks of such a kernel compute, each of a picture: back is the window of
// gradients at the pool, first that of the convolution before it. There is none where two
// blocks would need more than so many bytes of shared memory.
func merge(back, first window, bias bool, most int) (one merging) {
	k, k1 := int(back.kernelW), int(first.kernelW)
	s, ok := mergedStrips[[2]int{k, k1}]
	if !ok || !slides(back) || !slides(first) || back.outC%4 != 0 {
		return one
	}
	columns, groups, lines := tiles(int(back.outW), s.pixels), tiles(int(back.outC), s.channels), int(back.outH)
	if columns*groups*lines > s.threads {
		return one
	}
	t := taps{outH: first.outH, outW: first.outW, outC: first.outC, inH: first.inH, inW: first.inW, inC: first.inC, padding: first.padding}
	if bias {
		t.bias = 1
	}
	eights, quads := tiles(int(first.outC), 8), 1+(k1+2)/4
	t.channels, t.groups, t.rows = first.inC, int32(eights), first.outH
	t.wide = int32(tiles(int(first.outW), 4) * 4)
	t.pitch = (t.wide/4 + int32(quads) - 1 | 1) * 4
	t.plane = ((first.outH+int32(k1)-1)*t.pitch/4 | 1) * 4
	t.overQuads, t.overColumns = over(int(first.inC)), over(int(t.wide)+k1-1)
	each := int(first.inC) * k1 * eights
	for _, chunk := range chunksOf(back) { // the largest first
		one.sliding = slidingBy(back, s, 1, lines, 1, columns, groups, chunk)
		t.parts = int32(min(one.threads/each, int(first.outH)))
		between := 4 * int(first.outH*t.wide) * (eights*2 | 1) * 4
		one.shared = max(one.shared, between+4*int(first.inC*t.plane), 4*8*k1*each*int(t.parts))
		if t.parts < 1 || one.threads < eights*8 {
			return merging{}
		}
		if 2*(one.shared+declaredBytes) <= most {
			one.name, one.taps = s.mergedKernel(k, k1), t
			return one
		}
	}
	return merging{}
}

// mergeBack has one kernel take gradients from a convolution to the filter of the first one,
// where there is one for what lies between both: a pool.
func (n *Network) mergeBack() {
	if cuda.Parted(n.plan) {
		return
	}
	for i := 2; i < len(n.layers); i++ {
		first, pool, l := &n.layers[i-2], &n.layers[i-1], &n.layers[i]
		if l.Kind == "conv" && l.slides[1].name != "" && n.unpools(i-2) && pool.activation.kind == 0 && filterTiles(*first) <= 32 {
			l.merged = merge(l.back, first.forward, first.Bias, n.d.shared) // which reads the filter as slides[1] does
		}
	}
}

// merges says whether layer i's way back has the gradients of the first layer's filter, too,
// and isMerged whether layer i is that first one.
func (n *Network) merges(i int) bool { return i < len(n.layers) && n.layers[i].merged.name != "" }

func (n *Network) isMerged(i int) bool { return n.merges(i + 2) }

// merge starts the kernel that goes back from layer i of g examples.
func (n *Network) merge(i, g int) {
	first, pool, l := &n.layers[i-2], &n.layers[i-1], &n.layers[i]
	at := n.room
	at.kept0, at.squares0 = int32(first.kept0), int32(first.squares0)
	n.mergeTo(&l.merged, pool, g, l.gradient, l.arranged[1], n.values[first.From], at, filterTiles(*first))
}

// mergeTo is merge of gradients d, and inputs x, of so many squares.
func (n *Network) mergeTo(m *merging, pool *layer, g int, d, filter, x uintptr, at room, squares int) {
	s := m.shape
	s.examples = int32(g)
	p := unpooling{int32(pool.Out.Height), int32(pool.Out.Width), int32(pool.Stride), pool.which}
	n.callShared(m.name, [3]int{g, 1, 1}, m.threads, m.shared, s, m.taps, p, d, filter, x, at, squares)
}
