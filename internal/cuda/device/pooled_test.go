//go:build linux

package device

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

// TestPooledIsBoth: a kernel that computes a convolution with the pool behind it gives the
// bits of both, one after the other, and the same windows' numbers, but where a ReLU is shut:
// for any stride of the pool, with and without that, of pictures that blocks share.
func TestPooledIsBoth(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 3))
	for k, all := range pooledStrips {
		for _, one := range all {
			s := one.pixels
			for _, shape := range [][7]int{{k + 4, k + 19, 1, 16, 0, 1, 1}, {k + 30, k + 4, 12, 20, 1, 2, 1}, {k + 1, k + s, 7, 3, k / 2, 1, 0}, {k + 8, k + 9, 8, 68, 0, 2, 0}} {
				h, w, inC, outC, pad, stride := shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]
				a, after := act{kind: int32(shape[6])}, act{kind: 2, slope: 0.5}
				grow := int32(2*pad - k + 1)
				g := window{inH: int32(h), inW: int32(w), inC: int32(inC), outH: int32(h) + grow, outW: int32(w) + grow, outC: int32(outC), kernelH: int32(k), kernelW: int32(k), stride: 1, padding: int32(pad)}
				to := model.Shape{Height: (int(g.outH)-2)/stride + 1, Width: (int(g.outW)-2)/stride + 1, Channels: outC}
				const examples = 3
				both := slidePooledBy(g, to, stride, 64, n.d.shared, []strip{one})
				if both.name != one.pooledKernel(k) {
					t.Fatalf("%+v: %q", g, both.name)
				}
				pixels, weights := drawn(src, examples*h*w*inC), drawn(src, k*k*inC*outC)
				if a.kind == 0 { // few values, so that many are equal
					for _, values := range [][]float32{pixels, weights} {
						for i, v := range values {
							values[i] = float32(int(v / 1.5))
						}
					}
				}
				in, filter, bias := put(n, pixels), put(n, weights), put(n, drawn(src, outC))
				between, count := n.d.alloc(4*examples*int(g.outH*g.outW*g.outC)), examples*to.Len()
				arranged := n.d.alloc(4 * both.arranged(k))
				n.arrangeAll([]filterPlace{filterOf(g, filter, arranged)})
				l := layer{activation: a, pooled: both, arranged: [2]uintptr{arranged}}
				pool := layer{PlannedLayer: model.PlannedLayer{In: model.Shape{Height: int(g.outH), Width: int(g.outW), Channels: outC}, Out: to, Kernel: 2, Stride: stride}, activation: after}
				var outs, codes [2]uintptr
				for i := range 2 {
					outs[i], codes[i] = n.d.alloc(4*count), n.d.alloc(tiles(count, 4)*4)
				}
				pool.which = codes[0]
				n.slidePooled(&l, &pool, examples, in, bias, outs[0])
				alone := slide(g, 64)
				n.slide(&alone, examples, in, arranged, bias, a, 0, act{}, between)
				p, fours := poolOf(&pool, to, examples)
				n.call(fmt.Sprint("max_pool_", fours), [3]int{tiles(to.Len()/fours, 256), examples, 1}, 256, p, between, outs[1], codes[1], after)
				name := fmt.Sprintf("%s, pictures of %dx%dx%d, padding %d, stride %d, %d parts", both.name, h, w, inC, pad, stride, both.shape.parts)
				got, want := get(t, n, outs[0], count), get(t, n, outs[1], count)
				if !slices.Equal(got, want) {
					t.Errorf("%s: off by %.2g", name, off(got, want))
				}
				gotCodes, wantCodes := make([]byte, count), make([]byte, count)
				n.d.toHost(gotCodes, codes[0])
				n.d.toHost(wantCodes, codes[1])
				if err := n.d.wait(); err != nil {
					t.Fatal(err)
				}
				shut := 0
				for i, v := range want {
					if a.kind == 1 && !(v > 0) {
						wantCodes[i] = 255
						shut++
					}
				}
				if a.kind == 1 && shut == 0 {
					t.Errorf("%s: no ReLU is shut, of which nothing is tested then", name)
				}
				if !slices.Equal(gotCodes, wantCodes) {
					t.Errorf("%s: other windows' numbers", name)
				}
			}
		}
	}
}

// TestTapsBehindPools: the gradients of a filter are the same, to the last bit, of gradients
// that went back through a pool before, and of those that the kernel takes through it.
func TestTapsBehindPools(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 4))
	for k, lines := range tapLines {
		for _, ky := range lines {
			for _, shape := range [][5]int{{k + 10, k + 8, 1, 16, 1}, {k + 5, k + 9, 3, 20, 2}, {k + 6, k + 4, 1, 7, 2}, {k + 1, k + 2, 2, 3, 1}} {
				h, w, inC, outC, stride := shape[0], shape[1], shape[2], shape[3], shape[4]
				grow := int32(1 - k)
				g := window{inH: int32(h), inW: int32(w), inC: int32(inC), outH: int32(h) + grow, outW: int32(w) + grow, outC: int32(outC), kernelH: int32(k), kernelW: int32(k), stride: 1}
				s := tapBy(g, true, []int{ky})
				const examples = 2
				in := model.Shape{Height: int(g.outH), Width: int(g.outW), Channels: outC}
				pool := layer{PlannedLayer: model.PlannedLayer{In: in, Out: model.Shape{Height: (in.Height-2)/stride + 1, Width: (in.Width-2)/stride + 1, Channels: outC}, Kernel: 2, Stride: stride}}
				count := examples * pool.Out.Len()
				codes := make([]byte, tiles(count, 4)*4)
				for i := range codes {
					if codes[i] = byte(src.IntN(5)); codes[i] == 4 {
						codes[i] = 255
					}
				}
				pool.which = n.d.alloc(len(codes))
				n.d.toDevice(pool.which, codes)
				x, d, between := put(n, drawn(src, examples*h*w*inC)), put(n, drawn(src, count)), n.d.alloc(4*examples*in.Len())
				p, fours := poolOf(&pool, in, examples)
				n.call(fmt.Sprint("max_pool_back_", fours), [3]int{tiles(in.Len()/fours, 256), examples, 1}, 256, p, d, pool.which, uintptr(0), act{}, between)
				row := tiles(k*k*inC*outC+outC, 4) * 4
				var rooms [2]room
				for i := range rooms {
					rooms[i] = room{kept: put(n, make([]float32, examples*row)), squares: n.d.alloc(8 * examples * s.across * s.deep), keptRow: int32(row), squaresRow: int32(s.across * s.deep)}
				}
				n.tapPooled(&s, &pool, examples, x, d, rooms[0])
				n.tap(&s, examples, x, between, rooms[1])
				name := fmt.Sprintf("taps %s, pictures of %dx%dx%d, stride %d", s.name, h, w, inC, stride)
				if got, want := get(t, n, rooms[0].kept, examples*row), get(t, n, rooms[1].kept, examples*row); !slices.Equal(got, want) || !slices.ContainsFunc(want, func(v float32) bool { return v != 0 }) {
					t.Errorf("%s: off by %.2g", name, off(got, want))
				}
				if got, want := doubles(t, n, rooms[0].squares, examples*s.across*s.deep), doubles(t, n, rooms[1].squares, examples*s.across*s.deep); !slices.Equal(got, want) {
					t.Errorf("%s: squares %v instead of %v", name, got, want)
				}
			}
		}
	}
}
