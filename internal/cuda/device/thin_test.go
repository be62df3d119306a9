//go:build linux

package device

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestThin: convolutions that read few channels are those of a sum in float64, of any size, with
// padding and bias or without.
func TestThin(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(1, 9))
	const g = 3
	for _, w := range []window{
		{outH: 26, outW: 26, outC: 32, inH: 28, inW: 28, inC: 1, kernelH: 3, kernelW: 3, stride: 1},
		{outH: 9, outW: 11, outC: 12, inH: 9, inW: 11, inC: 3, kernelH: 3, kernelW: 3, stride: 1, padding: 1},
		{outH: 7, outW: 3, outC: 4, inH: 7, inW: 3, inC: 2, kernelH: 5, kernelW: 5, stride: 1, padding: 2},
		{outH: 1, outW: 1, outC: 100, inH: 5, inW: 5, inC: 3, kernelH: 5, kernelW: 5, stride: 1},
	} {
		s := thinOf(w)
		if s.name == "" {
			t.Fatalf("%+v: there is no kernel for it", w)
		}
		in, filter := drawn(src, g*int(w.inH*w.inW*w.inC)), drawn(src, int(w.kernelW*w.kernelW*w.inC*w.outC))
		bias, count := drawn(src, int(w.outC)), g*int(w.outH*w.outW*w.outC)
		want, scale := convolved(w, g, in, filter)
		for _, biases := range []uintptr{0, put(n, bias)} {
			out := n.d.alloc(4 * count)
			n.thin(&s, g, put(n, in), put(n, filter), biases, act{1, 0}, out)
			for i, got := range get(t, n, out, count) {
				v := want[i]
				if biases != 0 {
					v += float64(bias[i%int(w.outC)])
				}
				if v = max(0, v); !(math.Abs(float64(got)-v) <= 1e-6*(scale[i]+1)) {
					t.Fatalf("%+v: value %d is %v, not %v", w, i, got, v)
				}
			}
		}
	}
	for _, w := range []window{
		{outH: 26, outW: 26, outC: 30, inH: 28, inW: 28, inC: 1, kernelH: 3, kernelW: 3, stride: 1},
		{outH: 26, outW: 26, outC: 32, inH: 28, inW: 28, inC: 4, kernelH: 3, kernelW: 3, stride: 1},
		{outH: 28, outW: 28, outC: 4, inH: 26, inW: 26, inC: 1, kernelH: 3, kernelW: 3, stride: 1, back: 1},
	} {
		if s := thinOf(w); s.name != "" {
			t.Errorf("%+v: %s is not for it", w, s.name)
		}
	}
}
