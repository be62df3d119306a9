//go:build linux

package device

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/coterie-fl/coterie/internal/cuda/cudatest"
	"github.com/coterie-fl/coterie/internal/cuda/kernels"
)

// bare is a network without layers: its kernels are started one by one.
func bare(t testing.TB) *Network {
	t.Helper()
	library, images := driverAndKernels(t)
	runtime.LockOSThread()
	d, _, err := open(library, 0)
	if err != nil {
		t.Fatal(err)
	}
	compiled := kernelSet{images: images}
	if err := compiled.load(d); err != nil {
		t.Fatal(err)
	}
	return &Network{d: d, functions: compiled.functions}
}

// driverAndKernels are whose driver is used, and what it is given.
func driverAndKernels(t testing.TB) (library string, images []string) {
	t.Helper()
	cudatest.Use(t)
	library, images = "libcuda.so.1", kernels.Modules()
	if !cudatest.OnDevice() {
		library = os.Getenv("COTERIE_CUDA_LIBRARY")
	}
	if named := os.Getenv("COTERIE_CUDA_KERNELS"); named != "" {
		var err error
		if images, err = imagesOf(named); err != nil {
			t.Fatal(err)
		}
	}
	return library, images
}

// put brings values to the device.
func put(n *Network, values []float32) uintptr {
	p := n.d.alloc(4 * len(values))
	n.d.toDevice(p, unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values)))
	n.d.wait()
	return p
}

func get(t testing.TB, n *Network, p uintptr, count int) []float32 {
	t.Helper()
	raw, values := make([]byte, 4*count), make([]float32, count)
	n.d.toHost(raw, p)
	if err := n.d.wait(); err != nil {
		t.Fatal(err)
	}
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return values
}

func drawn(src *rand.Rand, count int) []float32 {
	values := make([]float32, count)
	for i := range values {
		values[i] = float32(src.NormFloat64())
	}
	return values
}

// off is the distance of two vectors over the length of the second.
func off(a, b []float32) float64 {
	var d, n float64
	for i := range a {
		d += float64(a[i]-b[i]) * float64(a[i]-b[i])
		n += float64(b[i]) * float64(b[i])
	}
	if !(d >= 0) {
		return math.Inf(1)
	}
	return math.Sqrt(d / n)
}

// TestSlidingIsGathering: every kernel that slides computes what the gathering ones do, for
// pictures that its blocks share, and that share a block.
func TestSlidingIsGathering(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 1))
	for k, all := range strips {
		for _, one := range all {
			s := one.pixels
			for _, shape := range [][6]int{{k + 1, k + 20, 1, 9, 0, 0}, {k + 2, 2 * k, 12, 20, 1, 1}, {k, k + s, 7, 3, k / 2, 1}, {2 * k, 30, 8, 16, k / 2, 0}, {k + 3, k + 20, 72, 12, 0, 0}} {
				h, w, inC, outC, pad, back := shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]
				g := window{inH: int32(h), inW: int32(w), inC: int32(inC), outC: int32(outC), kernelH: int32(k), kernelW: int32(k), stride: 1, padding: int32(pad), back: int32(back)}
				grow := int32(2*pad - k + 1)
				if back == 1 {
					grow = -grow
				}
				g.outH, g.outW = g.inH+grow, g.inW+grow
				const examples = 5
				slides := slideBy(g, 64, []strip{one})
				if slides.name != one.kernel(k) {
					t.Fatalf("%+v: %q", g, slides.name)
				}
				count := examples * int(g.outH*g.outW*g.outC)
				in, filter, bias, y := put(n, drawn(src, examples*h*w*inC)), put(n, drawn(src, k*k*inC*outC)), put(n, drawn(src, outC)), put(n, drawn(src, count))
				one, other := n.d.alloc(4*count), n.d.alloc(4*count)
				arranged := n.d.alloc(4 * slides.arranged(k))
				n.arrangeAll([]filterPlace{filterOf(g, filter, arranged)})
				if back == 1 {
					turned, gate := n.d.alloc(4*k*k*inC*outC), act{kind: int32(2 + s%2), slope: 0.1}
					n.call("turn", along(k*k*inC*outC, 256), 256, filter, turned, k*k, outC, inC)
					n.slide(&slides, examples, in, arranged, 0, act{}, y, gate, one)
					n.gathered(g, examples, in, turned, 0, act{}, y, gate, other)
				} else {
					n.slide(&slides, examples, in, arranged, bias, act{kind: 1}, 0, act{}, one)
					n.gathered(g, examples, in, filter, bias, act{kind: 1}, 0, act{}, other)
				}
				if d := off(get(t, n, one, count), get(t, n, other, count)); d > 3e-6 {
					t.Errorf("%s, pictures of %dx%dx%d, padding %d, back %d: off by %.2g", slides.name, h, w, inC, pad, back, d)
				}
			}
		}
	}
}

// TestTapsAreFilters: every kernel for the gradients of filters of stride 1 computes what
// those for any stride do, with their squared norms.
func TestTapsAreFilters(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 2))
	for _, kernel := range [][2]int{{2, 2}, {3, 3}, {3, 1}, {4, 2}, {5, 1}, {8, 1}} {
		k := kernel[0]
		for _, shape := range [][5]int{{k + 5, k + 8, 1, 9, 0}, {k + 2, 2 * k, 12, 20, 1}, {k, k + 9, 7, 3, k / 2}, {k + 20, k + 3, 36, 70, 0}} {
			h, w, inC, outC, pad := shape[0], shape[1], shape[2], shape[3], shape[4]
			grow := int32(2*pad - k + 1)
			g := window{inH: int32(h), inW: int32(w), inC: int32(inC), outH: int32(h) + grow, outW: int32(w) + grow, outC: int32(outC), kernelH: int32(k), kernelW: int32(k), stride: 1, padding: int32(pad)}
			s := tapBy(g, true, kernel[1:])
			if s.name != fmt.Sprint(k, "_", kernel[1]) {
				t.Fatalf("%+v: %q", g, s.name)
			}
			const examples = 2
			pixels, weights := int(g.outH*g.outW), k*k*inC*outC
			x, d := put(n, drawn(src, examples*h*w*inC)), put(n, drawn(src, examples*pixels*outC))
			row := tiles(weights+outC, 4) * 4
			mine, theirs := s.across*s.deep, filterTiles(layer{forward: g})+1
			ours := room{kept: put(n, make([]float32, examples*row)), squares: n.d.alloc(8 * examples * mine), keptRow: int32(row), squaresRow: int32(mine)}
			other := room{kept: put(n, make([]float32, examples*row)), squares: n.d.alloc(8 * examples * theirs), keptRow: int32(row), squaresRow: int32(theirs)}
			n.tap(&s, examples, x, d, ours)
			n.filters(g, examples, x, d, other)
			biases := other
			biases.kept0, biases.squares0 = int32(weights), int32(theirs-1)
			n.call("biases", along(examples, 1), 256, d, pixels, outC, biases)
			norms := [2]uintptr{n.d.alloc(8 * examples), n.d.alloc(8 * examples)}
			n.call("norms", along(examples, 64), 64, ours.squares, norms[0], examples, mine)
			n.call("norms", along(examples, 64), 64, other.squares, norms[1], examples, theirs)
			if far := off(get(t, n, ours.kept, examples*row), get(t, n, other.kept, examples*row)); far > 1e-6 {
				t.Errorf("%s, pictures of %dx%dx%d, padding %d: off by %.2g", s.name, h, w, inC, pad, far)
			}
			a, b := doubles(t, n, norms[0], examples), doubles(t, n, norms[1], examples)
			for i := range a {
				if !(math.Abs(a[i]-b[i]) < 1e-6*b[i]) {
					t.Errorf("%s, pictures of %dx%dx%d, padding %d: a squared norm of %g instead of %g", s.name, h, w, inC, pad, a[i], b[i])
				}
			}
		}
	}
}

func doubles(t testing.TB, n *Network, p uintptr, count int) []float64 {
	t.Helper()
	raw, values := make([]byte, 8*count), make([]float64, count)
	n.d.toHost(raw, p)
	if err := n.d.wait(); err != nil {
		t.Fatal(err)
	}
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return values
}

// inTurn is a test's part with a name, on the test's own thread, which has the device's context.
func inTurn(t *testing.T, name string, part func(t *testing.T)) {
	t.Helper()
	before := t.Failed()
	if part(t); t.Failed() && !before {
		t.Logf("that was %s", name)
	}
}
