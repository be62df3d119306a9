//go:build linux

package device

import (
	"fmt"
	"math"
)

// direct is what direct.cuh's kernels take: what a block computes, and how it holds what it
// reads.
type direct struct {
	examples                                                                    int32
	outH, outW, outC, inH, inW, inC                                             int32
	padding                                                                     int32
	each, rows, parts                                                           int32
	strips, groups, chunk, pitch, plane                                         int32
	overColumns, overTall, overQuads, overWide, overLines, overStrips, overRows uint32
}

// sliding is how a convolution of stride 1 is computed by a kernel of direct.cuh; no name:
// there is none for its filter.
type sliding struct {
	name            string
	shape           direct
	across, deep    int // blocks beside each other: of columns, of channels
	threads, shared int
}

// strips are how many pixels of a line a thread may have, by the width of the filter: what
// direct.cuh has kernels for.
var strips = map[int][]int{2: {10}, 3: {8, 9, 10}, 4: {8, 9}, 5: {9}, 8: {9}}

const (
	sharedBytes = 48 << 10 // that a block has without asking
	processors  = 132      // that a plan fills: an H200's
)

// over is what kernels divide by d with.
func over(d int) uint32 {
	if d == 1 {
		return 0
	}
	return uint32((1<<32 + uint64(d) - 1) / uint64(d))
}

// slide chooses a kernel, and what its blocks compute, for a window: what takes the least
// time by a count of instructions. The choice does not change the order of any sum.
func slide(w window, examples int) sliding {
	return slideBy(w, examples, strips[int(w.kernelW)])
}

// slideBy is slide with strips of these lengths to choose from.
func slideBy(w window, examples int, lengths []int) sliding {
	best, least := sliding{}, math.Inf(1)
	if w.stride != 1 || w.kernelH != w.kernelW {
		return best
	}
	k, outH, outW, outC, inC := int(w.kernelH), int(w.outH), int(w.outW), int(w.outC), int(w.inC)
	for _, s := range lengths {
		for columns := 1; columns <= min(tiles(outW, s), 6); columns++ {
			for groups := 1; groups <= min(tiles(outC, 8), 8); groups++ {
				for parts := outH; parts >= -8; parts-- { // below 0: so many more pictures than one
					each, rows := 1, tiles(outH, max(1, parts))
					if parts < 1 {
						each = 2 - parts
					}
					if parts > 0 && tiles(outH, rows) != parts {
						continue
					}
					threads := each * rows * columns * groups
					if threads > 256 {
						break
					}
					segment := (s + k + 2) / 4 * 4
					d := direct{outH: w.outH, outW: w.outW, outC: w.outC, inH: w.inH, inW: w.inW, inC: w.inC, padding: w.padding,
						each: int32(each), rows: int32(rows), parts: int32(max(1, parts)), strips: int32(columns), groups: int32(groups)}
					if w.back == 1 {
						d.padding = w.kernelW - 1 - w.padding
					}
					d.pitch = int32(columns*segment/4|1) * 4 // odd in fours: lines are in different banks
					tall := rows + k - 1
					d.plane = int32(each*tall*int(d.pitch)/4|1) * 4
					for _, chunk := range []int{inC, 32, 16, 8, 4} { // channels at a time
						d.chunk = int32(chunk)
						shared := max(4*chunk*int(d.plane), (s+1)/2*2*threads*16)
						if chunk > inC || shared > sharedBytes {
							continue
						}
						wide, quads := columns*s+k-1, tiles(chunk, 4)
						d.overColumns, d.overTall, d.overQuads = over(wide), over(tall), over(quads)
						d.overWide, d.overLines, d.overStrips, d.overRows = over(groups*2), over(each*rows), over(columns), over(rows)
						one := sliding{fmt.Sprint("direct_", k, "_", s), d, tiles(tiles(outW, s), columns), tiles(tiles(outC, 8), groups), tiles(threads, 32) * 32, shared}
						// Instructions of a block, by warps; four schedulers share them.
						warps, stages := float64(one.threads/32), float64(tiles(inC, chunk))
						count := warps * float64(inC*(k*(8*s*k+segment/4+2*k+2)+6)+s*2*16)
						pixels := each * tall * wide * quads
						count += stages * float64(pixels*70) / 32
						if one.threads%128 != 0 {
							count *= 1.08
						}
						fit := min(float64(65536/(128*one.threads)), float64(220<<10/(shared+1024)), 16,
							float64(examples)/float64(each*processors)*float64(max(1, parts)*one.across*one.deep))
						cycles := count/4*math.Pow(max(1, 16/(fit*warps)), 0.7) + stages*3000/fit + stages*float64(16*pixels)/48
						var time float64
						for _, n := range []int{examples * 7 / 8, examples * 15 / 16, examples} {
							blocks := tiles(n, each) * max(1, parts) * one.across * one.deep
							time += float64(tiles(blocks, processors)) * cycles
						}
						if time < least {
							best, least = one, time
						}
					}
				}
			}
		}
	}
	return best
}

// arranged is how many values a filter has as a kernel that slides reads it.
func (s *sliding) arranged(kernel int) int {
	return kernel * kernel * int(s.shape.inC) * tiles(int(s.shape.outC), 8) * 8
}

// arrange lays a layer's filter as a kernel that slides reads it.
func (n *Network) arrange(w window, s *sliding, filter, to uintptr) {
	n.call("arranged", along(s.arranged(int(w.kernelW)), 256), 256, filter, to, int(w.kernelW*w.kernelW), int(w.inC), int(w.outC), int(w.back))
}

// slide starts a kernel that slides.
func (n *Network) slide(s *sliding, g int, in, filter, bias uintptr, a act, y uintptr, gate act, out uintptr) {
	d := s.shape
	d.examples = int32(g)
	n.callShared(s.name, [3]int{tiles(g, int(d.each)) * int(d.parts), s.across, s.deep}, s.threads, s.shared, d, in, filter, bias, a, y, gate, out)
}
