//go:build linux

package device

import (
	"fmt"
	"math"
	"math/bits"
)

// taps is what taps.cuh's kernels take: what a block computes, and how it holds what it
// reads.
type taps struct {
	outH, outW, outC, inH, inW, inC              int32
	padding, bias                                int32
	channels, groups, parts, rows                int32
	wide, pitch, plane                           int32
	overQuads, overColumns, overGroups, overWide uint32
}

// tapping is how the gradients of a filter are computed by a kernel of taps.cuh, which has
// its name with that of what it reads; no name: there is none for its width.
type tapping struct {
	name            string
	shape           taps
	across, deep    int // blocks of an example: by channels computed, by channels read
	threads, shared int
}

// tapLines are how many of a filter's lines a thread may have, by the filter's width: what
// taps.cuh has kernels for.
var tapLines = map[int][]int{2: {2}, 3: {3, 1}, 4: {2}, 5: {1}, 8: {1}}

// tap chooses a kernel, and what its blocks of an example compute of the gradient of w's
// filter, and of its biases: what takes the least time by a count of instructions. The number
// of parts is part of the order of the sums, so that the choice follows from the shape alone.
func tap(w window, bias bool) tapping { return tapBy(w, bias, tapLines[int(w.kernelW)]) }

// tapBy is tap with so many lines of a thread to choose from.
func tapBy(w window, bias bool, lines []int) tapping {
	best, least := tapping{}, math.Inf(1)
	if !slides(w) {
		return best
	}
	for _, ky := range lines {
		if one, time := tapLinesBy(w, bias, ky); time < least {
			best, least = one, time
		}
	}
	return best
}

// tapLinesBy is tap with lines of a filter a thread, and about how long it takes.
func tapLinesBy(w window, bias bool, lines int) (best tapping, least float64) {
	least = math.Inf(1)
	k, outH, outC, inC := int(w.kernelW), int(w.outH), int(w.outC), int(w.inC)
	quads, sums := 1+(k+2)/4, 8*lines*k
	d := taps{outH: w.outH, outW: w.outW, outC: w.outC, inH: w.inH, inW: w.inW, inC: w.inC, padding: w.padding}
	if bias {
		d.bias = 1
	}
	deep := tiles(inC, 32)
	channels := tiles(inC, deep)
	if inC%4 == 0 {
		channels = tiles(channels, 4) * 4
	}
	wide := tiles(int(w.outW), 4) * 4
	d.channels, d.wide, d.pitch = int32(channels), int32(wide), int32((wide/4+quads-1)|1)*4
	d.overQuads, d.overColumns, d.overWide = over(tiles(channels, 4)), over(wide+k-1), over(wide)
	for groups := 1; groups <= min(tiles(outC, 8), 8); groups++ {
		each := channels * (k / lines) * groups
		for parts := 1; parts <= outH && each*parts <= 256; parts++ {
			for rows := parts; rows < outH+parts; rows += parts {
				d.groups, d.parts, d.rows, d.overGroups = int32(groups), int32(parts), int32(rows), over(groups*2)
				d.plane = int32(((rows+k-1)*int(d.pitch)/4)|1) * 4
				threads := tiles(max(each*parts, groups*8), 32) * 32
				shared := 4 * max(channels*int(d.plane)+rows*wide*groups*8, parts/2*each*sums)
				if shared > sharedBytes-2048 { // which the kernel declares
					break
				}
				one := tapping{fmt.Sprint(k, "_", lines), d, tiles(tiles(outC, 8), groups), deep, threads, shared}
				warps, stages := float64(threads/32), float64(tiles(outH, rows))
				alone := outH/rows*(rows/parts) + tiles(outH%rows, parts) // lines of a thread
				count := warps * float64(alone*(wide*(sums+5)+30)+sums*4*bits.Len(uint(parts)))
				read, given := (rows+k-1)*(wide+k-1)*tiles(channels, 4), rows*wide*groups*2
				count += stages * float64(read*45+given*25) / 32
				fit := min(float64(65536/(128*threads)), float64((220<<10)/(shared+3072)), 16, 512./processors*float64(one.across*one.deep))
				cycles := count/4*max(1, 12/(fit*warps)) + stages*1500/fit + stages*float64(16*(read+given))/48
				if time := cycles * float64(one.across*one.deep); time < least {
					best, least = one, time
				}
			}
		}
	}
	return best, least
}

// tap starts a kernel for the gradients of the filters of g examples.
func (n *Network) tap(s *tapping, g int, x, d uintptr, at room) {
	n.callShared("taps_"+s.name, [3]int{g, s.across, s.deep}, s.threads, s.shared, s.shape, x, d, at)
}

// unpooling is what those kernels take that read the gradients behind a pool.
type unpooling struct {
	outH, outW, stride int32
	which              uintptr
}

// tapPooled is tap of gradients behind a pool.
func (n *Network) tapPooled(s *tapping, pool *layer, g int, x, d uintptr, at room) {
	p := unpooling{int32(pool.Out.Height), int32(pool.Out.Width), int32(pool.Stride), pool.which}
	n.callShared("taps_pooled_"+s.name, [3]int{g, s.across, s.deep}, s.threads, s.shared, s.shape, x, d, p, at)
}
