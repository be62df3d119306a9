//go:build linux

package device

import (
	"fmt"

	"github.com/coterie-fl/coterie/internal/cuda"
)

// what a head's kernel has room for; and how many values of a product's part may be: of their
// squares a thread adds at most one in four after another, of which docs/proofs/gpu-clip.md allows
// 2^12.
const headHidden, headClasses, headPart = 128, 64, 1 << 14

// denseWidth is how many outputs of a linear layer a block computes.
func denseWidth(out int) int {
	if out <= 32 {
		return 32
	}
	return 64
}

// denseParts is in how many parts a linear layer's sums are made, of outputs and of gradients
// of a chunk of examples: as many as were timed best on an H200 where layers are large, and no
// more than leave every part something to add. A block has the weights of a part's examples
// at once.
func denseParts(chunk, in, out int) (outputs, gradients int) {
	wide := denseWidth(out)
	across, most := tiles(out, wide), 64
	if wide == 64 {
		most = 48
	}
	outputs = min(tiles(4*processors, tiles(chunk, 128)*across), most, tiles(in, 64))
	gradients = max(min(tiles(2*processors, tiles(in, 128)*across), 8, tiles(chunk, 64)), tiles(chunk, mostWeights-16))
	return outputs, gradients
}

// linear is a linear layer whose gradients are added up, as dense.cuh has it.
type linear struct {
	x, d, parts, sum            uintptr
	in, out, bias, split, first int32
}

// linears are those of a launch.
type linears struct {
	of    [4]linear
	count int32
}

// with takes one more, of so many blocks, and is how many there are then.
func (l *linears) with(one linear, before, blocks int) int {
	one.first = int32(before)
	l.of[l.count] = one
	l.count++
	return before + blocks
}

// denseSums adds the weighted gradients of g examples of linear layers to their sums.
func (n *Network) denseSums(all []linear, factors uintptr, g int) {
	for len(all) > 0 {
		some := all[:min(len(all), len(linears{}.of))]
		all = all[len(some):]
		var adds linears
		parts, blocks := n.parts, 0
		for i := range some {
			l := &some[i]
			values := int((l.in + l.bias) * l.out)
			l.parts = parts
			parts += uintptr(16 * tiles(int(l.split)*values, 4))
			blocks = adds.with(*l, blocks, tiles(values, 256))
		}
		for _, wide := range []int{32, 64} {
			var sums linears
			blocks := 0
			for _, l := range some {
				if denseWidth(int(l.out)) == wide {
					blocks = sums.with(l, blocks, tiles(int(l.in+l.bias), 128)*tiles(int(l.out), wide)*int(l.split))
				}
			}
			if g > 0 {
				n.call(fmt.Sprint("dense_sums_", wide), [3]int{blocks, 1, 1}, 128, factors, sums, g)
			}
		}
		if g > 0 {
			n.call("dense_adds", [3]int{blocks, 1, 1}, 256, adds)
		}
	}
}

// headed says that a network ends in two linear layers, of which the last and the way back
// through it are computed with the loss.
func (n *Network) headed() bool {
	end := len(n.layers)
	if end < 2 || cuda.Parted(n.plan) || n.plan.Loss != "cross-entropy" || n.slopes != nil {
		return false
	}
	hidden, last := &n.layers[end-2], &n.layers[end-1]
	return hidden.Kind == "linear" && last.Kind == "linear" && hidden.activation.kind <= 2 && last.activation.kind <= 2 &&
		last.In.Len() <= headHidden && last.Out.Len() <= headClasses && hidden.In.Len() < headPart*hidden.split
}

// squared says that a head has the norms of layer i's gradients.
func (n *Network) squared(i int) bool { return i >= len(n.layers)-2 && n.headed() }

// head ends the product of the last layer but one, whose parts are there, and goes on from
// there to the gradient at its output.
func (n *Network) head(s *set, g int) {
	end := len(n.layers)
	hidden, last := &n.layers[end-2], &n.layers[end-1]
	_, hiddenBias := n.weights(hidden)
	w, bias := n.weights(last)
	labels, rows := n.classesOf(s, g)
	at := n.room
	at.squares0 = int32(last.squares0)
	n.call("head", along(g, 4), 128, n.parts, hidden.split, hiddenBias, hidden.activation, w, bias, last.activation, labels, rows,
		n.values[end-1], last.own, hidden.own, g, last.In.Len(), last.Out.Len(), at, n.inputSquares, hidden.squares0)
	last.gradient, n.parted.slopes[end-1] = last.own, hidden.own
}
