//go:build linux

package device

import "slices"

// Transformers of texts of 64 words and 128 channels have a way of their own where a device has
// groups of warps: rows stay in two parts of float16 between one product and the next
// (text_parts.cuh), norms of places and gelus are made with the products around them, and of rows
// that a product reads anyway it makes the products with each other, of which gradients' norms are.

// textBlock is a block's layers, by their number: a norm, questions with keys and values, attention,
// what it gives on, a norm, wide and narrow. Value is what goes in.
type textBlock struct{ norm, look, attention, out, between, wide, narrow, value int }

// textPlan is such a network.
type textPlan struct {
	blocks       []textBlock
	norm, scores int
	backs        map[uintptr]uintptr // what takes rows in parts back, by where they lie
	chances      uintptr             // of every 64 words, where scores' slopes will be
	tops, own    uintptr             // of all, and the scores of words that come next
	gram         uintptr             // products of what goes into the scores
}

// What text_products.cuh and text_sums.cuh count in.
const (
	textPlaces   = 64
	textColumns  = 128
	textScaled   = 32
	textK        = 32
	textTogether = 4 // units that have a scale in common
	textUnit     = 2*2*textColumns*textK + 16
	textMeets    = 4 * (2*4*textColumns + 2*8 + 2*2*2*textPlaces)
	textGroup    = 256 // threads that have an example
	textSumBytes = 3 * 2 * 2 * 2 * textPlaces * textColumns
	sumCluster   = 2                       // blocks of sums that share what they bring
	textGram     = textPlaces * textPlaces // values

	textWordsBytes = 4 * textPlaces * (2*textColumns + 4 + textPlaces)
	textHeadBytes  = 2 * 2 * textPlaces * (4*(textScaled+8) + textPlaces + 8)
)

// findTexts says which layers are which, if the network is such a transformer: ok is false if not.
func findTexts(layers []layer) (t textPlan, ok bool) {
	at := func(i int, kind string, from, plus, in, out int, activation int32) bool {
		if i >= len(layers) {
			return false
		}
		l := &layers[i]
		return l.Kind == kind && l.From == from && l.Plus == plus && l.In.Channels == in && l.Out.Channels == out && l.activation.kind == activation && placesOf(l) == textPlaces && l.Start%4 == 0
	}
	const width = textColumns
	if len(layers) < 4 || layers[0].Kind != "embedding" || !at(1, "positions", 1, 0, width, width, 0) {
		return t, false
	}
	i, value := 2, 2
	for ; len(layers)-i > 2; i, value = i+7, i+7 {
		b := textBlock{i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, value}
		if len(layers)-i < 9 {
			return t, false
		}
		wide := layers[b.wide].Out.Channels
		if !at(b.norm, "layer-norm", value, 0, width, width, 0) || !at(b.look, "places", i+1, 0, width, 3*width, 0) || !at(b.attention, "attention", i+2, 0, 3*width, width, 0) ||
			layers[b.attention].Heads*textScaled != width || !at(b.out, "places", i+3, value+1, width, width, 0) || !at(b.between, "layer-norm", i+4, 0, width, width, 0) ||
			!at(b.wide, "places", i+5, 0, width, wide, gelu) || wide%textColumns != 0 || !at(b.narrow, "places", i+6, i+5, wide, width, 0) {
			return t, false
		}
		t.blocks = append(t.blocks, b)
	}
	t.norm, t.scores = i, i+1
	if len(t.blocks) == 0 || !at(t.norm, "layer-norm", value, 0, width, width, 0) {
		return t, false
	}
	last := &layers[t.scores]
	return t, at(t.scores, "scores", i+1, 0, width, last.Words, 0) && last.Words%textColumns == 0
}

// textUnitsOf is how many units a matrix is laid in.
func textUnitsOf(m groupMatrix) int { return int(m.n) / textColumns * int(m.k) / textK }

// products are the layers on places, and scores.
func (t *textPlan) products() (layers []int) {
	for _, b := range t.blocks {
		layers = append(layers, b.look, b.out, b.wide, b.narrow)
	}
	return append(layers, t.scores)
}

// allocateTexts takes what such a network needs beside what others have: the rest lies where theirs
// does.
func (n *Network) allocateTexts(floats func(count int) uintptr) {
	t := n.texts
	t.backs = map[uintptr]uintptr{}
	parted := func(at uintptr, columns int) { t.backs[at] = floats(n.chunk * columns / textScaled) }
	for _, i := range t.products() {
		l := &n.layers[i]
		for way := range l.grouped {
			l.grouped[way] = floats(textUnitsOf(n.matrixOf(l, way)) * textUnit / 4)
		}
		parted(n.values[l.From], l.In.Channels)
		parted(l.own, l.Out.Channels)
	}
	t.chances = n.layers[t.scores].own
	t.gram = n.parted.spare // where other networks have gradients on their way: these have room for more
	t.tops = t.gram + uintptr(4*n.chunk*textGram)
	t.own = t.tops + uintptr(8*n.chunk*textPlaces)
}

// textMatrices are those that are laid in a launch.
type textMatrices struct {
	of    [32]groupMatrix
	count int32
}

// layTexts lays all matrices anew.
func (n *Network) layTexts() {
	var all []groupMatrix
	for _, i := range n.texts.products() {
		for way, to := range n.layers[i].grouped {
			m := n.matrixOf(&n.layers[i], way)
			m.to = to
			all = append(all, m)
		}
	}
	for some := range slices.Chunk(all, len(textMatrices{}.of)) {
		list, blocks := textMatrices{count: int32(len(some))}, 0
		for i, m := range some {
			m.first = int32(blocks)
			list.of[i] = m
			blocks += textUnitsOf(m) / textTogether
		}
		n.call("text_lay", along(blocks, 1), 256, list)
	}
}

// textStatic are kernels that declare all of their shared memory.
var textStatic = []string{"text_lay", "text_norm", "text_met", "text_chances", "text_attend", "text_rows", "text_adds"}

// textKernels are the names of the kernels for them, in groups.cu.
func textKernels() []string {
	names := append([]string{"text_attend_back", "text_sum", "text_words"}, textStatic...)
	for _, chain := range textChains {
		names = append(names, "text_"+chain)
	}
	for _, end := range textEnds {
		names = append(names, "text_times_"+end)
	}
	return names
}
