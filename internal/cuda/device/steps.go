//go:build linux

package device

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/internal/cuda"

	"github.com/coterie-fl/coterie/model"
)

// call launches a kernel by its name.
func (n *Network) call(name string, grid [3]int, threads int, args ...any) {
	n.callShared(name, grid, threads, 0, args...)
}

// callShared is call with so many bytes of shared memory beside what the kernel declares.
func (n *Network) callShared(name string, grid [3]int, threads, shared int, args ...any) {
	if n.times == nil {
		n.d.launch(n.functions[name], name, grid, threads, shared, args...)
		return
	}
	n.d.wait()
	began := time.Now()
	n.d.launch(n.functions[name], name, grid, threads, shared, args...)
	n.d.wait()
	took := n.times[name]
	n.times[name] = [2]time.Duration{took[0] + time.Since(began), took[1] + 1}
}

// tellTimes writes what COTERIE_CUDA_TIMES asks for: microseconds in every kernel, that of
// starting it included, and how often.
func (n *Network) tellTimes(path string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%d parameters, %d examples at a time, %s; shared memory is registered: %t\n", n.plan.Parameters, n.chunk, cuda.Megabytes(n.bytes), n.home != 0)
	for _, name := range slices.Sorted(maps.Keys(n.times)) {
		fmt.Fprintf(&text, "%10d us %8d times %s\n", n.times[name][0].Microseconds(), n.times[name][1], name)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) // one helper's after another's
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}

func along(count, size int) [3]int { return [3]int{tiles(count, size), 1, 1} }

// weights of a layer, and its biases; 0: it has none.
func (n *Network) weights(l *layer) (weights, biases uintptr) {
	weights = n.theta + uintptr(4*l.Start)
	if l.Bias {
		biases = weights + uintptr(4*n.weightCount(l))
	}
	return weights, biases
}

func (n *Network) weightCount(l *layer) int {
	switch l.Kind {
	case "linear":
		return l.In.Len() * l.Out.Len()
	case "places":
		return l.In.Channels * l.Out.Channels
	}
	return l.Kernel * l.Kernel * l.In.Channels * l.Out.Channels
}

// parameters takes new ones.
func (n *Network) parameters(theta []byte) {
	n.d.toDevice(n.theta, theta)
	n.turnFilters()
}

// turnFilters makes of new parameters what is derived from them.
func (n *Network) turnFilters() {
	if n.texts != nil { // one kernel
		n.turnEach()
		return
	}
	n.together(recorded{what: recordFilters}, n.turnEach)
}

func (n *Network) turnEach() {
	var all, laid []filterPlace
	for i := range n.layers {
		l := &n.layers[i]
		w, _ := n.weights(l)
		if l.turned != 0 {
			f := filterWindow(*l)
			n.call("turn", along(n.weightCount(l), 256), 256, w, l.turned, l.Kernel*l.Kernel, int(f.inC), int(f.outC))
		}
		for way, to := range l.arranged {
			if to != 0 {
				all = append(all, filterOf([2]window{l.forward, l.back}[way], w, to))
			}
		}
		for way, to := range l.laid {
			if to != 0 {
				laid = append(laid, filterOf([2]window{l.forward, l.back}[way], w, to))
			}
		}
	}
	n.arrangeAll(all)
	n.layAll(laid)
	n.layMatrices()
}

// convolve starts the kernel of a convolution's way, forward (0) or back (1): one that slides
// if there is one, otherwise one that gathers, by a filter that may be a turned one.
func (n *Network) convolve(l *layer, way, g int, in, filter, bias uintptr, a act, y uintptr, gate act, out uintptr) {
	if way == 0 && l.thin.name != "" {
		n.thin(&l.thin, g, in, filter, bias, a, out)
		return
	}
	if s := &l.patches[way]; s.name != "" {
		n.patch(s, g, in, l.laid[way], bias, a, y, gate, out)
		return
	}
	if s := &l.slides[way]; s.name != "" {
		n.slide(s, g, in, l.arranged[way], bias, a, y, gate, out)
		return
	}
	n.gathered([2]window{l.forward, l.back}[way], g, in, filter, bias, a, y, gate, out)
}

// gathered starts the kernel that gathers by a window.
func (n *Network) gathered(w window, g int, in, filter, bias uintptr, a act, y uintptr, gate act, out uintptr) {
	w.examples = int32(g)
	name, size := "conv_", width(w)
	switch {
	case spread(w):
		name = "conv_spread_"
	case w.inC%4 != 0:
		name = "conv_odd_"
	}
	n.call(fmt.Sprint(name, size), [3]int{tiles(g*int(w.outH*w.outW), 4096/size), tiles(int(w.outC), size), 1}, 128, w, in, filter, bias, a, y, gate, out)
}

// forward takes g rows of a set through all layers.
func (n *Network) forward(s *set, g int) { n.forwardTo(s, g, len(n.layers)) }

// forwardTo takes them through the first layers: up to a head, the last one has no end yet.
func (n *Network) forwardTo(s *set, g, end int) {
	if n.texts != nil {
		n.forwardTexts(g)
		return
	}
	switch count := g * n.plan.Input.Len(); {
	case n.plan.Rows: // which may wait for their factors when the next ones come
		n.call("joined", along(count, 256), 256, n.rows, uintptr(0), n.values[0], count, act{})
	case !n.plan.Words:
		n.call("gather", along(tiles(count, 4), 256), 256, s.pixels, n.rows, n.values[0], g, s.each)
	}
	for i := range n.layers[:end] {
		l := &n.layers[i]
		in, out := n.values[l.From], n.values[i+1]
		w, b := n.weights(l)
		switch l.Kind {
		case "conv":
			if l.patchesPooled.name != "" {
				n.patchPooled(l, &n.layers[i+1], g, in, b, n.values[i+2])
				continue
			}
			if n.pools(i) {
				n.slidePooled(l, &n.layers[i+1], g, in, b, n.values[i+2])
				continue
			}
			n.convolve(l, 0, g, in, w, b, l.activation, 0, act{}, out)
		case "transposed-conv":
			n.convolve(l, 0, g, in, l.turned, b, l.activation, 0, act{}, out)
		case "linear":
			from, to := l.In.Len(), l.Out.Len()
			headed, squares := i == end-1 && end < len(n.layers), uintptr(0)
			if headed {
				squares = n.inputSquares
			}
			n.call(fmt.Sprint("dense_", denseWidth(to)), [3]int{tiles(g, 128), tiles(to, denseWidth(to)), l.split}, 128, in, w, n.parts, g, from, to, squares)
			if headed {
				break // its head has the end
			}
			n.call("dense_end", along(g*to, 256), 256, n.parts, b, out, g*to, to, l.split, l.activation)
		case "max-pool":
			if n.pools(i - 1) {
				break // with the convolution
			}
			p, fours := poolOf(l, l.Out, g)
			n.call(fmt.Sprint("max_pool_", fours), [3]int{tiles(l.Out.Len()/fours, 256), g, 1}, 256, p, in, out, l.which, l.activation)
		default:
			n.forwardParted(i, g)
		}
		if l.activation.kind == 3 || l.activation.kind == 4 {
			n.call("activate", along(g*l.Out.Len(), 256), 256, out, g*l.Out.Len(), l.activation)
		}
	}
}

// poolOf is a pool whose kernel computes the pixels of to, so many channels a thread.
func poolOf(l *layer, to model.Shape, g int) (p pool, channels int) {
	channels = 1
	if l.In.Channels%4 == 0 {
		channels = 4
	}
	return pool{int32(g), int32(l.Out.Height), int32(l.Out.Width), int32(l.In.Height), int32(l.In.Width), int32(l.In.Channels), int32(l.Kernel), int32(l.Stride), int32(l.Padding),
		over(l.In.Channels / channels), over(to.Width)}, channels
}

// gradientsOf takes rows of a set forward and back, of sums that begin if r's case is 1, and
// then does what is to follow, unless that is nil. Where gradients at the output are made here,
// between both ways, kernels are recorded in parts.
func (n *Network) gradientsOf(r recorded, s *set, then func()) {
	clear := func() {
		if r.which == 1 {
			n.d.clear(n.sums, 8*n.plan.Parameters)
		}
	}
	if then == nil {
		then = func() {}
	}
	if n.slopes != nil {
		n.together(recorded{what: recordForward, set: r.set, count: r.count, side: r.side}, func() { n.forward(s, r.count) })
		n.slopesAtEnd(s, r.count)
		n.together(r, func() {
			clear()
			n.backward(s, r.count)
			then()
		})
		return
	}
	end := len(n.layers)
	if n.headed() {
		end--
	}
	forward := func() { n.d.atOnce(clear, func() { n.forwardTo(s, r.count, end) }) }
	if n.texts != nil && !n.outlast(r.count) { // a row of few kernels, one after another, begins sooner
		clear()
		n.together(recorded{what: recordTexts, count: r.count, which: int(r.what)}, func() { n.forward(s, r.count) })
		forward = func() {}
	}
	n.together(r, func() {
		forward()
		n.backward(s, r.count)
		then()
	})
}

// backward takes g rows back: what is kept of every layer's gradients is then there, and
// the squares of their norms.
func (n *Network) backward(s *set, g int) {
	if n.texts != nil {
		n.backwardTexts(g)
		return
	}
	end := len(n.layers)
	last := &n.layers[end-1]
	out := n.values[end]
	n.begin()
	switch {
	case n.slopes != nil: // they are there
	case n.headed():
		end--
		n.head(s, g)
	case n.plan.Words:
		n.nextWord(g, true)
	case n.plan.Loss == "cross-entropy":
		labels, rows := n.classesOf(s, g)
		n.call("cross_entropy", along(g, 4), 128, out, labels, rows, last.own, g, n.output, last.activation)
	default:
		scale := 2 / float64(n.output)
		if n.plan.Loss == "half-squared-error" {
			scale /= 2
		}
		n.call("squared_error", along(g*n.output, 256), 256, out, n.values[0], last.own, g*n.output, scale, last.activation)
	}
	aside := false
	for i := end - 1; i >= 0; i-- {
		n.layers[i].gradient = n.parted.slopes[i+1]
		if i == 0 && aside { // what its own do not have to wait for
			n.d.aside(func() { n.squareHalves(g) })
		}
		// A kernel leaves much of the device idle at its end, and at any time of a small batch.
		switch {
		case n.goesOn(i):
			n.d.atOnce(func() { n.gradients(i, g) }, func() { n.contribute(i, g) })
		case n.goesAside(i):
			n.d.aside(func() { n.gradients(i, g) })
			n.contribute(i, g)
			aside = true
		default:
			n.gradients(i, g)
			n.contribute(i, g)
		}
	}
	n.squareHalves(g)
	if aside {
		n.d.rejoin()
	}
	n.giveNorms(g)
}

// giveNorms makes the squares of g examples' norms of their parts, unless nobody asks for them: at once
// where the other program reads them, if kernels find that.
func (n *Network) giveNorms(g int) {
	if n.parted.plain {
		return
	}
	n.call("norms", along(g, 64), 64, n.room.squares, cmp.Or(n.told, n.norms), g, n.squaresRow)
}

// takeFactors has the device hold factors, which come with the kernels that write them.
func (n *Network) takeFactors(slot int, factors []float32) {
	to := n.factors[slot]
	for some := range slices.Chunk(factors, len(factorList{})) {
		list := new(factorList)
		copy(list[:], some)
		n.call("take_factors", along(len(some), 256), 256, to, list, len(some))
		to += uintptr(4 * len(some))
	}
}

// goesOn says whether layer i of a chain has both gradients of its own and a way back, which
// may run at the same time: what one writes the other does not read.
func (n *Network) goesOn(i int) bool {
	l := &n.layers[i]
	return !cuda.Parted(n.plan) && l.From > 0 && l.Kind != "max-pool" && !n.squared(i)
}

// goesAside says whether layer i's own gradients may be made at any time until all are: of a
// network that parts, every gradient at an output has its own room, which nothing writes once
// the way back is through the layers that read the output.
func (n *Network) goesAside(i int) bool {
	switch n.layers[i].Kind {
	case "scores":
		return !n.parted.plain
	case "places", "positions":
		return !n.parted.plain && n.layers[i].From > 0
	case "layer-norm":
		return n.layers[i].From > 0
	}
	return false
}

// gradients keeps what layer i's examples' gradients are.
func (n *Network) gradients(i, g int) {
	l := &n.layers[i]
	in, d := n.values[l.From], l.gradient
	at := n.room
	at.kept0, at.squares0 = int32(l.kept0), int32(l.squares0)
	switch l.Kind {
	case "linear":
		if n.squared(i) {
			return
		}
		n.call("dense_square", along(g, 1), 256, in, d, l.In.Len(), l.Out.Len(), l.biases(), at)
	case "conv", "transposed-conv":
		if n.isMerged(i) {
			return // a kernel behind has them
		}
		w := filterWindow(*l)
		x, slopes := in, d
		if l.Kind == "transposed-conv" {
			x, slopes = d, in
		}
		if l.tensorTaps.name != "" {
			n.tapTensor(&l.tensorTaps, g, x, slopes, at)
		} else if n.unpools(i) {
			n.tapPooled(&l.taps, &n.layers[i+1], g, x, n.layers[i+1].gradient, at)
		} else if l.taps.name != "" {
			n.tap(&l.taps, g, x, slopes, at)
		} else {
			n.filters(w, g, x, slopes, at)
		}
		at.kept0 += int32(n.weightCount(l))
		at.squares0 += int32(filterTiles(*l))
		if l.Bias && l.biasApart() {
			n.call("biases", along(g, 1), 256, d, l.Out.Height*l.Out.Width, l.Out.Channels, at)
		}
	default:
		n.gradientsParted(i, g, at)
	}
}

// filters starts the kernel for the gradients of filters of any width and stride.
func (n *Network) filters(w window, g int, x, slopes uintptr, at room) {
	name, size := "filters_", width(w)
	if w.inC%4 != 0 {
		name = "filters_odd_"
	}
	n.call(fmt.Sprint(name, size), [3]int{tiles(int(w.kernelH*w.kernelW*w.inC), 64), tiles(int(w.outC), size), g}, 256, w, x, slopes, at)
}

// back takes gradients from layer i's output to its input, into dx, and through the activation
// there.
func (n *Network) back(i, g int, dx uintptr, gate act) {
	l := &n.layers[i]
	y, d := n.values[l.From], l.gradient
	w, _ := n.weights(l)
	switch l.Kind {
	case "conv":
		n.convolve(l, 1, g, d, l.turned, 0, act{}, y, gate, dx)
	case "transposed-conv":
		n.convolve(l, 1, g, d, w, 0, act{}, y, gate, dx)
	case "linear":
		n.denseBack(d, w, y, gate, dx, g, l.In.Len(), l.Out.Len())
	case "max-pool":
		p, fours := poolOf(l, l.In, g)
		n.call(fmt.Sprint("max_pool_back_", fours), [3]int{tiles(l.In.Len()/fours, 256), g, 1}, 256, p, d, l.which, y, gate, dx)
	}
}

// biases is 1 if a layer has them.
func (l *layer) biases() int {
	if l.Bias {
		return 1
	}
	return 0
}

// keptFrom is how many values are kept of convolution i and those behind it whose gradients
// lie side by side as their parameters do, and which is the last of these.
func (n *Network) keptFrom(i int) (count, last int) {
	first := &n.layers[i]
	for j := i; j < len(n.layers); j++ {
		switch l := &n.layers[j]; l.Kind {
		case "conv", "transposed-conv":
			if l.kept0 != first.kept0+count || l.Start != first.Start+count {
				return count, last
			}
			if count, last = count+n.weightCount(l), j; l.Bias {
				count += l.Out.Channels
			}
		case "max-pool":
		default:
			return count, last
		}
	}
	return count, last
}

// denseBack takes gradients from a linear layer's output to its input.
func (n *Network) denseBack(d, w, y uintptr, gate act, dx uintptr, g, in, out int) {
	if out <= fewOutputs {
		n.call("few_back", [3]int{tiles(in, 128), tiles(g, 64), 1}, 256, d, w, y, gate, dx, g, in, out)
		return
	}
	n.call("dense_back", [3]int{tiles(g, 128), tiles(in, 64), 1}, 128, d, w, y, gate, dx, g, in, out)
}

// add adds the last g rows' gradients times their factors to a sum.
func (n *Network) add(slot, g int) {
	n.parted.spread, n.added = 0, true
	sum, factors := n.sums+uintptr(4*slot*n.plan.Parameters), n.factors[slot]
	if n.texts != nil {
		n.addTexts(g, sum, factors)
		return
	}
	if n.onlyPlaces() {
		n.addPlaces(g, sum, factors)
		return
	}
	var dense []linear
	for i := range n.layers {
		if l := &n.layers[i]; l.Kind == "linear" {
			dense = append(dense, linear{x: n.values[l.From], d: l.gradient, sum: sum + uintptr(4*l.Start), in: int32(l.In.Len()), out: int32(l.Out.Len()), bias: int32(l.biases()), split: int32(l.sumSplit)})
		}
	}
	others := func() {
		for i := 0; i < len(n.layers); i++ {
			l := &n.layers[i]
			switch l.Kind {
			case "linear":
			case "conv", "transposed-conv":
				count, last := n.keptFrom(i)
				i = last
				n.call("row_sum", along(count, 32), 256, n.room.kept+uintptr(4*l.kept0), factors, sum+uintptr(4*l.Start), g, count, n.keptRow)
			default:
				n.addParted(l, g, sum, factors)
			}
		}
	}
	if len(dense) == 0 || len(dense) == len(n.layers) || cuda.Parted(n.plan) {
		others()
		n.denseSums(dense, factors, g)
		return
	}
	n.d.atOnce(others, func() { n.denseSums(dense, factors, g) })
}
