//go:build linux

package device

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/model"
)

// pooling is what pooled.cuh's kernels take beside what those of direct.cuh do.
type pooling struct {
	outH, outW, lines, stride, pitch int32
	overQuads, overWidth             uint32
}

// pooledSliding is how a convolution and the max-pool behind it are computed by one kernel
// of pooled.cuh; no name: they are not.
type pooledSliding struct {
	sliding
	pool pooling
}

// pooledStrips are strips that pooled.cuh has kernels for.
var pooledStrips = map[int][]strip{2: {far(10)}, 3: {far(8), far(9), {12, 8, true, 192, 0.8}}, 4: {far(9)}, 5: {far(9)}, 8: {far(9), {9, 4, true, 352, 0.9}}}

// pooledKernel is the name of that for filters of k columns.
func (s strip) pooledKernel(k int) string {
	if s.near {
		return fmt.Sprint("pooled_near_", k, "_", s.pixels, "_", s.channels)
	}
	return fmt.Sprint("pooled_", k, "_", s.pixels)
}

// slidePooled chooses a kernel for a window and a pool of 2x2 behind it, as slide does, whose
// blocks have at most so many bytes of shared memory; none where one would need more.
func slidePooled(w window, to model.Shape, stride, examples, most int) pooledSliding {
	return slidePooledBy(w, to, stride, examples, most, pooledStrips[int(w.kernelW)])
}

// slidePooledBy is slidePooled with these strips to choose from.
func slidePooledBy(w window, to model.Shape, stride, examples, most int, strips []strip) pooledSliding {
	best, least := pooledSliding{}, math.Inf(1)
	if !slides(w) || w.back == 1 {
		return best
	}
	k, outW := int(w.kernelW), int(w.outW)
	for _, s := range strips {
		columns := tiles(outW, s.pixels)
		for groups := 1; groups <= groupsOf(w, s); groups++ {
			for parts := 1; parts <= to.Height; parts++ {
				lines := tiles(to.Height, parts)
				rows := (lines-1)*stride + 2
				if tiles(to.Height, lines) != parts || rows*columns*groups > s.threads || s.splits(w, groups) {
					continue
				}
				quads := groups * s.channels / 4
				p := pooling{int32(to.Height), int32(to.Width), int32(lines), int32(stride), int32(outW*quads|1) * 4, over(quads), over(to.Width)}
				for _, chunk := range chunksOf(w) {
					one := slidingBy(w, s, 1, rows, parts, columns, groups, chunk)
					one.name = s.pooledKernel(k)
					one.shared = max(one.shared, 4*rows*int(p.pitch))
					if one.shared > most {
						continue
					}
					ending := float64(s.pixels*s.channels/4*6) + float64(60*lines*to.Width*quads)/float64(one.threads)
					if time := one.time(s, k, examples, ending); time < least {
						best, least = pooledSliding{one, p}, time
					}
				}
			}
		}
	}
	return best
}

// fusePools has one kernel compute convolutions and the pools behind them, where there is one.
func (n *Network) fusePools() {
	if cuda.Parted(n.plan) {
		return
	}
	for i := 1; i < len(n.layers); i++ {
		l, pool := &n.layers[i-1], &n.layers[i]
		if l.Kind == "conv" && l.activation.kind <= 1 && pool.Kind == "max-pool" && pool.Kernel == 2 && pool.Stride <= 2 && pool.Padding == 0 {
			if l.patches[0].name != "" { // tensor cores are faster, also with a pool of its own
				if pool.Stride == 2 {
					l.patchesPooled = patchesOf(l.forward, &pool.Out, n.d.shared)
				}
				continue
			}
			l.pooled = slidePooled(l.forward, pool.Out, pool.Stride, n.chunk, n.d.shared)
		}
	}
}

// pools says whether layer i's outputs are not there: the pool behind has them at once.
func (n *Network) pools(i int) bool {
	return i >= 0 && (n.layers[i].pooled.name != "" || n.layers[i].patchesPooled.name != "")
}

// unpools says whether the gradients at layer i's outputs are not there either: only its
// filter's gradients need them, and their kernel has them of the pool's.
func (n *Network) unpools(i int) bool {
	return n.pools(i) && n.layers[i].From == 0 && n.layers[i].taps.name != "" && n.layers[i].tensorTaps.name == ""
}

// slidePooled starts the kernel that computes a convolution and the pool behind it.
func (n *Network) slidePooled(l, pool *layer, g int, in, bias, out uintptr) {
	s, d := &l.pooled, l.pooled.shape
	d.examples = int32(g)
	n.callShared(s.name, s.grid(g), s.threads, s.shared, d, s.pool, in, l.arranged[0], bias, l.activation, pool.activation, out, pool.which)
}
