//go:build linux

package device

import (
	"unsafe"

	"github.com/coterie-fl/coterie/internal/cuda"
)

// What a block of whole_products has, inputs, outputs, and examples at a time; and one of whole_rows,
// columns, and rows at a time.
const (
	wholeInputs, wholeOutputs, wholeExamples = 64, 32, 16
	wholeColumns, wholeRowsDeep              = 32, 8
)

// sumWhole sets the sums' room to the last g rows' gradients times their weights, as whole numbers:
// doubles, as many as there are parameters.
func (n *Network) sumWhole(g int, weights []byte) {
	if n.weightsOfRows == 0 {
		n.weightsOfRows = n.d.alloc(8 * n.chunk)
	}
	n.d.toDevice(n.weightsOfRows, weights)
	n.d.clear(n.sums, 8*n.plan.Parameters)
	for i := 0; i < len(n.layers) && g > 0; i++ {
		switch l := &n.layers[i]; l.Kind {
		case "linear":
			n.wholeProducts(l, g)
		case "conv", "transposed-conv":
			count, last := n.keptFrom(i)
			i = last
			n.wholeKept(l, g, count)
		case "layer-norm", "group-norm":
			n.wholeKept(l, g, 2*l.Out.Channels)
		case "positions":
			n.wholeRows(l, g, l.Out.Len(), l.gradient, l.Out.Len())
		case "places", "embedding":
			f := n.formingOf(l)
			down, across := f.tiles()
			n.call("formed_sum", [3]int{down, across, min(tiles(4*processors, down*across), g)}, 256, f, n.weightsOfRows, n.sums+uintptr(8*l.Start), g)
		}
	}
}

// forming is a layer whose examples' gradients are formed, as whole.cuh has it.
type forming struct {
	x, d, words, dx          uintptr
	places, high, wide, bias int32
}

// formedHigh and formedWide are what a block has of it.
const formedHigh, formedWide = 64, 32

// tiles are its blocks.
func (f forming) tiles() (down, across int) {
	return tiles(int(f.high+f.bias), formedHigh), tiles(int(f.wide), formedWide)
}

// formingShape says how large a layer's gradient is. Scores have theirs with the embedding, whose
// vectors they are.
func formingShape(l *layer) (f forming, ok bool) {
	switch f.places = int32(placesOf(l)); l.Kind {
	case "places":
		f.high, f.wide, f.bias = int32(l.In.Channels), int32(l.Out.Channels), int32(l.biases())
	case "embedding":
		f.high, f.wide = int32(l.Words), int32(l.Out.Channels)
	default:
		return f, false
	}
	return f, true
}

// formingOf is a layer's gradients, of the last rows that went back.
func (n *Network) formingOf(l *layer) forming {
	f, _ := formingShape(l)
	switch l.Kind {
	case "places":
		f.x, f.d = n.values[l.From], l.gradient
	case "embedding":
		f.words, f.dx = n.rows, l.gradient
		if last := &n.layers[len(n.layers)-1]; last.Kind == "scores" {
			f.x, f.d = last.gradient, n.values[last.From]
		}
	}
	return f
}

// squaresOf is in how many parts the squares of a layer's norms are made.
func (n *Network) squaresOf(l *layer) int {
	if !n.plan.Whole {
		return pairs(l)
	}
	f, ok := formingShape(l)
	if !ok {
		return 0 // scores
	}
	down, across := f.tiles()
	return down * across
}

// formedSquare makes the squares of norms as sums of whole numbers need them, of the values that are
// added, and says whether that is all that is to be kept of a layer.
func (n *Network) formedSquare(l *layer, g int, at room) bool {
	if _, ok := formingShape(l); ok {
		f := n.formingOf(l)
		down, across := f.tiles()
		n.call("formed_square", [3]int{down, across, g}, 256, f, at)
		return true
	}
	return l.Kind == "scores"
}

// wholeKept adds so many values that are kept of a layer and those behind it.
func (n *Network) wholeKept(l *layer, g, count int) {
	n.wholeRows(l, g, count, n.room.kept+uintptr(4*l.kept0), n.keptRow)
}

// wholeRows adds so many values a row, of rows that begin so many apart, to those of a layer's parameters.
func (n *Network) wholeRows(l *layer, g, count int, rows uintptr, apart int) {
	across := tiles(count, wholeColumns)
	parts := min(tiles(4*processors, across), tiles(g, wholeRowsDeep))
	n.call("whole_rows", [3]int{across, parts, 1}, 256, rows, n.weightsOfRows, n.sums+uintptr(8*l.Start), g, count, apart)
}

// wholeProducts adds a linear layer's gradients.
func (n *Network) wholeProducts(l *layer, g int) {
	in, out := l.In.Len(), l.Out.Len()
	down, across := tiles(in+l.biases(), wholeInputs), tiles(out, wholeOutputs)
	parts := min(tiles(4*processors, down*across), tiles(g, wholeExamples))
	n.call("whole_products", [3]int{down, across, parts}, 256, n.values[l.From], l.gradient, n.weightsOfRows, n.sums+uintptr(8*l.Start), g, in, out, l.biases())
}

// addWhole does what AskWhole asks for.
func (s *server) addWhole(a cuda.Ask) error {
	n, l, g := s.n, s.layout, int(a.B)
	n.toSide(int(a.C))
	n.sumWhole(g, unsafe.Slice(&s.shared[l.Factors], 8*g))
	n.d.toHost(s.shared[l.Sums:][:8*n.plan.Parameters], n.sums)
	return n.d.wait()
}
