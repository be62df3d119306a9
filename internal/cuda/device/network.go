//go:build linux

package device

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/coterie-fl/coterie/internal/cuda"
	"github.com/coterie-fl/coterie/model"
)

// Network is a network on a device, with memory for a chunk of examples.
type Network struct {
	d         *driver
	functions map[string]uintptr
	plan      model.Plan
	layers    []layer
	chunk     int
	output    int

	theta, rows, sums, parts       uintptr
	inOrder                        uintptr   // 0, 1, 2 and so on, where rows travel; 0: they do not
	values                         []uintptr // values[i] goes into layer i; the last one comes out
	factors                        [2]uintptr
	weightsOfRows                  uintptr // as doubles; 0: nobody has asked for whole numbers
	room                           room
	norms, inputSquares            uintptr               // inputSquares: of what goes into a headed layer, in parts
	staying                        [cuda.Vectors]uintptr // parameters, and what goes with them from step to step
	products                       uintptr
	sets                           []set
	keptRow, squaresRow, partCount int
	sumParts                       int // values of the parts of all linear layers' sums
	bytes                          int
	parted                         parted
	texts                          *textPlan // nil: it is no transformer that has a way of its own
	tiles                          []tile    // of products on tensor cores; nil: as they suit
	waiting                        []waiting // for factors
	side                           int       // whose memory those are
	recordings                     recordings
	added                          bool                        // gradients, once
	home                           uintptr                     // where kernels find the shared memory; 0: they do not
	told                           uintptr                     // and in it the norms that are asked for; 0: they are copied there
	chosen                         []byte                      // the rows on their way, as numbers of 32 bits
	slopes                         *model.Slopes               // gradients at the output that are made here; nil: kernels do
	outputs                        []float32                   // that they are made of
	aims                           []int32                     // what these are compared with
	times                          map[string][2]time.Duration // of every kernel, and how often; nil: nobody asks
}

// set is pictures that the device holds.
type set struct {
	pixels, labels uintptr
	pictures, each int
	aims           []int32 // labels, where gradients at the output are made here
}

// layer is one of the plan's with its memory.
type layer struct {
	model.PlannedLayer
	activation      act
	forward, back   window        // how outputs, and gradients at the input, are gathered
	slides          [2]sliding    // how both are computed with a stride of 1
	pooled          pooledSliding // how outputs are, with the pool behind
	taps            tapping       // how its filter's gradients are
	thin            thinning      // how outputs are, if few channels are read
	patches         [2]patching   // how tensor cores compute both ways, instead
	patchesPooled   patching      // and outputs with the pool behind
	tensorTaps      tensorTapping // and the filter's gradients
	laid            [2]uintptr    // the filter as those read it
	grouped         [2]uintptr    // a matrix as groups of warps read it, both ways
	merged          merging       // how gradients at the input are, and those of the first filter
	arranged        [2]uintptr    // the filter as those read it
	turned          uintptr       // the filter as gathering back reads it
	own             uintptr       // room for the gradient at the output
	gradient        uintptr       // at the output: own, or that of a value which this one is added to
	extra           layerExtra
	which           uintptr // of a window a pool took
	kept0, squares0 int
	split, sumSplit int // parts of a linear layer's sums: of outputs, of gradients
}

var activations = map[string]int32{"": 0, "relu": 1, "leaky-relu": 2, "sigmoid": 3, "tanh": 4, "gelu": 5}

// limits of the kernels.
const (
	mostWeights = 1024 // of examples that a block adds up
	fewOutputs  = 64   // of a linear layer
	windowTable = 2048
	maxSide     = 1 << 15
	maxPool     = 15
	mostAcross  = 1<<16 - 1 // blocks along a grid's second dimension
)

// newNetwork compiles a plan: memory first, so that too little is told before anything.
func newNetwork(d *driver, p model.Plan, compiled *kernelSet) (*Network, error) {
	n := &Network{d: d, plan: p, chunk: cuda.LayoutOf(p).Chunk, output: p.Layers[len(p.Layers)-1].Out.Len()}
	var err error
	if n.slopes, err = p.Slopes(); err != nil {
		return nil, err
	}
	if err := n.prepare(); err != nil {
		return nil, err
	}
	need := n.chunk*(cuda.Floats(p)*4+8*n.squaresRow) + 4*p.Parameters*4 + n.partCount*4
	for i := range n.layers {
		for way := range 2 {
			if m, ok := n.groupMatrixOf(&n.layers[i], way); ok {
				need += m.bytes() // as much as a text's
			}
		}
	}
	if err := n.fits(need+n.later(), ""); err != nil {
		return nil, err
	}
	if err := compiled.load(d); err != nil {
		return nil, err
	}
	n.functions = compiled.functions
	n.allocate()
	if err := d.wait(); err != nil {
		return n, err
	}
	return n, n.fits(n.later(), " more") // what kernels and laid filters have taken, nothing has counted before
}

// fits refuses a network that needs more bytes than are free.
func (n *Network) fits(need int, more string) error {
	var free, total uint64
	n.d.must(n.d.memInfo(&free, &total), "cuMemGetInfo")
	if n.d.failed == nil && uint64(need) > free {
		return fmt.Errorf("the network needs %s%s on the device for %d examples at a time; free are %s of %s (%s are for what a run may keep there: what goes with parameters from step to step, and pictures)",
			cuda.Megabytes(need), more, n.chunk, cuda.Megabytes(int(free)), cuda.Megabytes(int(total)), cuda.Megabytes(n.later()))
	}
	return n.d.failed
}

// later is how many bytes a run may take once the network is there: vectors that stay from step to step,
// what goes with them, and pictures. They are taken when they are asked for, since few runs have all of
// them; but what has no room then ends a run, and what has none now is told before it begins.
func (n *Network) later() int {
	p := n.plan
	bytes := 8*5*cuda.ProductParts(p.Parameters) + p.Pictures*(p.Input.Len()+4)
	for which := range cuda.Vectors {
		bytes += cuda.VectorBytes(which) * p.Parameters
	}
	if p.Words {
		bytes += 4 * cuda.LayoutOf(p).Noisy * p.Layers[0].Out.Len()
	}
	if p.Whole {
		bytes += 8 * n.chunk
	}
	return bytes
}

// kernelSet is the kernels, which every network has in common: a module for every device, one for
// those with tensor cores and one for groups of warps, or one of all.
type kernelSet struct {
	images    []string
	functions map[string]uintptr // by name; nil: not compiled yet
}

// load compiles the kernels, as the driver does with what it has not seen before.
func (k *kernelSet) load(d *driver) error {
	if k.functions != nil {
		return nil
	}
	closed.Lock()
	defer closed.Unlock()
	var modules []uintptr
	for i, image := range k.images {
		if i == 1 && !d.tensor || i == 2 && !d.groups {
			break
		}
		var module uintptr
		text := append([]byte(image), 0)
		d.must(d.moduleLoad(&module, &text[0]), "cuModuleLoadData")
		modules = append(modules, module)
	}
	functions := map[string]uintptr{}
	names := []string{
		"conv_32", "conv_64", "conv_odd_32", "conv_spread_64", "turn",
		"filters_32", "filters_64", "filters_odd_32", "biases",
		"dense_32", "dense_64", "dense_end", "dense_back", "few_back", "dense_sums_32", "dense_sums_64", "dense_adds", "dense_square",
		"whole_rows", "whole_products", "formed_square", "formed_sum", "gather", "max_pool_1", "max_pool_4", "max_pool_back_1", "max_pool_back_4", "activate", "cross_entropy", "head", "squared_error", "norms", "take_rows", "take_factors", "row_sum", "arranged_all",
		"narrowed", "normals", "added", "directions", "moved",
		"times_128", "times_back_128", "times_sum_128", "times_64", "times_back_64", "times_sum_64", "times_odd", "times_back_odd", "times_sum_odd",
		"parts_sum", "spread", "times_square", "times_half", "times_half_odd", "embed", "places_add", "rows_square", "words_square", "order_words", "words_sum", "words_meet", "next_word", "next_word_2", "next_word_4", "text_losses",
		"layer_norm", "layer_norm_back", "layer_norm_128", "layer_norm_back_128", "layer_norm_512", "layer_norm_back_512", "layer_norm_kept", "group_norm", "group_norm_back", "mean_pool", "mean_pool_back", "joined", "joined_back",
		"attend", "attend_back", "attend_near", "attend_back_near",
	}
	for _, k := range thinWidths {
		names = append(names, thinKernel(k))
	}
	for k, all := range strips {
		for _, s := range all {
			names = append(names, s.kernel(k))
		}
	}
	large := map[string]bool{} // kernels whose blocks may have more shared memory than others
	for k, all := range pooledStrips {
		for _, s := range all {
			names, large[s.pooledKernel(k)] = append(names, s.pooledKernel(k)), true
		}
	}
	for k, s := range mergedStrips {
		name := s.mergedKernel(k[0], k[1])
		names, large[name] = append(names, name), true
	}
	for k, lines := range tapLines {
		for _, ky := range lines {
			names = append(names, fmt.Sprint("taps_", k, "_", ky), fmt.Sprint("taps_pooled_", k, "_", ky))
		}
	}
	more := map[string]int{} // the module that has a kernel, unless it is the first
	for i, of := range [][]string{tensorKernels(), slices.Concat(groupKernels(), textKernels())} {
		for _, name := range of {
			if i == 0 && d.tensor || i == 1 && d.groups {
				names, large[name], more[name] = append(names, name), !slices.Contains(textStatic, name), i+1
			}
		}
	}
	for _, name := range names {
		if d.failed != nil {
			return d.failed
		}
		module := modules[min(more[name], len(modules)-1)]
		var f uintptr
		d.must(d.moduleFunction(&f, module, name), "cuModuleGetFunction "+name)
		functions[name] = f
		if d.failed == nil && large[name] && d.shared > sharedBytes {
			const mostShared = 8
			d.must(d.functionAttribute(f, mostShared, int32(d.shared)), "cuFuncSetAttribute "+name)
		}
	}
	if d.failed == nil {
		k.functions = functions
	}
	return d.failed
}

// prepare derives what every layer needs.
func (n *Network) prepare() error {
	for _, l := range n.plan.Layers {
		one := layer{PlannedLayer: l, activation: act{activations[l.Activation], float32(l.Slope)}}
		switch l.Kind {
		case "conv", "transposed-conv":
			forward, back := windows(l)
			for _, w := range []window{forward, back} {
				k := int(w.kernelH * w.kernelW * w.inC)
				if w.inC%4 == 0 && !spread(w) {
					k /= 4
				}
				if k > windowTable || w.kernelH > 127 || w.inH > maxSide || w.inW > maxSide || w.outH > maxSide || w.outW > maxSide || w.inC > maxSide {
					return fmt.Errorf("a device has no kernel for %s: a window of %dx%dx%d values of pictures of %dx%d is too large", l.Name, w.kernelH, w.kernelW, w.inC, w.inH, w.inW)
				}
			}
			one.forward, one.back = forward, back
			one.slides = [2]sliding{slide(forward, n.chunk), slide(back, n.chunk)}
			one.kept0, one.squares0 = n.keptRow, n.squaresRow
			inner := filterWindow(one)
			one.taps = tap(inner, l.Bias && l.Kind == "conv")
			one.thin = thinOf(forward)
			n.useTensor(&one)
			n.keptRow += tiles(int(inner.kernelH*inner.kernelW*inner.inC*inner.outC)+l.Out.Channels, 4) * 4
			n.squaresRow += filterTiles(one)
			if l.Bias && one.biasApart() {
				n.squaresRow++
			}
		case "linear":
			one.squares0 = n.squaresRow
			n.squaresRow++
			in, out := l.In.Len(), l.Out.Len()
			if err := n.across(l); err != nil {
				return err
			}
			one.split, one.sumSplit = denseParts(n.chunk, in, out)
			n.sumParts += tiles(one.sumSplit*(in+1)*out, 4) * 4
			n.partCount = max(n.partCount, one.split*n.chunk*out, n.sumParts)
		case "max-pool":
			if l.Kernel > maxPool {
				return fmt.Errorf("a device has no kernel for %s: a window of %d is larger than %d", l.Name, l.Kernel, maxPool)
			}
			if s := l.In; s.Len()*max(s.Width, s.Channels) > math.MaxUint32 { // what is divided by multiplying
				return fmt.Errorf("a device has no kernel for %s: pictures of %dx%dx%d are too large", l.Name, s.Height, s.Width, s.Channels)
			}
		default:
			if !n.prepareParted(&one) {
				return fmt.Errorf("a device has no kernel for %s", l.Name)
			}
		}
		n.layers = append(n.layers, one)
	}
	n.fusePools()
	n.mergeBack()
	n.roomForSums()
	if texts, ok := findTexts(n.layers); ok && n.d.groups && !n.plan.Whole { // whose gradients have to be formed then
		n.texts = &texts
		for _, some := range n.textSums(sumShape) {
			n.partCount = max(n.partCount, some.split(n.chunk)*some.values())
		}
	}
	return nil
}

// across refuses a linear layer for which a grid has not enough blocks.
func (n *Network) across(l model.PlannedLayer) error {
	columns := 64 // that a block has
	if n.plan.Whole {
		columns = wholeOutputs
	}
	if out := l.Out.Len(); out > columns*mostAcross {
		return fmt.Errorf("a device has no kernel for %s: it has %d outputs; allowed are %d", l.Name, out, columns*mostAcross)
	}
	if in := l.In.Len(); l.From > 0 && in > 64*mostAcross { // on the way back
		return fmt.Errorf("a device has no kernel for %s: it has %d inputs; allowed are %d", l.Name, in, 64*mostAcross)
	}
	return nil
}

// tiles is how many of a size cover n.
func tiles(n, size int) int { return (n + size - 1) / size }

// windows are how a convolution's outputs and the gradients at its input are gathered.
func windows(l model.PlannedLayer) (forward, back window) {
	gather := func(to, from model.Shape, goesBack int32) window {
		return window{
			outH: int32(to.Height), outW: int32(to.Width), outC: int32(to.Channels),
			inH: int32(from.Height), inW: int32(from.Width), inC: int32(from.Channels),
			kernelH: int32(l.Kernel), kernelW: int32(l.Kernel), stride: int32(l.Stride), padding: int32(l.Padding), back: goesBack,
		}
	}
	if l.Kind == "transposed-conv" {
		return gather(l.Out, l.In, 1), gather(l.In, l.Out, 0)
	}
	return gather(l.Out, l.In, 0), gather(l.In, l.Out, 1)
}

// filterWindow is the convolution whose filter a layer has.
func filterWindow(l layer) window {
	if l.Kind == "transposed-conv" {
		return l.back
	}
	return l.forward
}

// filterTiles is how many blocks have an example's gradient of a filter.
func filterTiles(l layer) int {
	if l.tensorTaps.name != "" {
		return l.tensorTaps.across
	}
	if l.taps.name != "" {
		return l.taps.across * l.taps.deep
	}
	w := filterWindow(l)
	return tiles(int(w.kernelH*w.kernelW*w.inC), 64) * tiles(int(w.outC), width(w))
}

// spread says that the way is back, with a stride.
func spread(w window) bool { return w.back == 1 && w.stride > 1 }

// width is how many channels a block computes.
func width(w window) int {
	if spread(w) || w.outC > 32 && w.inC%4 == 0 {
		return 64
	}
	return 32
}

// allocate takes all memory.
func (n *Network) allocate() {
	floats := func(count int) uintptr {
		n.bytes += 4 * count
		return n.d.alloc(4 * count)
	}
	n.theta, n.sums, n.parts = floats(n.plan.Parameters), floats(2*n.plan.Parameters), floats(n.partCount)
	n.rows = floats(n.chunk * n.rowLength())
	if n.plan.Rows {
		n.inOrder = floats(n.chunk)
		n.chosen = numbers(n.chunk) // until all is there
		n.d.toDevice(n.inOrder, n.chosen)
	}
	n.factors = [2]uintptr{floats(n.chunk), floats(n.chunk)}
	n.norms = floats(2 * n.chunk)
	widest := 0
	for i := range n.layers {
		if cuda.Parted(n.plan) {
			break
		}
		widest = max(widest, n.layers[i].Out.Len())
	}
	sides := func(at *uintptr, each int) { // memory that waits
		*at = floats(cuda.Sides(n.plan) * n.chunk * each)
		n.waiting = append(n.waiting, waiting{at, each})
	}
	n.values = make([]uintptr, len(n.layers)+1)
	for i := range n.values {
		each := n.plan.Input.Len()
		if i > 0 {
			each = n.layers[i-1].Out.Len()
		}
		switch {
		case i < len(n.layers) && n.layers[i].Kind == "linear":
			sides(&n.values[i], each)
		case !n.pools(i - 1):
			n.values[i] = floats(n.chunk * each)
		}
	}
	turns := [2]uintptr{floats(n.chunk * widest), floats(n.chunk * widest)}
	for i := range n.layers {
		l := &n.layers[i]
		l.own = turns[i%2]
		switch l.Kind {
		case "linear": // until the weights of its examples are known
			sides(&l.own, l.Out.Len())
			l.gradient = l.own
			n.waiting = append(n.waiting, waiting{&l.gradient, l.Out.Len()})
		case "max-pool":
			l.which = floats(tiles(n.chunk*l.Out.Len(), 4))
		case "conv", "transposed-conv":
			for way, s := range l.patches {
				if way == 0 && l.patchesPooled.name != "" {
					s = l.patchesPooled
				}
				if s.name != "" && (way == 0 || l.From > 0) {
					l.laid[way] = floats(s.laidBytes() / 4)
				}
			}
			for way, s := range l.slides {
				apart := way == 0 && l.thin.name != "" && l.pooled.name == "" // which reads the filter as it is
				if s.name != "" && !apart && (way == 0 || l.From > 0) {
					l.arranged[way] = floats(s.arranged(l.Kernel))
				}
			}
			if n.turns(i) {
				l.turned = floats(l.Kernel * l.Kernel * l.In.Channels * l.Out.Channels)
			}
		}
	}
	for i := range n.layers {
		l := &n.layers[i]
		for way := range l.grouped {
			if m, ok := n.groupMatrixOf(l, way); ok && n.texts == nil {
				l.grouped[way] = floats(m.bytes() / 4)
			}
		}
	}
	n.allocateParted(floats)
	if n.texts != nil {
		n.allocateTexts(floats)
	}
	if n.headed() {
		n.inputSquares = floats(2 * n.chunk * n.layers[len(n.layers)-2].split)
	}
	n.room = room{squares: floats(2 * n.chunk * n.squaresRow), keptRow: int32(n.keptRow), squaresRow: int32(n.squaresRow)}
	sides(&n.room.kept, n.keptRow)
}

// numbers are 0, 1, 2 and so on, of 32 bits each.
func numbers(count int) (raw []byte) {
	for i := range count {
		raw = binary.NativeEndian.AppendUint32(raw, uint32(i))
	}
	return raw
}

// waiting is memory of examples that stays as it is until their factors are known: where it
// lies, and how many values an example has of it.
type waiting struct {
	at   *uintptr
	each int
}

// toSide has the next kernels work with a side's memory.
func (n *Network) toSide(side int) {
	for _, w := range n.waiting {
		*w.at += uintptr(4 * (side - n.side) * n.chunk * w.each)
	}
	n.side = side
}

// turns says whether a convolution needs its filter turned.
func (n *Network) turns(i int) bool {
	l := &n.layers[i]
	if l.Kind == "transposed-conv" {
		return l.slides[0].name == "" && l.patches[0].name == ""
	}
	return l.Kind == "conv" && l.From > 0 && l.slides[1].name == "" && l.patches[1].name == ""
}
