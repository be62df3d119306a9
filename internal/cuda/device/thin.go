//go:build linux

package device

import "fmt"

// thin is what thin.cuh's kernels take.
type thin struct {
	outH, outW, outC, inH, inW, inC int32
	padding                         int32
	overQuads, overGroups           uint32
}

// thinning is how a convolution that reads few channels is computed by a kernel of thin.cuh; no
// name: it is not.
type thinning struct {
	name   string
	shape  thin
	shared int
}

// thinWidths are those of filters that thin.cuh has kernels for, and mostThin how many channels
// are few.
var thinWidths = []int{3, 5}

const mostThin = 3

func thinKernel(k int) string { return fmt.Sprint("thin_", k) }

// thinOf is for a window, if it is one of these.
func thinOf(w window) (one thinning) {
	for _, k := range thinWidths {
		shared := 4 * k * k * int(w.inC*w.outC)
		if slides(w) && w.back == 0 && int(w.kernelW) == k && w.inC <= mostThin && w.outC%4 == 0 && shared <= sharedBytes {
			return thinning{thinKernel(k), thin{w.outH, w.outW, w.outC, w.inH, w.inW, w.inC, w.padding, over(int(w.outC) / 4), over(tiles(int(w.outW), 4))}, shared}
		}
	}
	return one
}

// thin starts such a kernel.
func (n *Network) thin(s *thinning, g int, in, filter, bias uintptr, a act, out uintptr) {
	d := &s.shape
	blocks := tiles(int(d.outH)*tiles(int(d.outW), 4)*int(d.outC)/4, 256)
	n.callShared(s.name, [3]int{blocks, g, 1}, 256, s.shared, *d, in, filter, bias, a, out)
}
