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

// strip is what a thread of a kernel has: so many pixels of a line, and channels; near says
// that filters lie in shared memory, and threads how many a block has at most. Share is what
// the kernel takes of the time that a count of instructions says, as far as kernels of a width
// differ in that.
type strip struct {
	pixels, channels int
	near             bool
	threads          int
	share            float64
}

// strips are what direct.cuh has kernels for, by the width of the filter.
var strips = map[int][]strip{
	2: {far(10)}, 3: {far(8), far(9), far(10), {13, 4, true, 256, 0.88}}, 4: {far(8), far(9), {13, 4, true, 256, 0.85}}, 5: {far(9)}, 8: {far(9)},
}

// splits says that blocks of so many groups would split filters that lie together near: these
// lie by eights.
func (s strip) splits(w window, groups int) bool {
	return s.near && groups*s.channels%8 != 0 && groups*s.channels < int(w.outC)
}

// far is a strip of 8 channels whose filters are read through the cache.
func far(pixels int) strip { return strip{pixels, 8, false, mostThreads, 1} }

// kernel is the name of that for filters of k columns.
func (s strip) kernel(k int) string {
	if s.near {
		return fmt.Sprint("near_", k, "_", s.pixels, "_", s.channels)
	}
	return fmt.Sprint("direct_", k, "_", s.pixels)
}

const (
	sharedBytes   = 48 << 10 // that a block has without asking
	declaredBytes = 2 << 10  // at most, that kernels have beside what is asked for
	processors    = 132      // that a plan fills: an H200's
	mostThreads   = 256      // of a block

	processorShared = 227 << 10 // of one, that its blocks have
	stageWait       = 2000      // cycles until a block has what it reads
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

// slides says whether a kernel could slide along a window.
func slides(w window) bool { return w.stride == 1 && w.kernelH == w.kernelW }

// slideBy is slide with these strips to choose from.
func slideBy(w window, examples int, strips []strip) sliding {
	best, least := sliding{}, math.Inf(1)
	if !slides(w) {
		return best
	}
	outH, outW := int(w.outH), int(w.outW)
	for _, s := range strips {
		for columns := 1; columns <= min(tiles(outW, s.pixels), 6); columns++ {
			for groups := 1; groups <= groupsOf(w, s); groups++ {
				if s.splits(w, groups) {
					continue
				}
				for parts := outH; parts >= -8; parts-- { // below 0: so many more pictures than one
					each, rows := 1, tiles(outH, max(1, parts))
					if parts < 1 {
						each = 2 - parts
					}
					if parts > 0 && tiles(outH, rows) != parts {
						continue
					}
					if each*rows*columns*groups > s.threads {
						break
					}
					for _, chunk := range chunksOf(w) {
						one := slidingBy(w, s, each, rows, max(1, parts), columns, groups, chunk)
						one.shared = max(one.shared, (s.pixels+1)/2*s.channels*4*each*rows*columns*groups) // what is computed passes through it
						if one.shared > sharedBytes {
							continue
						}
						if time := one.time(s, int(w.kernelW), examples, float64(s.pixels*s.channels*4)); time < least {
							best, least = one, time
						}
					}
				}
			}
		}
	}
	return best
}

// groupsOf is how many groups of channels a block may compute, and chunksOf how many channels
// it may read at a time.
func groupsOf(w window, s strip) int { return min(tiles(int(w.outC), s.channels), 8) }

func chunksOf(w window) (chunks []int) {
	chunks = []int{int(w.inC)}
	for _, chunk := range []int{32, 16, 8, 4} {
		if chunk < int(w.inC) {
			chunks = append(chunks, chunk)
		}
	}
	return chunks
}

// slidingBy is a kernel whose blocks have so many pictures, lines, columns of strips, and
// groups of channels, and read chunk channels at a time.
func slidingBy(w window, s strip, each, rows, parts, columns, groups, chunk int) sliding {
	k := int(w.kernelW)
	d := direct{outH: w.outH, outW: w.outW, outC: w.outC, inH: w.inH, inW: w.inW, inC: w.inC, padding: paddingOf(w),
		each: int32(each), rows: int32(rows), parts: int32(parts), strips: int32(columns), groups: int32(groups), chunk: int32(chunk)}
	tall := rows + k - 1
	d.pitch = int32(columns*segment(s.pixels, k)/4|1) * 4 // odd in fours: lines are in different banks
	d.plane = int32(each*tall*int(d.pitch)/4|1) * 4
	d.overColumns, d.overTall, d.overQuads = over(columns*s.pixels+k-1), over(tall), over(tiles(chunk, 4))
	d.overWide, d.overLines, d.overStrips, d.overRows = over(groups*s.channels/4), over(each*rows), over(columns), over(rows)
	one := sliding{name: s.kernel(k), shape: d, across: tiles(tiles(int(w.outW), s.pixels), columns), deep: tiles(tiles(int(w.outC), s.channels), groups),
		threads: tiles(each*rows*columns*groups, 32) * 32, shared: 4 * chunk * int(d.plane)}
	if s.near {
		one.shared += 4 * chunk * k * k * tiles(groups*s.channels, 8) * 8
	}
	return one
}

// segment is how many values of a line a strip of s pixels holds for a filter of k columns.
func segment(s, k int) int { return (s + k + 2) / 4 * 4 }

// time is about how long the kernel takes, in cycles: a count of instructions of a block, by
// warps, of which four schedulers share them, and of what blocks wait for. Blocks come in
// waves, of which the last one leaves processors idle: batches of any size that a chunk is for
// count alike. Ending is what a warp does with what it has computed.
func (one *sliding) time(s strip, k, examples int, ending float64) (time float64) {
	d := &one.shape
	inC, each := int(d.inC), int(d.each)
	warps, stages := float64(one.threads/32), float64(tiles(inC, int(d.chunk)))
	count := warps * (float64(inC*(k*(s.channels*s.pixels*k+segment(s.pixels, k)/4+s.channels/4*k+2)+6)) + ending)
	pixels := each * (int(d.rows) + k - 1) * (int(d.strips)*s.pixels + k - 1) * tiles(int(d.chunk), 4)
	filters := 0 // in fours, that lie near
	if s.near {
		filters = int(d.chunk) * k * k * tiles(int(d.groups)*s.channels, 8) * 2
	}
	count += stages * float64(pixels*70+filters*20) / 32
	if one.threads%64 != 0 {
		count *= 1.04
	}
	registers := 32768 / s.threads / 8 * 8 // two blocks fit, whatever they need
	fit := min(65536/(registers*one.threads), processorShared/(one.shared+1024), 16)
	beside := func(blocks int) float64 { // of so many on a processor
		b := float64(blocks)
		return b*count/4*math.Pow(max(1, 16/(b*warps)), 0.7) + stages*stageWait + b*stages*float64(16*(pixels+filters))/48
	}
	for n := 26; n <= 32; n++ {
		blocks := tiles(examples*n/32, each) * int(d.parts) * one.across * one.deep
		waves := blocks / (processors * fit)
		time += float64(waves) * beside(fit)
		if rest := tiles(blocks-waves*processors*fit, processors); rest > 0 {
			time += beside(rest)
		}
	}
	if warps == 1 { // nobody computes while the block reads
		time *= 1.15
	}
	if one.across > 1 { // and edges are read twice
		time *= 1.04
	}
	return time * s.share
}

// arranged is how many values a filter has as a kernel that slides reads it.
func (s *sliding) arranged(kernel int) int {
	return kernel * kernel * int(s.shape.inC) * tiles(int(s.shape.outC), 8) * 8
}

// grid is how many blocks slide along g pictures.
func (s *sliding) grid(g int) [3]int {
	return [3]int{tiles(g, int(s.shape.each)) * int(s.shape.parts), s.across, s.deep}
}

// slide starts a kernel that slides.
func (n *Network) slide(s *sliding, g int, in, filter, bias uintptr, a act, y uintptr, gate act, out uintptr) {
	d := s.shape
	d.examples = int32(g)
	n.callShared(s.name, s.grid(g), s.threads, s.shared, d, in, filter, bias, a, y, gate, out)
}
