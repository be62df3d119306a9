//go:build linux

package device

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

// TestMergedIsThree: a kernel that goes back through a convolution and a pool to the first
// filter gives what the kernels of each do, one after the other: for any stride of the pool,
// of pictures whose strips end at the edge and before it; and an example that is not finite
// spoils no other.
func TestMergedIsThree(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 5))
	for widths, strip := range mergedStrips {
		k, k1 := widths[0], widths[1]
		for _, shape := range [][7]int{ // pictures, channels, channels between, those behind, padding, stride of the pool
			{28, 28, 1, 16, 32, 3, 1}, {26, 33, 3, 12, 9, 3, 2}, {21, 17, 2, 20, 5, 0, 1}, {16, 30, 1, 4, 40, 1, 1}, {k1 + k, k1 + k, 1, 8, 3, 0, 1},
		} {
			const examples = 3
			h, w, inC, between, behind, pad, stride := shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shape[6]
			first := window{inH: int32(h), inW: int32(w), inC: int32(inC), outH: int32(h + 2*pad - k1 + 1), outW: int32(w + 2*pad - k1 + 1), outC: int32(between), kernelH: int32(k1), kernelW: int32(k1), stride: 1, padding: int32(pad)}
			in := model.Shape{Height: int(first.outH), Width: int(first.outW), Channels: between}
			to := model.Shape{Height: (in.Height-2)/stride + 1, Width: (in.Width-2)/stride + 1, Channels: between}
			back := window{outH: int32(to.Height), outW: int32(to.Width), outC: int32(between), inH: int32(to.Height - k + 1), inW: int32(to.Width - k + 1), inC: int32(behind), kernelH: int32(k), kernelW: int32(k), stride: 1, back: 1}
			bias := between != 20
			m := merge(back, first, bias, n.d.shared)
			name := fmt.Sprintf("%s, pictures of %dx%dx%d, padding %d, stride %d, %d parts", m.name, h, w, inC, pad, stride, m.taps.parts)
			if m.name != strip.mergedKernel(k, k1) {
				t.Fatalf("%s: %+v %+v", name, back, first)
			}
			pool := layer{PlannedLayer: model.PlannedLayer{In: in, Out: to, Kernel: 2, Stride: stride}}
			codes := make([]byte, tiles(examples*to.Len(), 4)*4)
			for i := range codes {
				if codes[i] = byte(src.IntN(5)); codes[i] == 4 {
					codes[i] = 255
				}
			}
			pool.which = n.d.alloc(len(codes))
			n.d.toDevice(pool.which, codes)
			slopes := drawn(src, examples*int(back.inH*back.inW*back.inC))
			x, d, filter := put(n, drawn(src, examples*h*w*inC)), put(n, slopes), put(n, drawn(src, k*k*between*behind))
			alone, taps := slide(back, 64), tap(first, bias)
			arranged, dx := n.d.alloc(4*alone.arranged(k)), n.d.alloc(4*examples*to.Len())
			n.arrangeAll([]filterPlace{filterOf(back, filter, arranged)})
			row, squares := tiles(k1*k1*inC*between+between, 4)*4, taps.across*taps.deep
			newRoom := func(squares int) room {
				return room{kept: put(n, make([]float32, examples*row)), squares: n.d.alloc(8 * examples * squares), keptRow: int32(row), squaresRow: int32(squares)}
			}
			sumsOf := func(r room) []float64 {
				norms := n.d.alloc(8 * examples)
				n.call("norms", along(examples, 64), 64, r.squares, norms, examples, int(r.squaresRow))
				return doubles(t, n, norms, examples)
			}
			one, other := newRoom(squares+2), newRoom(squares) // where there is room for more than one, all are written
			n.mergeTo(&m, &pool, examples, d, arranged, x, one, squares+2)
			n.slide(&alone, examples, d, arranged, 0, act{}, 0, act{}, dx)
			n.tapPooled(&taps, &pool, examples, x, dx, other)
			got, want := get(t, n, one.kept, examples*row), get(t, n, other.kept, examples*row)
			if far := off(got, want); !(far < 1e-6) {
				t.Errorf("%s: off by %.2g", name, far)
			}
			a, b := sumsOf(one), sumsOf(other)
			for i := range a {
				if !(math.Abs(a[i]-b[i]) < 1e-6*b[i]) || !(b[i] > 0) {
					t.Errorf("%s: a squared norm of %g instead of %g", name, a[i], b[i])
				}
			}
			slopes[len(slopes)/2] = float32(math.Inf(1)) // of the second of three
			spoilt := newRoom(squares)
			n.mergeTo(&m, &pool, examples, put(n, slopes), arranged, x, spoilt, squares)
			spoiltGot, c := get(t, n, spoilt.kept, examples*row), sumsOf(spoilt)
			for _, e := range []int{0, 2} {
				if !slices.Equal(got[e*row:(e+1)*row], spoiltGot[e*row:(e+1)*row]) || c[e] != a[e] {
					t.Errorf("%s: another example is not finite, and example %d differs", name, e)
				}
			}
			if !math.IsNaN(c[1]) && !math.IsInf(c[1], 0) {
				t.Errorf("%s: a gradient that is not finite has a norm of %g", name, c[1])
			}
		}
	}
}
