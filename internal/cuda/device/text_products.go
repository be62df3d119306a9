//go:build linux

package device

// parts is rows in two parts of float16, as text_parts.cuh has it.
type parts struct {
	values, backs uintptr
	columns, _    int32
}

func (n *Network) partsAt(at uintptr, columns int) parts {
	return parts{values: at, backs: n.texts.backs[at], columns: int32(columns)}
}

// What becomes of rows' products with each other.
const (
	gramNone = iota
	gramKept
	gramSquare
)

// textTimes is a product, as text_products.cuh has it.
type textTimes struct {
	x, to                                          parts
	laid, gram, bias, plus, affine, at             uintptr
	out, stats, more, words, chances               uintptr
	share                                          float64
	room                                           room
	examples, columns, each, kind, biased, squares int32
}

// textShared is a block's memory: rows of every group, 32 columns at a time, units of a matrix, and
// where groups meet.
func textShared(groups int) int {
	stages := 4
	if groups == 2 {
		stages = 7
	}
	return groups*((textTogether+1)*2*2*textPlaces*textK+textMeets) + stages*(2*2*textColumns*textK+128)
}

// textProduct starts a product of g examples with what layer l multiplies by on its way.
func (n *Network) textProduct(end string, l *layer, way, g int, p textTimes) {
	m := n.matrixOf(l, way)
	kept0, squares0 := p.room.kept0, p.room.squares0
	p.laid, p.examples, p.columns, p.room = l.grouped[way], int32(g), m.n, n.room
	p.room.kept0, p.room.squares0 = kept0, squares0
	across := int(m.n) / textColumns
	groups, together := 2, int(n.d.processors)
	if across == 1 && m.k == textColumns || !n.fills(tiles(g, groups)*across) { // little of the matrix is brought, or there are few
		groups, together, end = 1, 2*together, end+"_small"
	}
	of := tiles(g, groups)
	p.each = int32(textEach(of, across, int(m.k), together))
	blocks := min(of*across/int(p.each), together)
	n.callShared("text_times_"+end, along(blocks, 1), 128*(groups+1), textShared(groups), p)
}

// textEnds are what becomes of products.
var textEnds = []string{"open", "norm", "norm_heads", "gelu", "gelu_back", "norm_back", "norm_back_heads", "chances", "slopes"}

// textEach is how many of a product's columns, by 128, a block has at a time, so that its blocks end
// together as far as they can: rows that fit are brought once for all of them.
func textEach(of, across, k, together int) int {
	if k > textTogether*textK {
		return 1
	}
	best, least := 1, 0
	for each := 1; each <= across; each++ {
		if across%each != 0 {
			continue
		}
		if cost := tiles(of*across/each, together) * (4*each + 1); least == 0 || cost <= least {
			best, least = each, cost
		}
	}
	return best
}

// affineOf is a layer's parameters: a norm's factors and constants, words' or places' vectors.
func (n *Network) affineOf(i int) uintptr { return n.theta + uintptr(4*n.layers[i].Start) }

// gramOf is where products of what goes into the block's layers are kept.
func (n *Network) gramOf(b textBlock, which int) uintptr {
	return n.layers[b.attention].extra.slopes + uintptr(4*which*n.chunk*textGram)
}

// biasOf is a layer's, or 0.
func (n *Network) biasOf(l *layer) uintptr {
	_, bias := n.weights(l)
	return bias
}

// forwardTexts takes g texts through all layers, up to the chances of all words.
func (n *Network) forwardTexts(g int) {
	t := n.texts
	kind := int32(gramKept)
	if n.parted.plain {
		kind = gramNone
	}
	first := &n.layers[t.blocks[0].norm]
	p := textTimes{at: n.values[2], affine: n.affineOf(t.blocks[0].norm), stats: first.extra.stats, to: n.partsAt(n.values[3], textColumns)}
	if n.parted.noise == 0 {
		p.words, p.bias, p.plus, p.out = n.rows, n.affineOf(0), n.affineOf(1), n.values[2]
	} else { // which comes between words and places
		n.forwardParted(0, g)
		n.forwardParted(1, g)
	}
	n.call("text_norm", along(g, 1), 128, p)
	for k, b := range t.blocks {
		look, out, wide, narrow := &n.layers[b.look], &n.layers[b.out], &n.layers[b.wide], &n.layers[b.narrow]
		next := t.norm
		if k+1 < len(t.blocks) {
			next = t.blocks[k+1].norm
		}
		n.textProduct("open", look, 0, g, textTimes{x: n.partsAt(n.values[look.From], textColumns), bias: n.biasOf(look), out: n.values[b.look+1], gram: n.gramOf(b, 0), kind: kind})
		attention := &n.layers[b.attention]
		n.call("text_attend", [3]int{attention.Heads, g, 1}, 128, n.values[b.look+1], n.partsAt(n.values[b.attention+1], textColumns), attention.Heads)
		n.textProduct("norm_heads", out, 0, g, textTimes{x: n.partsAt(n.values[out.From], textColumns), bias: n.biasOf(out), plus: n.values[b.value], out: n.values[b.out+1],
			affine: n.affineOf(b.between), stats: n.layers[b.between].extra.stats, to: n.partsAt(n.values[b.between+1], textColumns), gram: n.gramOf(b, 1), kind: kind})
		n.textProduct("gelu", wide, 0, g, textTimes{x: n.partsAt(n.values[wide.From], textColumns), bias: n.biasOf(wide), out: wide.extra.before,
			to: n.partsAt(n.values[b.wide+1], wide.Out.Channels), gram: n.gramOf(b, 2), kind: kind})
		n.textProduct("norm", narrow, 0, g, textTimes{x: n.partsAt(n.values[narrow.From], wide.Out.Channels), bias: n.biasOf(narrow), plus: n.values[b.out+1], out: n.values[b.narrow+1],
			affine: n.affineOf(next), stats: n.layers[next].extra.stats, to: n.partsAt(n.values[next+1], textColumns), gram: n.gramOf(b, 3), kind: kind})
	}
	scores := &n.layers[t.scores]
	n.textProduct("chances", scores, 0, g, textTimes{x: n.partsAt(n.values[scores.From], textColumns), words: n.rows, chances: t.chances, more: t.own, gram: t.gram, kind: kind})
	n.call("text_chances", along(g*textPlaces, 128), 128, t.chances, t.own, n.parted.losses, t.tops, g*textPlaces, scores.Words/textColumns)
}

// backwardTexts takes them back: norms of gradients are then there.
func (n *Network) backwardTexts(g int) {
	t := n.texts
	scores := &n.layers[t.scores]
	n.textProduct("slopes", scores, 0, g, textTimes{x: n.partsAt(n.values[scores.From], textColumns), words: n.rows, chances: t.tops, to: n.partsAt(scores.own, scores.Words)})
	scores.gradient = scores.own
	if !n.parted.plain {
		n.d.aside(func() {
			n.call("text_met", along(g, 1), 256, n.partsAt(scores.own, scores.Words), n.rows, n.parted.met)
		})
	}
	// squared has a product make the norm of a layer's gradient; normed has it go back through a norm.
	squared := func(p textTimes, l *layer, gram uintptr, times int) textTimes {
		if !n.parted.plain {
			p.gram, p.kind, p.biased, p.squares = gram, gramSquare, int32(l.biases()), int32(l.squares0)
			p.share = float64(times) * textShare(l.In.Channels, l.Out.Channels)
		}
		return p
	}
	normed := func(p textTimes, i int, plus uintptr) textTimes {
		l := &n.layers[i]
		p.at, p.stats, p.affine, p.plus = n.values[l.From], l.extra.stats, n.affineOf(i), plus
		p.room.kept0, p.room.squares0 = int32(l.kept0), int32(l.squares0)
		return p
	}
	before := &n.layers[t.blocks[len(t.blocks)-1].narrow]
	at := n.layers[1].own // the gradient at what blocks give on
	n.textProduct("norm_back", scores, 1, g, normed(squared(textTimes{x: n.partsAt(scores.own, scores.Words), out: at, to: n.partsAt(before.own, textColumns)}, scores, t.gram, 2), t.norm, 0))
	for k := len(t.blocks) - 1; k >= 0; k-- {
		b := t.blocks[k]
		look, attention, out, wide, narrow := &n.layers[b.look], &n.layers[b.attention], &n.layers[b.out], &n.layers[b.wide], &n.layers[b.narrow]
		for _, l := range []*layer{look, out, wide, narrow} {
			l.gradient = l.own
		}
		n.textProduct("gelu_back", narrow, 1, g, squared(textTimes{x: n.partsAt(narrow.own, textColumns), at: wide.extra.before, to: n.partsAt(wide.own, wide.Out.Channels)}, narrow, n.gramOf(b, 3), 1))
		between := n.layers[b.between].own
		n.textProduct("norm_back", wide, 1, g, normed(squared(textTimes{x: n.partsAt(wide.own, wide.Out.Channels), out: between, to: n.partsAt(out.own, textColumns)}, wide, n.gramOf(b, 2), 1), b.between, at))
		n.textProduct("open", out, 1, g, squared(textTimes{x: n.partsAt(out.own, textColumns), out: attention.own}, out, n.gramOf(b, 1), 1))
		n.callShared("text_attend_back", [3]int{attention.Heads, g, 1}, 128, textHeadBytes, n.values[b.look+1], attention.own, n.partsAt(look.own, 3*textColumns), attention.Heads)
		p := textTimes{x: n.partsAt(look.own, 3*textColumns), out: n.layers[b.norm].own}
		if k > 0 {
			p.to = n.partsAt(n.layers[t.blocks[k-1].narrow].own, textColumns)
		}
		n.textProduct("norm_back_heads", look, 1, g, normed(squared(p, look, n.gramOf(b, 0), 1), b.norm, between))
		at = n.layers[b.norm].own
	}
	n.layers[0].gradient, n.layers[1].gradient = at, at
	if !n.parted.plain {
		words, places := n.room, n.room
		words.squares0, places.squares0 = int32(n.layers[0].squares0), int32(n.layers[1].squares0)
		n.d.rejoin()
		n.d.atOnce(func() { n.gradientsParted(1, g, places) }, func() {
			n.callShared("text_words", along(g, 1), 256, textWordsBytes, n.rows, at, n.partsAt(n.values[scores.From], textColumns), n.parted.met, 2*roundingShare(textColumns, textColumns, false), words)
		})
	}
	n.call("norms", along(g, 64), 64, n.room.squares, n.norms, g, n.squaresRow)
}

// textShare is what roundingShare is, of rows that stay in parts.
func textShare(a, b int) float64 {
	return float64(330+tiles(a, textScaled)+tiles(b, textScaled)) * 0x1p-24
}
