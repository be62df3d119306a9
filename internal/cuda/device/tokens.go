//go:build linux

package device

import (
	"fmt"
	"math"
)

// heads is attention, as attention.cuh has it.
type heads struct{ places, heads, width int32 }

// placesOf is how many places a layer's examples have.
func placesOf(l *layer) int { return l.Out.Height * l.Out.Width }

// pairs is how many blocks compare an example's places, 64 with 64.
func pairs(l *layer) int { return tiles(placesOf(l), 64) * tiles(placesOf(l), 64) }

// prepareParted derives what a layer needs that chains do not have, if it is known.
func (n *Network) prepareParted(l *layer) bool {
	if l.In.Channels > maxRow || l.Out.Channels > maxRow || n.chunk > math.MaxInt32/max(l.In.Len(), l.Out.Len()) { // kernels count in 32 bits
		return false
	}
	l.kept0, l.squares0 = n.keptRow, n.squaresRow
	switch l.Kind {
	case "places":
		n.squaresRow += n.squaresOf(l)
		n.splitSum(l, l.In.Channels, l.Out.Channels, l.Bias)
	case "scores":
		n.squaresRow += n.squaresOf(l)
		n.splitSum(l, l.Words, l.In.Channels, false)
	case "embedding":
		n.squaresRow += n.squaresOf(l)
	case "positions":
		n.squaresRow++
	case "layer-norm":
		n.keptRow += 2 * l.Out.Channels
		n.squaresRow += tiles(l.Out.Channels, 32)
	case "group-norm":
		n.keptRow += 2 * l.Out.Channels
		n.squaresRow += l.Groups
	case "attention", "joined", "mean-pool":
	default:
		return false
	}
	return true
}

// splitSum says in how many parts a sum over all places is made, of m x n values.
func (n *Network) splitSum(l *layer, m, columns int, bias bool) {
	split := tiles(2*processors, tiles(m, 128)*tiles(columns, 128)) // two blocks each
	l.split = min(max(1, split), max(1, tiles(n.chunk*placesOf(l), 128)))
	if bias {
		m++
	}
	n.partCount = max(n.partCount, l.split*m*columns)
}

// wide names the kernel for a product of m x n values: lengths are those that have to be
// multiples of 4 for it to read four values at a time.
func (n *Network) wide(name string, blocks int, lengths ...int) (kernel string, size int) {
	for _, v := range lengths {
		if v%4 != 0 {
			return name + "_odd", 64
		}
	}
	if blocks < int(n.d.processors) { // some would be idle
		return name + "_64", 64
	}
	return name + "_128", 128
}

// product multiplies rows of k values by w, [k][n].
func (n *Network) product(x uintptr, m matrix, bias, plus, before, out uintptr, rows, columns, k int, a act) {
	if b, blocks, ok := n.groupsFor(m, rows, columns); ok {
		n.callShared("group_times"+b.name, along(blocks, 1), b.threads(), b.shared(), x, m.laid, bias, plus, before, out, rows, columns, k, a)
		return
	}
	w := m.at
	args := []any{x, w, bias, plus, before, out, rows, columns, k, a}
	if t, ok := n.tensorTile("times", rows, columns, columns, k, int(w/4)); ok {
		n.callShared(t.kernel("times"), along(t.blocks(rows, columns), 1), t.threads, t.shared(true, false), args...)
		return
	}
	name, size := n.wide("times", tiles(rows, 128)*tiles(columns, 128), columns, k, int(w/4))
	n.call(name, [3]int{tiles(rows, size), tiles(columns, size), 1}, 256, args...)
}

// productBack multiplies rows of k values by w, [n][k].
func (n *Network) productBack(d uintptr, m matrix, plus, at uintptr, gate act, dx uintptr, rows, columns, k int) {
	if b, blocks, ok := n.groupsFor(m, rows, columns); ok {
		n.callShared("group_times_back"+b.name, along(blocks, 1), b.threads(), b.shared(), d, m.laid, plus, at, gate, dx, rows, columns, k)
		return
	}
	w := m.at
	args := []any{d, w, plus, at, gate, dx, rows, columns, k}
	if t, ok := n.tensorTile("times_back", rows, columns, columns, k, int(w/4)); ok {
		n.callShared(t.kernel("times_back"), along(t.blocks(rows, columns), 1), t.threads, t.shared(true, true), args...)
		return
	}
	name, size := n.wide("times_back", tiles(rows, 128)*tiles(columns, 128), columns, k, int(w/4))
	n.call(name, [3]int{tiles(rows, size), tiles(columns, size), 1}, 256, args...)
}

// productSum adds the sum over all places of x times d, and of d alone if there is a bias.
func (n *Network) productSum(l *layer, one summed, rows int) {
	m, columns, bias := int(one.m), int(one.n), int(one.bias)
	if len(n.tilesFor("times_sum", m, columns)) > 0 {
		n.tensorSums([]summed{one}, rows, nil)
		return
	}
	split := min(l.split, tiles(rows, 128))
	name, size := n.wide("times_sum", split*tiles(m, 128)*tiles(columns, 128), m, columns)
	n.call(name, [3]int{tiles(m, size), tiles(columns, size), split}, 256, one.x, one.d, n.parted.weights, n.parts, m, columns, rows, bias)
	n.call("parts_sum", along(one.values(), 32), 256, n.parts, one.sum, one.values(), split)
}

// plusOf is the value that is added to what a layer makes; 0: none.
func (n *Network) plusOf(l *layer) uintptr {
	if l.Plus == 0 {
		return 0
	}
	return n.values[l.Plus-1]
}

// forwardParted takes g examples through layer i.
func (n *Network) forwardParted(i, g int) {
	l := &n.layers[i]
	in, out, w := n.values[l.From], n.values[i+1], n.theta+uintptr(4*l.Start)
	count, rows, channels := g*l.Out.Len(), g*placesOf(l), l.Out.Channels
	applied := l.activation.kind // by the layer's own kernel
	switch l.Kind {
	case "places":
		_, bias := n.weights(l)
		n.product(in, matrix{w, l.grouped[0]}, bias, n.plusOf(l), l.extra.before, out, rows, channels, l.In.Channels, l.activation)
	case "scores":
		n.productBack(in, matrix{w, l.grouped[0]}, 0, 0, act{}, out, rows, l.Words, l.In.Channels)
	case "embedding":
		n.call("embed", along(count, 256), 256, n.rows, w, out, count, channels)
		if n.parted.noise != 0 {
			n.call("joined", along(count, 256), 256, out, n.parted.noise, out, count, act{})
		}
		applied = 0
	case "positions":
		n.call("places_add", along(count, 256), 256, in, w, out, count, l.Out.Len())
		applied = 0
	case "layer-norm":
		n.call(normKernel("layer_norm", channels, w), along(rows, 8), 256, in, w, out, l.extra.stats, rows, channels, l.activation)
	case "group-norm":
		n.call("group_norm", [3]int{l.Groups, g, 1}, 256, in, w, out, l.extra.stats, placesOf(l), channels, l.Groups, l.activation)
	case "mean-pool":
		p, _ := poolOf(l, l.Out, g)
		n.call("mean_pool", [3]int{tiles(l.Out.Width*channels, 256), l.Out.Height, g}, 256, p, in, out, l.activation)
	case "attention":
		n.attend(l, g, in, out)
		applied = 0
	case "joined":
		a := l.activation
		if a.kind == 3 || a.kind == 4 { // activate does them
			a = act{}
		}
		n.call("joined", along(count, 256), 256, in, n.plusOf(l), out, count, a)
	}
	if a := l.activation; applied != a.kind && a.kind < 3 {
		n.call("joined", along(count, 256), 256, out, uintptr(0), out, count, a)
	}
}

// normKernel is the kernel of a layer norm of so many channels, with factors at w: of some, lanes
// hold a place's.
func normKernel(name string, channels int, w uintptr) string {
	switch {
	case channels%4 != 0 || channels > 512 || w%16 != 0:
		return name
	case channels <= 128:
		return name + "_128"
	}
	return name + "_512"
}

func headsOf(l *layer) heads {
	return heads{int32(placesOf(l)), int32(l.Heads), int32(l.Out.Channels / l.Heads)}
}

// near says that a block has room for a head of an example.
func (h heads) near() bool { return h.places <= 64 && h.width <= 32 && h.width%4 == 0 }

// attend has every place look back.
func (n *Network) attend(l *layer, g int, in, out uintptr) {
	h := headsOf(l)
	if h.near() {
		n.call("attend_near", [3]int{l.Heads, g, 1}, 256, in, l.extra.looks, out, h)
		return
	}
	n.call("attend", [3]int{tiles(placesOf(l), 64), l.Heads, g}, 256, in, l.extra.looks, out, h)
}

// attendBack takes the gradient d at its output to its input, dx.
func (n *Network) attendBack(l *layer, g int, in, out, d, dx uintptr) {
	h := headsOf(l)
	if h.near() {
		n.call("attend_back_near", [3]int{l.Heads, g, 1}, 256, in, l.extra.looks, out, d, dx, h)
		return
	}
	n.call("attend_back", [3]int{l.Heads, g, 1}, 256, in, l.extra.looks, out, d, l.extra.slopes, l.extra.along, dx, h)
}

// nextWordKernel is the kernel for so many words: of some, threads hold a place's scores.
func nextWordKernel(vocabulary int) string {
	switch {
	case vocabulary%4 != 0 || vocabulary > 4096:
		return "next_word"
	case vocabulary <= 2048:
		return "next_word_2"
	}
	return "next_word_4"
}

// nextWord makes losses of scores and, if they are to go back, slopes in their place.
func (n *Network) nextWord(g int, back bool) {
	goes := 0
	if back {
		goes = 1
	}
	last := &n.layers[len(n.layers)-1]
	met := n.parted.met
	if !back || n.parted.plain || n.plan.Whole {
		met = 0 // nobody asks for norms
	}
	n.call(nextWordKernel(last.Out.Channels), along(g*placesOf(last), 1), 256, n.values[len(n.layers)], n.rows, n.parted.losses, met, placesOf(last), last.Out.Channels, goes)
	if back && last.Kind != "scores" { // their room is the layer's own
		n.call("joined", along(g*last.Out.Len(), 256), 256, n.values[len(n.layers)], uintptr(0), last.own, g*last.Out.Len(), act{})
	}
}

// noisy has noise on the words of the next texts, of which there is room for so many.
func (n *Network) noisy(noise []byte, texts int) {
	if n.parted.noises == 0 {
		n.parted.noises = n.d.alloc(4 * texts * n.layers[0].Out.Len())
	}
	n.parted.noise = n.parted.noises
	n.d.toDevice(n.parted.noise, noise)
}

// textLosses has the losses of g texts where norms are.
func (n *Network) textLosses(g int) {
	if n.texts == nil { // which has them already
		n.nextWord(g, false)
	}
	n.call("text_losses", along(g, 64), 64, n.parted.losses, n.norms, g, n.rowLength())
}

// maxRow is how many values of a place there may be: beyond it rounding is not bounded by
// roundingShare.
const maxRow = 1 << 16

// roundingShare is by how much of the square of the places' lengths, added up, products of
// such rows may be off (docs/proofs/gpu-clip.md); on tensor cores by more.
func roundingShare(a, b int, groups bool) float64 {
	if groups {
		return (312 + float64(tiles(a, 32)+tiles(b, 32))*65/64) * 0x1p-24
	}
	return float64(73+tiles(a, 32)+tiles(b, 32)) * 0x1p-24
}

// gradientsParted keeps what a layer's examples' gradients are, or their norms.
func (n *Network) gradientsParted(i, g int, at room) {
	l := &n.layers[i]
	in, d := n.values[l.From], l.gradient
	channels := l.Out.Channels
	if n.parted.plain && (l.Kind == "places" || l.Kind == "scores" || l.Kind == "embedding" || l.Kind == "positions") {
		return
	}
	if n.plan.Whole && n.formedSquare(l, g, at) {
		return
	}
	switch l.Kind {
	case "places":
		n.productSquare(in, d, g, placesOf(l), l.In.Channels, channels, l.biases(), 1, at)
	case "scores": // the vectors' other part is the embedding's: of a sum's square, twice both parts' are enough
		n.productSquare(in, d, g, placesOf(l), l.In.Channels, channels, 0, 2, at)
	case "embedding":
		h := uintptr(0)
		if last := &n.layers[len(n.layers)-1]; last.Kind == "scores" {
			h = n.values[last.From]
		}
		n.call("words_square", [3]int{pairs(l), 1, g}, 256, n.rows, d, h, n.parted.met, placesOf(l), channels, 2*roundingShare(channels, channels, false), at)
	case "positions":
		n.call("rows_square", along(g, 1), 256, d, l.Out.Len(), at)
	case "layer-norm":
		n.call("layer_norm_kept", [3]int{tiles(channels, 32), 1, g}, 256, in, l.extra.stats, d, placesOf(l), channels, at)
	case "group-norm": // on the way back, which needs the same sums
		n.groupNormBack(i, g, at)
	}
}

// productSquare is the squared norm of every example's gradient of a matrix that its places
// share, with so many times what rounding may have taken from it. Of few places it may wait for
// other layers' (squareHalves).
func (n *Network) productSquare(x, d uintptr, g, places, in, out, bias, times int, at room) {
	groups := n.pairsByGroups(places, in, out)
	share := float64(times) * roundingShare(in, out, groups)
	switch {
	case places > 64:
		n.call("times_square", [3]int{tiles(places, 64) * tiles(places, 64), 1, g}, 256, x, d, places, in, out, bias, share, at)
	case in%4 == 0 && out%4 == 0:
		if w := &n.parted.halves; w.places != places || w.groups != groups {
			n.squareHalves(g)
			w.groups = groups
		}
		n.parted.halves.add(places, half{x: x, d: d, share: share, in: int32(in), out: int32(out), bias: int32(bias), squares0: at.squares0})
		if n.parted.halves.full() {
			n.squareHalves(g)
		}
	default:
		n.call("times_half_odd", along(g, 1), 128, x, d, places, in, out, bias, share, at)
	}
}

// half is a layer whose gradients' norms are asked for, as tokens.cuh has it.
type half struct {
	x, d                    uintptr
	share                   float64
	in, out, bias, squares0 int32
}

// halves are those of a launch.
type halves struct {
	of   [4]half
	room room
}

// waitingHalves are layers of as many places whose norms have not been started yet: of a small
// batch one layer has too few blocks.
type waitingHalves struct {
	list          halves
	count, places int
	groups        bool // of warps are to compute them
}

// full says that there is no room for one more, or nobody should wait for the next: one as long
// as scores has work enough.
func (w *waitingHalves) full() bool {
	last := w.list.of[w.count-1]
	return w.count == len(w.list.of) || last.in+last.out > 1024
}

func (w *waitingHalves) add(places int, one half) {
	w.list.of[w.count] = one
	w.count, w.places = w.count+1, places
}

// squareHalves starts what waits.
func (n *Network) squareHalves(g int) {
	w := &n.parted.halves
	if w.count == 0 {
		return
	}
	w.list.room = n.room
	if w.groups {
		n.callShared("group_halves", [3]int{g, w.count, 1}, 128, pairShared, w.list, w.places)
	} else {
		n.call("times_half", [3]int{g, w.count, 1}, 128, w.list, w.places)
	}
	*w = waitingHalves{}
}

// groupNormBack makes a group norm's gradients, and those at its input.
func (n *Network) groupNormBack(i, g int, at room) {
	l := &n.layers[i]
	dx, plus, gate, gateAt := uintptr(0), uintptr(0), act{}, uintptr(0)
	if l.From > 0 {
		dx, plus = n.layers[l.From-1].own, n.parted.slopes[l.From]
		if n.parted.first[l.From] == i {
			gate, gateAt = n.gateOf(l.From)
		}
	}
	n.call("group_norm_back", [3]int{l.Groups, g, 1}, 256, n.values[l.From], l.extra.stats, n.theta+uintptr(4*l.Start), l.gradient, plus, gateAt, gate, dx,
		placesOf(l), l.Out.Channels, l.Groups, at)
}

// backParted takes gradients from layer i's output to its input, adds plus unless it is 0,
// and goes through gate.
func (n *Network) backParted(i, g int, plus, at uintptr, gate act, dx uintptr) {
	l := &n.layers[i]
	in, d, w := n.values[l.From], l.gradient, n.theta+uintptr(4*l.Start)
	rows := g * placesOf(l)
	spare := dx
	if plus != 0 || gate.kind != 0 {
		spare = n.parted.spare
	}
	switch l.Kind {
	case "places":
		n.productBack(d, matrix{w, l.grouped[1]}, plus, at, gate, dx, rows, l.In.Channels, l.Out.Channels)
		return
	case "layer-norm":
		n.call(normKernel("layer_norm_back", l.Out.Channels, w), along(rows, 8), 256, in, l.extra.stats, w, d, plus, at, gate, dx, rows, l.Out.Channels)
		return
	case "group-norm":
		return // with its gradients
	case "joined": // a gelu of its own
		n.join(g*l.In.Len(), d, in, l.activation, plus, at, gate, dx)
		return
	case "scores":
		n.product(d, matrix{w, l.grouped[1]}, 0, 0, 0, spare, rows, l.In.Channels, l.Words, act{})
	case "attention":
		n.attendBack(l, g, in, n.values[i+1], d, spare)
	case "mean-pool":
		p, _ := poolOf(l, l.Out, g)
		n.call("mean_pool_back", [3]int{tiles(l.In.Width*l.In.Channels, 256), l.In.Height, g}, 256, p, d, spare)
	default:
		n.d.must(1, fmt.Sprintf("%s: there is no way back through %s", l.Name, l.Kind))
	}
	if spare != dx {
		n.join(g*l.In.Len(), spare, 0, act{}, plus, at, gate, dx)
	}
}

// addParted adds the last g rows' gradients of a layer times their factors to a sum.
func (n *Network) addParted(l *layer, g int, sum, factors uintptr) {
	to, rows := sum+uintptr(4*l.Start), g*placesOf(l)
	switch l.Kind {
	case "places", "scores":
		n.spread(g, placesOf(l), factors)
		n.productSum(l, n.summedOf(l, sum), rows)
	case "embedding":
		n.addWords(l, g, to, factors)
	case "positions":
		n.call("row_sum", along(l.Out.Len(), 32), 256, l.gradient, factors, to, g, l.Out.Len(), l.Out.Len())
	case "layer-norm", "group-norm":
		n.call("row_sum", along(2*l.Out.Channels, 32), 256, n.room.kept+uintptr(4*l.kept0), factors, to, g, 2*l.Out.Channels, n.keptRow)
	}
}

// onlyPlaces says that all layers with parameters are on as many places, as those of texts are.
func (n *Network) onlyPlaces() bool {
	for i := range n.layers {
		switch l := &n.layers[i]; l.Kind {
		case "linear", "conv", "transposed-conv":
			return false
		default:
			if !n.plan.Words || placesOf(l) != placesOf(&n.layers[0]) {
				return false
			}
		}
	}
	return true
}

// addPlaces is addParted of all layers: products on tensor cores are one launch, and what is no
// product runs beside it. Only then are sums written whose vectors may be the embedding's, too.
func (n *Network) addPlaces(g int, sum, factors uintptr) {
	var sums []summed
	var products, others []*layer
	for i := range n.layers {
		l := &n.layers[i]
		if l.Kind != "places" && l.Kind != "scores" {
			others = append(others, l)
		} else if one := n.summedOf(l, sum); len(n.tilesFor("times_sum", int(one.m), int(one.n))) > 0 {
			sums = append(sums, one)
		} else {
			products = append(products, l)
		}
	}
	each := func(layers []*layer) {
		for _, l := range layers {
			n.addParted(l, g, sum, factors)
		}
	}
	places := placesOf(&n.layers[0])
	n.spread(g, places, factors)
	if len(sums) > 0 {
		n.tensorSums(sums, g*places, func() { each(others) })
	} else {
		each(others)
	}
	each(products)
}

// spread gives every place its example's factor, unless the layer before had as many.
func (n *Network) spread(g, places int, factors uintptr) {
	if n.parted.spread == places {
		return
	}
	n.parted.spread = places
	n.call("spread", along(g*places, 256), 256, factors, n.parted.weights, g*places, places)
}

// wordsRun is how many places a warp adds up.
const wordsRun = 32

// addWords adds gradients at the places where words are read to those of the words' vectors: a warp has
// so many places of those in the order of their words. What warps have of a word in common is kept until
// all are through.
func (n *Network) addWords(l *layer, g int, to, factors uintptr) {
	const each = 32 // words of a block
	rows, units := g*placesOf(l), l.Out.Channels
	n.call("order_words", along(l.Words, each), 1024, n.rows, n.parted.order, rows)
	grid := [3]int{tiles(rows, 8*wordsRun), tiles(units, 128), 1}
	n.call("words_sum", grid, 256, n.rows, n.parted.order, l.gradient, factors, to, n.parted.crossing, rows, placesOf(l), units)
	n.call("words_meet", grid, 256, n.rows, n.parted.order, to, n.parted.crossing, rows, units)
}
