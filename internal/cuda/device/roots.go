//go:build linux

package device

import (
	"fmt"
	"math"
	"unsafe"
)

// rootErrors sets the gradients at the output of the root mean squared error of g rows: one
// root over all of their outputs, each held against 1 at its class and 0 elsewhere. They are
// few, and made here; a batch is one chunk.
func (n *Network) rootErrors(s *set, g int) error {
	out := n.output
	n.outputs = append(n.outputs[:0], make([]float32, g*out)...)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&n.outputs[0])), 4*len(n.outputs))
	n.d.toHost(raw, n.values[len(n.layers)])
	if err := n.d.wait(); err != nil {
		return err
	}
	rows := unsafe.Slice((*int32)(unsafe.Pointer(&n.chosen[0])), g)
	sum := 0.0
	for i, row := range rows {
		class := int(s.classes[row])
		if class < 0 || class >= out {
			return fmt.Errorf("class %d of %d", class, out)
		}
		n.outputs[i*out+class]--
	}
	for _, v := range n.outputs {
		sum += float64(v) * float64(v)
	}
	share := 0.0 // of a perfect fit
	if root := math.Sqrt(sum / float64(len(n.outputs))); root > 0 {
		share = 1 / (root * float64(out))
	}
	for i, v := range n.outputs {
		n.outputs[i] = float32(share * float64(v))
	}
	n.d.toDevice(n.layers[len(n.layers)-1].own, raw)
	return n.d.failed
}
