//go:build linux

package device

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/model"
)

// tensorWindows are convolutions of all kernels on tensor cores, and some of odd sizes.
var tensorWindows = []window{
	{outH: 23, outW: 23, outC: 32, inH: 26, inW: 26, inC: 16, kernelH: 4, kernelW: 4, stride: 1},
	{outH: 26, outW: 26, outC: 16, inH: 23, inW: 23, inC: 32, kernelH: 4, kernelW: 4, stride: 1, back: 1},
	{outH: 24, outW: 24, outC: 64, inH: 26, inW: 26, inC: 32, kernelH: 3, kernelW: 3, stride: 1},
	{outH: 26, outW: 26, outC: 32, inH: 24, inW: 24, inC: 64, kernelH: 3, kernelW: 3, stride: 1, back: 1},
	{outH: 9, outW: 11, outC: 48, inH: 9, inW: 11, inC: 48, kernelH: 3, kernelW: 3, stride: 1, padding: 1},
	{outH: 9, outW: 11, outC: 32, inH: 9, inW: 11, inC: 16, kernelH: 3, kernelW: 3, stride: 1, padding: 1},
	{outH: 5, outW: 3, outC: 16, inH: 6, inW: 4, inC: 16, kernelH: 2, kernelW: 2, stride: 1},
}

// TestPatchesAreConvolutions: tensor cores give what a sum in float64 does, as precise as
// float32 is, by every kernel; the gate of what is read and the bias are applied.
func TestPatchesAreConvolutions(t *testing.T) {
	n := onTensors(t)
	src := rand.New(rand.NewPCG(1, 5))
	const g = 3
	used := map[string]bool{}
	for _, w := range tensorWindows {
		k, inC, outC := int(w.kernelW), int(w.inC), int(w.outC)
		in, filter := drawn(src, g*int(w.inH*w.inW*w.inC)), drawn(src, k*k*inC*outC)
		bias, y := drawn(src, outC), drawn(src, g*int(w.outH*w.outW*w.outC))
		want, scale := convolved(w, g, in, filter)
		for _, of := range patchTiles {
			s := patchesBy(w, nil, n.d.shared, []tensorTile{of})
			if s.name == "" {
				continue
			}
			used[s.name] = true
			laid, out := n.d.alloc(s.laidBytes()), n.d.alloc(4*len(y))
			n.layAll([]filterPlace{filterOf(w, put(n, filter), laid)})
			n.patch(&s, g, put(n, in), laid, put(n, bias), act{2, 0.25}, put(n, y), act{1, 0}, out)
			got := get(t, n, out, len(y))
			for i := range got {
				v := want[i] + float64(bias[i%outC])
				if v < 0 {
					v *= 0.25
				}
				if y[i] <= 0 {
					v = 0
				}
				if off := math.Abs(float64(got[i]) - v); !(off <= 4e-7*(scale[i]+1)) {
					t.Fatalf("%+v, kernel %s: value %d is %v, not %v: off by %.1e of what was added up", w, s.name, i, got[i], v, off/scale[i])
				}
			}
		}
	}
	if len(used) != len(patchTiles) {
		t.Errorf("only %v were tried", used)
	}
}

// convolved is a convolution in float64, and the sum of what was added up, without signs.
func convolved(w window, g int, in, filter []float32) (sums, sizes []float64) {
	k, inC, outC, outH, outW, inH, inW := int(w.kernelW), int(w.inC), int(w.outC), int(w.outH), int(w.outW), int(w.inH), int(w.inW)
	sums, sizes = make([]float64, g*outH*outW*outC), make([]float64, g*outH*outW*outC)
	pad := int(paddingOf(w))
	for p := range g * outH * outW {
		e, y, x := p/(outH*outW), p/outW%outH, p%outW
		for tap := range k * k {
			fy, fx := y+tap/k-pad, x+tap%k-pad
			if fy < 0 || fx < 0 || fy >= inH || fx >= inW {
				continue
			}
			for c := range inC {
				v := float64(in[((e*inH+fy)*inW+fx)*inC+c])
				for o := range outC {
					f := filter[(tap*inC+c)*outC+o]
					if w.back == 1 {
						f = filter[((k*k-1-tap)*outC+o)*inC+c]
					}
					sums[p*outC+o] += v * float64(f)
					sizes[p*outC+o] += math.Abs(v * float64(f))
				}
			}
		}
	}
	return sums, sizes
}

// TestTensorTaps: the gradients of filters and biases, and their squares, are the sums over all
// pixels, by every kernel.
func TestTensorTaps(t *testing.T) {
	n := onTensors(t)
	src := rand.New(rand.NewPCG(1, 6))
	const g = 2
	used := map[string]bool{}
	for _, w := range tensorWindows {
		if w.back == 1 {
			continue
		}
		x, d := drawn(src, g*int(w.inH*w.inW*w.inC)), drawn(src, g*int(w.outH*w.outW*w.outC))
		for _, of := range tapTiles {
			if s := tensorTapsBy(w, true, n.d.shared, []tensorTile{of}); s.name != "" {
				used[s.name] = true
				checkTaps(t, n, &s, w, g, x, d)
			}
		}
	}
	if len(used) != len(tapTiles) {
		t.Errorf("only %v were tried", used)
	}
}

// TestPatchesAndPools: a convolution with its pool is both one after another, to the bit.
func TestPatchesAndPools(t *testing.T) {
	n := onTensors(t)
	src := rand.New(rand.NewPCG(1, 7))
	const g = 3
	for _, w := range tensorWindows {
		k, outH, outW, outC := int(w.kernelW), int(w.outH), int(w.outW), int(w.outC)
		filter := put(n, drawn(src, k*k*int(w.inC)*outC))
		for _, of := range patchTiles {
			pool := &layer{PlannedLayer: model.PlannedLayer{Stride: 2, Out: model.Shape{Height: outH / 2, Width: outW / 2, Channels: outC}}}
			l := &layer{activation: act{1, 0}, patchesPooled: patchesBy(w, &pool.Out, n.d.shared, []tensorTile{of})}
			s := patchesBy(w, nil, n.d.shared, []tensorTile{of})
			if l.patchesPooled.name == "" || s.name == "" {
				continue
			}
			in, bias := put(n, drawn(src, g*int(w.inH*w.inW*w.inC))), put(n, drawn(src, outC))
			l.laid[0] = n.d.alloc(s.laidBytes())
			n.layAll([]filterPlace{filterOf(w, filter, l.laid[0])})
			whole, small := n.d.alloc(4*g*outH*outW*outC), n.d.alloc(4*g*pool.Out.Len())
			pool.which = n.d.alloc(g * pool.Out.Len())
			n.patch(&s, g, in, l.laid[0], bias, act{1, 0}, 0, act{}, whole)
			n.patchPooled(l, pool, g, in, bias, small)
			all, got, raw := get(t, n, whole, g*outH*outW*outC), get(t, n, small, g*pool.Out.Len()), make([]byte, g*pool.Out.Len())
			n.d.toHost(raw, pool.which)
			n.d.wait()
			for i, v := range got {
				c, p := i%outC, i/outC
				e, oy, ox := p/(pool.Out.Height*pool.Out.Width), p/pool.Out.Width%pool.Out.Height, p%pool.Out.Width
				best, which := float32(math.Inf(-1)), byte(0)
				for place := range 4 {
					if u := all[((e*outH+2*oy+place/2)*outW+2*ox+place%2)*outC+c]; u > best {
						best, which = u, byte(place)
					}
				}
				if best <= 0 {
					which = 255
				}
				if v != best || raw[i] != which {
					t.Fatalf("%+v, kernel %s: window %d has %v of place %d, not %v of %d", w, of, i, v, raw[i], best, which)
				}
			}
		}
	}
}

func checkTaps(t *testing.T, n *Network, s *tensorTapping, w window, g int, x, d []float32) {
	t.Helper()
	k, inC, outC, outH, outW, inH, inW, pad := int(w.kernelW), int(w.inC), int(w.outC), int(w.outH), int(w.outW), int(w.inH), int(w.inW), int(w.padding)
	count := k*k*inC*outC + outC
	row := tiles(count, 4) * 4
	at := room{kept: n.d.alloc(4 * g * row), squares: n.d.alloc(8 * g * s.across), keptRow: int32(row), squaresRow: int32(s.across)}
	n.tapTensor(s, g, put(n, x), put(n, d), at)
	kept, squares := get(t, n, at.kept, g*row), get(t, n, at.squares, 2*g*s.across)
	for e := range g {
		want, size, square := make([]float64, count), make([]float64, count), 0.
		for p := range outH * outW {
			for o := range outC {
				v := float64(d[(e*outH*outW+p)*outC+o])
				want[count-outC+o] += v
				size[count-outC+o] += math.Abs(v)
				for tap := range k * k {
					fy, fx := p/outW+tap/k-pad, p%outW+tap%k-pad
					if fy < 0 || fx < 0 || fy >= inH || fx >= inW {
						continue
					}
					for c := range inC {
						u := v * float64(x[((e*inH+fy)*inW+fx)*inC+c])
						want[(tap*inC+c)*outC+o] += u
						size[(tap*inC+c)*outC+o] += math.Abs(u)
					}
				}
			}
		}
		for i, v := range want {
			got := kept[e*row+i]
			if off := math.Abs(float64(got) - v); !(off <= 1e-6*(size[i]+1e-3)) {
				t.Fatalf("example %d: value %d is %v, not %v: off by %.1e of what was added up", e, i, got, v, off/size[i])
			}
			square += float64(got) * float64(got)
		}
		got := 0.
		for i := e * s.across; i < (e+1)*s.across; i++ {
			got += math.Float64frombits(uint64(math.Float32bits(squares[2*i])) | uint64(math.Float32bits(squares[2*i+1]))<<32)
		}
		if !(math.Abs(got-square) <= 1e-9*square) {
			t.Fatalf("example %d: the square is %v, not %v", e, got, square)
		}
	}
}

// BenchmarkTensor times every kernel on tensor cores alone, of 512 pictures, on a GPU:
// COTERIE_CUDA=1 go test -run - -bench Tensor ./internal/cuda/device
func BenchmarkTensor(b *testing.B) {
	if !cudatest.OnDevice() {
		b.Skip("COTERIE_CUDA is not set")
	}
	n := onTensors(b)
	src := rand.New(rand.NewPCG(1, 8))
	const g = 512
	timed := func(what string, w window, start func()) {
		fmt.Printf("%v: %s: %.1f us\n", w, what, 1e6*seconds(b, n, start))
	}
	for _, w := range tensorWindows[:4] {
		k, outC := int(w.kernelW), int(w.outC)
		in, out := put(n, drawn(src, g*int(w.inH*w.inW*w.inC))), put(n, drawn(src, g*int(w.outH*w.outW*w.outC)))
		filter := put(n, drawn(src, k*k*int(w.inC)*outC))
		pool := &layer{PlannedLayer: model.PlannedLayer{Stride: 2, Out: model.Shape{Height: int(w.outH) / 2, Width: int(w.outW) / 2, Channels: outC}}}
		pool.which = n.d.alloc(g * pool.Out.Len())
		row := tiles(k*k*int(w.inC)*outC+outC, 4) * 4
		at := room{kept: n.d.alloc(4 * g * row), squares: n.d.alloc(8 * g * 4), keptRow: int32(row), squaresRow: 4}
		for _, of := range patchTiles {
			s := patchesBy(w, nil, n.d.shared, []tensorTile{of})
			if s.name == "" {
				continue
			}
			laid := n.d.alloc(s.laidBytes())
			n.layAll([]filterPlace{filterOf(w, filter, laid)})
			timed(fmt.Sprintf("conv %s, %d lines, %d threads, %d channels at a time", of, s.shape.rows, s.threads, s.shape.lay.chunk), w, func() {
				n.patch(&s, g, in, laid, 0, act{1, 0}, 0, act{}, out)
			})
			l := &layer{activation: act{1, 0}, laid: [2]uintptr{laid, 0}, patchesPooled: patchesBy(w, &pool.Out, n.d.shared, []tensorTile{of})}
			if w.back == 0 && l.patchesPooled.name != "" {
				timed(fmt.Sprintf("pooled %s, %d lines, %d threads", of, l.patchesPooled.shape.rows, l.patchesPooled.threads), w, func() {
					n.patchPooled(l, pool, g, in, 0, out)
				})
			}
		}
		for _, of := range tapTiles {
			if s := tensorTapsBy(w, true, n.d.shared, []tensorTile{of}); s.name != "" && w.back == 0 {
				timed(fmt.Sprintf("taps %s, %d lines, %d blocks of %d threads", of, s.shape.rows, s.across, s.threads), w, func() {
					n.tapTensor(&s, g, in, out, at)
				})
			}
		}
	}
}
