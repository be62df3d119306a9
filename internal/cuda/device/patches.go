//go:build linux

package device

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/model"
)

// laying is how a block holds pixels, as tensor_conv.cuh has it.
type laying struct {
	wide, chunk, pitch, plane int32
	overQuads, overWide       uint32
}

// patch is what tensor_conv.cuh's kernels take: what a block computes.
type patch struct {
	examples                        int32
	outH, outW, outC, inH, inW, inC int32
	kernel, padding                 int32
	rows, parts, groups             int32
	overWidth                       uint32
	lay                             laying
}

// tensorTaps is what tensor_taps.cuh's kernels take.
type tensorTaps struct {
	outH, outW, outC, inH, inW, inC int32
	kernel, padding, bias           int32
	rows, groups, pixels            int32
	x, d                            laying
}

// patching is how a convolution of stride 1 is computed on tensor cores, with the pool behind
// it if it has one; no name: it is not.
type patching struct {
	name            string // what follows the kind of kernel
	shape           patch
	pool            pooling
	threads, shared int
}

// tensorTapping is how the gradients of a filter are.
type tensorTapping struct {
	name            string
	shape           tensorTaps
	across          int // blocks of an example
	threads, shared int
}

// tensorTile is what a warp of a kernel has: tiles of 16 lines, and strips of 8 columns; how many
// threads a block may have, and registers a thread.
type tensorTile struct{ tiles, strips, threads, registers int }

func (t tensorTile) String() string { return fmt.Sprintf("%d_%d", t.tiles, t.strips) }

// What tensor_conv.cuh and tensor_taps.cuh have kernels for.
var (
	patchTiles = []tensorTile{{3, 4, 256, 128}, {4, 2, 256, 128}}
	tapTiles   = []tensorTile{{3, 4, 128, 128}, {4, 4, 128, 168}, {9, 4, 128, 255}, {5, 2, 128, 128}}
)

// patchKernels are the names of the kernels for convolutions in tensor.cu.
func patchKernels() []string {
	names := []string{"tensor_filters"}
	for _, of := range patchTiles {
		names = append(names, "tensor_conv_"+of.String(), "tensor_pooled_"+of.String())
	}
	for _, of := range tapTiles {
		names = append(names, "tensor_taps_"+of.String())
	}
	return names
}

// tensorTime is about how long a block takes, in cycles, of those that share a processor: of so
// many products of tiles, a product in three parts is six, of pixels in fours that are laid, and
// of stages. A processor has four parts, each with warps of its own: of a block of three or five
// warps some have nothing to do. Set right by what was timed on an H200.
func tensorTime(t tensorTile, warps, shared int, products, laid, stages float64) float64 {
	fit := min(65536/(t.registers*32*warps), processorShared/(shared+1024), 16)
	if fit == 0 {
		return math.Inf(1)
	}
	uneven, few := 1., math.Pow(max(1, 12/float64(fit*warps)), 0.3)
	if warps > 2 {
		uneven = float64(tiles(warps, 4)*4) / float64(warps)
	}
	return products*6*8/4*1.3*uneven*few + laid*155/128 + stages*600/float64(fit)
}

// layingOf is for lines of so many pixels, so many in all.
func layingOf(wide, chunk, pixels int) laying {
	return laying{int32(wide), int32(chunk), int32(chunk + 8), int32(pixels * (chunk + 8)), over(chunk / 4), over(wide)}
}

// bytes is what all parts take.
func (l laying) bytes() int { return 3 * 2 * int(l.plane) }

// tensorFits says whether tensor cores compute a convolution: sixteens of channels.
func tensorFits(w window) bool {
	return slides(w) && w.inC%16 == 0 && w.outC%16 == 0
}

// paddingOf is that of a window's way.
func paddingOf(w window) int32 {
	if w.back == 1 {
		return w.kernelW - 1 - w.padding
	}
	return w.padding
}

// patchesOf chooses what blocks of a window's kernel compute, with at most so many bytes of
// shared memory: what takes the least time by a count of products and of pixels that are laid.
// Of a pool of 2x2 that is not nil lines are whole. The choice does not change the order of any
// sum.
func patchesOf(w window, pool *model.Shape, most int) patching {
	return patchesBy(w, pool, most, patchTiles)
}

// patchesBy is patchesOf with these kernels to choose from.
func patchesBy(w window, pool *model.Shape, most int, kernels []tensorTile) (best patching) {
	if !tensorFits(w) {
		return best
	}
	least := math.Inf(1)
	k, outH, outW, outC, inC := int(w.kernelW), int(w.outH), int(w.outW), int(w.outC), int(w.inC)
	for _, of := range kernels {
		groups := outC / (8 * of.strips)
		if outC%(8*of.strips) != 0 {
			continue
		}
		for rows := 1; rows <= outH; rows++ {
			if pool != nil && rows%2 != 0 {
				continue
			}
			warps := tiles(tiles(rows*outW, 16), of.tiles) * groups
			if warps*32 > of.threads {
				break
			}
			for _, chunk := range []int{64, 32, 16} {
				if inC%chunk != 0 {
					continue
				}
				wide, tall, parts := outW+k-1, rows+k-1, tiles(outH, rows)
				one := patching{name: of.String(), threads: 32 * warps, shape: patch{
					outH: w.outH, outW: w.outW, outC: w.outC, inH: w.inH, inW: w.inW, inC: w.inC, kernel: w.kernelW, padding: paddingOf(w),
					rows: int32(rows), parts: int32(parts), groups: int32(groups), overWidth: over(outW), lay: layingOf(wide, chunk, tall*wide),
				}}
				one.shared = one.shape.lay.bytes()
				if pool != nil {
					one.pool = pooling{int32(pool.Height), int32(pool.Width), int32(rows / 2), 2, int32(outW * (outC + 8)), over(outC / 4), over(pool.Width)}
					one.shared = max(one.shared, 4*rows*outW*(outC+8))
				}
				if one.shared > most {
					continue
				}
				products := float64(warps * of.tiles * of.strips * k * k * inC / 16)
				if time := float64(parts) * tensorTime(of, warps, one.shared, products, float64(tall*wide*inC/4), float64(inC/chunk)); time < least {
					best, least = one, time
				}
			}
		}
	}
	return best
}

// tensorTapsOf chooses what blocks hold at a time of the gradients of w's filter. How many lines
// those are is part of the order of sums: the choice follows from the shape and the device alone.
func tensorTapsOf(w window, bias bool, most int) tensorTapping {
	return tensorTapsBy(w, bias, most, tapTiles)
}

// tensorTapsBy is tensorTapsOf with these kernels to choose from.
func tensorTapsBy(w window, bias bool, most int, kernels []tensorTile) (best tensorTapping) {
	if !tensorFits(w) {
		return best
	}
	least := math.Inf(1)
	k, outH, outC, inC := int(w.kernelW), int(w.outH), int(w.outC), int(w.inC)
	wide := int(w.outW) + k - 1
	for _, of := range kernels {
		for across := 1; across <= 4; across++ { // blocks of an example
			groups := outC / (8 * of.strips * across)
			warps := tiles(k*k*inC/16, of.tiles) * groups
			if outC%(8*of.strips*across) != 0 || warps == 0 || warps*32 > of.threads || 32*warps%(outC/across/4) != 0 {
				continue
			}
			for rows := 1; rows <= outH; rows++ {
				pixels := tiles(rows*wide, 16) * 16
				one := tensorTapping{name: of.String(), threads: 32 * warps, across: across, shape: tensorTaps{
					outH: w.outH, outW: w.outW, outC: w.outC, inH: w.inH, inW: w.inW, inC: w.inC, kernel: w.kernelW, padding: w.padding,
					rows: int32(rows), groups: int32(groups), pixels: int32(pixels),
					x: layingOf(wide, inC, pixels+(k-1)*(wide+1)), d: layingOf(wide, outC/across, pixels),
				}}
				if bias {
					one.shape.bias = 1
				}
				one.shared = max(one.shape.x.bytes()+one.shape.d.bytes(), 16*one.threads)
				if one.shared > most {
					break
				}
				stages := tiles(outH, rows)
				products := float64(stages * warps * of.tiles * of.strips * pixels / 16)
				laid := float64(stages * ((pixels+(k-1)*(wide+1))*inC + pixels*outC/across) / 4)
				if time := float64(across) * tensorTime(of, warps, one.shared, products, laid, float64(stages)); time < least {
					best, least = one, time
				}
			}
		}
	}
	return best
}

// useTensor has tensor cores compute what they can of a convolution.
func (n *Network) useTensor(l *layer) {
	if !n.d.tensor {
		return
	}
	for way, w := range []window{l.forward, l.back} {
		if l.patches[way] = patchesOf(w, nil, n.d.shared); l.patches[way].name != "" {
			l.slides[way] = sliding{}
		}
	}
	l.tensorTaps = tensorTapsOf(filterWindow(*l), l.Bias && l.Kind == "conv", n.d.shared)
}

// biasApart says that a convolution's biases are not in the kernel of its filter's gradients.
func (l *layer) biasApart() bool {
	if l.tensorTaps.name != "" {
		return l.tensorTaps.shape.bias == 0
	}
	return l.taps.shape.bias == 0
}

// patch starts the kernel of a convolution's way on tensor cores.
func (n *Network) patch(s *patching, g int, in, filter, bias uintptr, a act, y uintptr, gate act, out uintptr) {
	d := s.shape
	d.examples = int32(g)
	n.callShared("tensor_conv_"+s.name, [3]int{g * int(d.parts), 1, 1}, s.threads, s.shared, d, in, filter, bias, a, y, gate, out)
}

// patchPooled computes a convolution and the pool behind it.
func (n *Network) patchPooled(l, pool *layer, g int, in, bias, out uintptr) {
	s, d := &l.patchesPooled, l.patchesPooled.shape
	d.examples = int32(g)
	n.callShared("tensor_pooled_"+s.name, [3]int{g * int(d.parts), 1, 1}, s.threads, s.shared, d, s.pool, in, l.laid[0], bias, l.activation, pool.activation, out, pool.which)
}

// tapTensor starts the kernel for the gradients of the filters of g examples.
func (n *Network) tapTensor(s *tensorTapping, g int, x, d uintptr, at room) {
	n.callShared("tensor_taps_"+s.name, [3]int{g, s.across, 1}, s.threads, s.shared, s.shape, x, d, at)
}

// laidBytes is what a filter takes as tensor cores read it.
func (s *patching) laidBytes() int {
	return 6 * int(s.shape.kernel*s.shape.kernel*s.shape.inC*s.shape.outC)
}
