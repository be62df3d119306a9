//go:build linux

package device

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

// tensorWindows are convolutions of all kernels on tensor cores, and some of odd sizes.
var tensorWindows = []window{
	{outH: 23, outW: 23, outC: 32, inH: 26, inW: 26, inC: 16, kernelH: 4, kernelW: 4, stride: 1},
	{outH: 26, outW: 26, outC: 16, inH: 23, inW: 23, inC: 32, kernelH: 4, kernelW: 4, stride: 1, back: 1},
	{outH: 24, outW: 24, outC: 64, inH: 26, inW: 26, inC: 32, kernelH: 3, kernelW: 3, stride: 1},
	{outH: 26, outW: 26, outC: 32, inH: 24, inW: 24, inC: 64, kernelH: 3, kernelW: 3, stride: 1, back: 1},
	{outH: 9, outW: 11, outC: 48, inH: 9, inW: 11, inC: 48, kernelH: 3, kernelW: 3, stride: 1, padding: 1},
	{outH: 5, outW: 3, outC: 16, inH: 6, inW: 4, inC: 16, kernelH: 2, kernelW: 2, stride: 1},
}

// TestPatchesAreConvolutions: tensor cores give what a sum in float64 does, as precise as
// float32 is, whatever blocks compute; the gate of what is read and the bias are applied.
func TestPatchesAreConvolutions(t *testing.T) {
	n := bare(t)
	src := rand.New(rand.NewPCG(1, 5))
	const g = 3
	for _, w := range tensorWindows {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			s := patchesOf(w, nil, n.d.shared)
			if s.name == "" {
				t.Fatal("there is no kernel for it")
			}
			k, inC, outC := int(w.kernelW), int(w.inC), int(w.outC)
			in, filter := drawn(src, g*int(w.inH*w.inW*w.inC)), drawn(src, k*k*inC*outC)
			bias, y := drawn(src, outC), drawn(src, g*int(w.outH*w.outW*w.outC))
			laid, out := n.d.alloc(s.laidBytes()), n.d.alloc(4*len(y))
			n.layAll([]filterPlace{filterOf(w, put(n, filter), laid)})
			n.patch(&s, g, put(n, in), laid, put(n, bias), act{2, 0.25}, put(n, y), act{1, 0}, out)
			got := get(t, n, out, len(y))
			want, scale := convolved(w, g, in, filter)
			for i := range got {
				v := want[i] + float64(bias[i%outC])
				if v < 0 {
					v *= 0.25
				}
				if y[i] <= 0 {
					v = 0
				}
				if off := math.Abs(float64(got[i]) - v); !(off <= 4e-7*(scale[i]+1)) {
					t.Fatalf("value %d is %v, not %v: off by %.1e of what was added up", i, got[i], v, off/scale[i])
				}
			}
		})
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
// pixels, also of gradients that come through a pool; a filter's kernels of other tiles agree.
func TestTensorTaps(t *testing.T) {
	n := bare(t)
	src := rand.New(rand.NewPCG(1, 6))
	const g = 2
	for _, w := range tensorWindows {
		if w.back == 1 || w.inC == 48 { // of which a warp would have too many tiles
			continue
		}
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			s := tensorTapsOf(w, true, n.d.shared)
			if s.name == "" {
				t.Fatal("there is no kernel for it")
			}
			pool := &layer{PlannedLayer: model.PlannedLayer{Stride: 2, Out: model.Shape{Height: int(w.outH) / 2, Width: int(w.outW) / 2, Channels: int(w.outC)}}}
			x, behind := drawn(src, g*int(w.inH*w.inW*w.inC)), drawn(src, g*pool.Out.Len())
			which := make([]byte, len(behind))
			d := make([]float32, g*int(w.outH*w.outW*w.outC))
			for i := range which {
				if which[i] = byte(src.IntN(5)); which[i] == 4 {
					which[i] = 255
					continue
				}
				c, p := i%int(w.outC), i/int(w.outC)
				e, oy, ox := p/(pool.Out.Height*pool.Out.Width), p/pool.Out.Width%pool.Out.Height, p%pool.Out.Width
				d[((e*int(w.outH)+2*oy+int(which[i])/2)*int(w.outW)+2*ox+int(which[i])%2)*int(w.outC)+c] = behind[i]
			}
			pool.which = n.d.alloc(len(which))
			n.d.toDevice(pool.which, which)
			plain := drawn(src, len(d))
			checkTaps(t, n, &s, w, g, x, d, put(n, behind), pool)
			checkTaps(t, n, &s, w, g, x, plain, put(n, plain), nil)
		})
	}
}

func checkTaps(t *testing.T, n *Network, s *tensorTapping, w window, g int, x, d []float32, given uintptr, pool *layer) {
	t.Helper()
	k, inC, outC, outH, outW, inH, inW, pad := int(w.kernelW), int(w.inC), int(w.outC), int(w.outH), int(w.outW), int(w.inH), int(w.inW), int(w.padding)
	count := k*k*inC*outC + outC
	row := tiles(count, 4) * 4
	at := room{kept: n.d.alloc(4 * g * row), squares: n.d.alloc(8 * g), keptRow: int32(row), squaresRow: 1}
	n.tapTensor(s, pool, g, put(n, x), given, at)
	kept, squares := get(t, n, at.kept, g*row), get(t, n, at.squares, 2*g)
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
		bits := uint64(math.Float32bits(squares[2*e])) | uint64(math.Float32bits(squares[2*e+1]))<<32
		if got := math.Float64frombits(bits); !(math.Abs(got-square) <= 1e-9*square) {
			t.Fatalf("example %d: the square is %v, not %v", e, got, square)
		}
	}
}
