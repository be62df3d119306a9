//go:build linux

package device

import (
	"fmt"
	"math"
	"os"
	"strings"

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
	threads, shared int
}

// tensorWarps is how many a block has at most: two blocks of so many have the registers that
// the kernels are compiled for.
const tensorWarps = 6

// tensorTiles are how many tiles of 16 lines, and strips of 8 columns, a warp of the kernels
// has.
var (
	patchTiles = [][2]int{{4, 4}, {4, 2}}
	tapTiles   = [][2]int{{3, 4}, {4, 4}, {6, 4}, {4, 2}}
)

// tensorKernels are the names of the kernels in tensor.cu.
func tensorKernels() []string {
	names := []string{"tensor_filters", "tensor_pooled_4_4"}
	for _, of := range patchTiles {
		names = append(names, fmt.Sprintf("tensor_conv_%d_%d", of[0], of[1]), fmt.Sprintf("tensor_conv_unpooled_%d_%d", of[0], of[1]))
	}
	for _, of := range tapTiles {
		names = append(names, fmt.Sprintf("tensor_taps_%d_%d", of[0], of[1]), fmt.Sprintf("tensor_taps_unpooled_%d_%d", of[0], of[1]))
	}
	return names
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
// shared memory, two at a time: what takes the least time by a count of products and of pixels
// that are laid. Of a pool of 2x2 that is not nil lines are whole. The choice does not change
// the order of any sum.
func patchesOf(w window, pool *model.Shape, most int) (best patching) {
	if !tensorFits(w) || pool != nil && w.outC%32 != 0 {
		return best
	}
	least := math.Inf(1)
	k, outH, outW, outC, inC := int(w.kernelW), int(w.outH), int(w.outW), int(w.outC), int(w.inC)
	for _, of := range patchTiles {
		if outC%(8*of[1]) != 0 {
			continue
		}
		groups := outC / (8 * of[1])
		for rows := 1; rows <= outH; rows++ {
			if pool != nil && rows%2 != 0 || rows > 1 && tiles(outH, rows) == tiles(outH, rows-1) && pool == nil {
				continue
			}
			warps := tiles(tiles(rows*outW, 16), of[0])
			if warps*groups > tensorWarps {
				break
			}
			for _, chunk := range []int{64, 32, 16} {
				if inC%chunk != 0 {
					continue
				}
				wide, tall, parts := outW+k-1, rows+k-1, tiles(outH, rows)
				one := patching{name: fmt.Sprintf("%d_%d", of[0], of[1]), threads: 32 * warps * groups, shape: patch{
					outH: w.outH, outW: w.outW, outC: w.outC, inH: w.inH, inW: w.inW, inC: w.inC, kernel: w.kernelW, padding: paddingOf(w),
					rows: int32(rows), parts: int32(parts), groups: int32(groups), overWidth: over(outW), lay: layingOf(wide, chunk, tall*wide),
				}}
				one.shared = one.shape.lay.bytes()
				if pool != nil {
					one.pool = pooling{int32(pool.Height), int32(pool.Width), int32(rows / 2), 2, int32(outW * (outC + 8)), over(outC / 4), over(pool.Width)}
					one.shared = max(one.shared, 4*rows*outW*(outC+8))
				}
				if 2*(one.shared+declaredBytes) > most {
					continue
				}
				products := float64(warps * groups * of[0] * of[1] * 6 * k * k * inC / 16 * 2)
				laid := float64(tall*wide*inC/4*60) / 128
				if time := float64(parts) * (products + laid + 500*float64(inC/chunk)); time < least {
					best, least = one, time
				}
			}
		}
	}
	return best
}

// tensorTapsOf chooses what blocks hold at a time of the gradients of w's filter.
func tensorTapsOf(w window, bias bool, most int) (best tensorTapping) {
	if !tensorFits(w) {
		return best
	}
	least := math.Inf(1)
	k, outH, outC, inC := int(w.kernelW), int(w.outH), int(w.outC), int(w.inC)
	wide := int(w.outW) + k - 1
	for _, of := range tapTiles {
		groups := outC / (8 * of[1])
		warps := tiles(k*k*inC/16, of[0])
		if outC%(8*of[1]) != 0 || warps*groups > tensorWarps || 32*warps*groups%(outC/4) != 0 {
			continue
		}
		for rows := 1; rows <= outH; rows++ {
			pixels := tiles(rows*wide, 16) * 16
			one := tensorTapping{name: fmt.Sprintf("%d_%d", of[0], of[1]), threads: 32 * warps * groups, shape: tensorTaps{
				outH: w.outH, outW: w.outW, outC: w.outC, inH: w.inH, inW: w.inW, inC: w.inC, kernel: w.kernelW, padding: w.padding,
				rows: int32(rows), groups: int32(groups), pixels: int32(pixels),
				x: layingOf(wide, inC, pixels+(k-1)*(wide+1)), d: layingOf(wide, outC, pixels),
			}}
			if bias {
				one.shape.bias = 1
			}
			one.shared = max(one.shape.x.bytes()+one.shape.d.bytes(), 16*one.threads)
			if 2*(one.shared+declaredBytes) > most {
				break
			}
			products := float64(warps * groups * of[0] * of[1] * 6 * pixels / 16 * 2)
			laid := float64((pixels+(k-1)*(wide+1))*inC/4*60+pixels*outC/4*60) / 128
			stages := float64(tiles(outH, rows))
			if time := stages*(products+laid+500) + 100*float64(of[0]); time < least {
				best, least = one, time
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
	try := os.Getenv("COTERIE_CUDA_TRY")
	for way, w := range []window{l.forward, l.back} {
		if strings.Contains(try, []string{"noforward", "noback"}[way]) {
			continue
		}
		if l.patches[way] = patchesOf(w, nil, n.d.shared); l.patches[way].name != "" {
			l.slides[way] = sliding{}
		}
	}
	if !strings.Contains(try, "notaps") {
		l.tensorTaps = tensorTapsOf(filterWindow(*l), l.Bias && l.Kind == "conv", n.d.shared)
	}
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

// patchUnpooled is the way back of the gradient before a pool, whose own is in.
func (n *Network) patchUnpooled(s *patching, pool *layer, g int, in, filter, y uintptr, gate act, out uintptr) {
	d := s.shape
	d.examples = int32(g)
	n.callShared("tensor_conv_unpooled_"+s.name, [3]int{g * int(d.parts), 1, 1}, s.threads, s.shared, d, in, unpoolingOf(pool), filter, y, gate, out)
}

// patchPooled computes a convolution and the pool behind it.
func (n *Network) patchPooled(l, pool *layer, g int, in, bias, out uintptr) {
	s, d := &l.patchesPooled, l.patchesPooled.shape
	d.examples = int32(g)
	n.callShared("tensor_pooled_"+s.name, [3]int{g * int(d.parts), 1, 1}, s.threads, s.shared, d, s.pool, in, l.laid[0], bias, l.activation, pool.activation, out, pool.which)
}

// tapTensor starts the kernel for the gradients of the filters of g examples; pool is nil, or
// the one whose gradients d are.
func (n *Network) tapTensor(s *tensorTapping, pool *layer, g int, x, d uintptr, at room) {
	if pool != nil {
		n.callShared("tensor_taps_unpooled_"+s.name, [3]int{g, 1, 1}, s.threads, s.shared, s.shape, x, d, unpoolingOf(pool), at)
		return
	}
	n.callShared("tensor_taps_"+s.name, [3]int{g, 1, 1}, s.threads, s.shared, s.shape, x, d, at)
}

func unpoolingOf(pool *layer) unpooling {
	return unpooling{int32(pool.Out.Height), int32(pool.Out.Width), int32(pool.Stride), pool.which}
}

// laidBytes is what a filter takes as tensor cores read it.
func (s *patching) laidBytes() int {
	return 6 * int(s.shape.kernel*s.shape.kernel*s.shape.inC*s.shape.outC)
}
