//go:build linux

package device

import "unsafe"

// slopesAtEnd sets the gradients at the output of g rows that have gone forwards, for losses
// without a kernel: they are few, and made here (model.Slopes).
func (n *Network) slopesAtEnd(s *set, g int) {
	n.outputs = append(n.outputs[:0], make([]float32, g*n.output)...)
	n.d.toHost(inBytes(n.outputs), n.values[len(n.layers)])
	if n.d.wait() != nil {
		return
	}
	d, err := n.slopes.Of(n.outputs, n.aimsOf(s, g))
	if err != nil {
		n.d.failed = err
		return
	}
	n.d.toDevice(n.layers[len(n.layers)-1].own, inBytes(d))
}

// aimsOf is what the outputs of the rows on their way are compared with.
func (n *Network) aimsOf(s *set, g int) []int32 {
	numbers := unsafe.Slice((*int32)(unsafe.Pointer(&n.chosen[0])), len(n.chosen)/4)
	if n.plan.Rows {
		return numbers[g*n.plan.Input.Len():]
	}
	n.aims = n.aims[:0]
	for _, row := range numbers {
		n.aims = append(n.aims, s.aims[row])
	}
	return n.aims
}

// inBytes are those of values in memory.
func inBytes(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))
}
