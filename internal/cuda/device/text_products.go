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
	out, stats, more, words, chances, tops, losses uintptr
	share                                          float64
	room                                           room
	examples, columns, each, kind, biased, squares int32
	apart                                          int32
}

// textShared is a block's memory: rows, 32 columns at a time, units of a matrix, and where a group meets.
const textShared = (textTogether+1)*2*2*textPlaces*textK + textMeets + 8*(2*2*textColumns*textK+128)

// textStep is a product with what layer l multiplies by on its way, and its end. Without a layer it makes
// the rows that go into the first block.
type textStep struct {
	end string
	l   *layer
	way int
	p   textTimes
}

// of is the product of g examples, but for how it is cut.
func (s *textStep) of(n *Network, g int) textTimes {
	p := s.p
	p.examples, p.room = int32(g), n.room
	p.room.kept0, p.room.squares0 = s.p.room.kept0, s.p.room.squares0
	if s.l != nil {
		p.laid, p.columns = s.l.grouped[s.way], n.matrixOf(s.l, s.way).n
		p.each = p.columns / textColumns
	}
	return p
}

// textChain is products in a row, as text_chain.cuh has it.
type textChain struct {
	of          [5]textTimes
	examples, _ int32
}

// What a block of a chain has of shared memory: two places of 128 columns for each of two groups, units of
// matrices, and where groups meet.
const (
	chainGroups = 2
	chainBytes  = chainGroups*(2*2*2*textPlaces*textColumns+textMeets) + 5*(2*2*textColumns*textK+128)
)

// chains says whether products of g examples are made in a row by one kernel: where they fill the device,
// for a kernel that makes one product cuts it by columns, too.
func (n *Network) chains(g int) bool { return n.fills(tiles(g, chainGroups)) }

// textSteps starts products of g examples, each of which reads what the one before gives on: by the kernel
// of that name, or one by one. The bits are the same.
func (n *Network) textSteps(name string, g int, steps ...textStep) {
	if n.chains(g) {
		all := textChain{examples: int32(g)}
		for i := range steps {
			all.of[i] = steps[i].of(n, g)
		}
		n.callShared("text_"+name, along(min(tiles(g, chainGroups), int(n.d.processors)), 1), chainGroups*textGroup+128, chainBytes, all)
		return
	}
	for i := range steps {
		n.textProduct(&steps[i], g)
	}
}

// textProduct starts a single one.
func (n *Network) textProduct(s *textStep, g int) {
	p := s.of(n, g)
	if s.l == nil {
		n.call("text_norm", along(g, 1), textGroup, p)
		return
	}
	across, together := int(p.columns)/textColumns, int(n.d.processors)
	p.each = int32(textEach(g, across, int(n.matrixOf(s.l, s.way).k), together))
	blocks := g * across / int(p.each)
	if p.kind != gramNone && blocks+g <= together { // some would be idle
		p.apart, blocks = 1, blocks+g
	}
	n.callShared("text_times_"+s.end, along(min(blocks, together), 1), textGroup+128, textShared, p)
}

// textEnds are what becomes of products.
var textEnds = []string{"open", "norm", "norm_heads", "gelu", "gelu_back", "norm_back", "norm_back_heads", "chances", "slopes"}

// textChains are products in a row, from one attention to the next.
var textChains = []string{"forward_first", "forward", "forward_last", "backward_first", "backward", "backward_last"}

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
	open := textTimes{at: n.values[2], out: n.values[2], affine: n.affineOf(t.blocks[0].norm), stats: first.extra.stats, to: n.partsAt(n.values[3], textColumns)}
	if n.parted.noise == 0 {
		open.words, open.bias, open.plus = n.rows, n.affineOf(0), n.affineOf(1)
	} else { // which comes between words and places
		n.forwardParted(0, g)
		n.forwardParted(1, g)
	}
	look := func(b textBlock) textStep {
		l := &n.layers[b.look]
		return textStep{end: "open", l: l, p: textTimes{x: n.partsAt(n.values[l.From], textColumns), bias: n.biasOf(l), out: n.values[b.look+1], gram: n.gramOf(b, 0), kind: kind}}
	}
	n.textSteps("forward_first", g, textStep{p: open}, look(t.blocks[0]))
	for k, b := range t.blocks {
		attention, out, wide, narrow := &n.layers[b.attention], &n.layers[b.out], &n.layers[b.wide], &n.layers[b.narrow]
		n.call("text_attend", [3]int{attention.Heads, g, 1}, 128, n.values[b.look+1], n.partsAt(n.values[b.attention+1], textColumns), attention.Heads)
		name, next, last := "forward_last", t.norm, textStep{}
		if k+1 < len(t.blocks) {
			name, next, last = "forward", t.blocks[k+1].norm, look(t.blocks[k+1])
		} else {
			scores := &n.layers[t.scores]
			last = textStep{end: "chances", l: scores, p: textTimes{x: n.partsAt(n.values[scores.From], textColumns), words: n.rows, chances: t.chances, more: t.own, losses: n.parted.losses, tops: t.tops, gram: t.gram, kind: kind}}
		}
		n.textSteps(name, g,
			textStep{end: "norm_heads", l: out, p: textTimes{x: n.partsAt(n.values[out.From], textColumns), bias: n.biasOf(out), plus: n.values[b.value], out: n.values[b.out+1],
				affine: n.affineOf(b.between), stats: n.layers[b.between].extra.stats, to: n.partsAt(n.values[b.between+1], textColumns), gram: n.gramOf(b, 1), kind: kind}},
			textStep{end: "gelu", l: wide, p: textTimes{x: n.partsAt(n.values[wide.From], textColumns), bias: n.biasOf(wide), out: wide.extra.before,
				to: n.partsAt(n.values[b.wide+1], wide.Out.Channels), gram: n.gramOf(b, 2), kind: kind}},
			textStep{end: "norm", l: narrow, p: textTimes{x: n.partsAt(n.values[narrow.From], wide.Out.Channels), bias: n.biasOf(narrow), plus: n.values[b.out+1], out: n.values[b.narrow+1],
				affine: n.affineOf(next), stats: n.layers[next].extra.stats, to: n.partsAt(n.values[next+1], textColumns), gram: n.gramOf(b, 3), kind: kind}},
			last)
	}
	if !n.chains(g) {
		n.call("text_chances", along(g*textPlaces, 128), 128, t.chances, t.own, n.parted.losses, t.tops, g*textPlaces, 2*n.layers[t.scores].Words/textColumns)
	}
}

// backwardTexts takes them back: norms of gradients are then there.
func (n *Network) backwardTexts(g int) {
	t := n.texts
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
	scores, before := &n.layers[t.scores], &n.layers[t.blocks[len(t.blocks)-1].narrow]
	at := n.layers[1].own // the gradient at what blocks give on
	name, steps := "backward_first", []textStep{
		{end: "slopes", l: scores, p: textTimes{x: n.partsAt(n.values[scores.From], textColumns), words: n.rows, tops: t.tops, to: n.partsAt(scores.own, scores.Words)}},
		{end: "norm_back", l: scores, way: 1, p: normed(squared(textTimes{x: n.partsAt(scores.own, scores.Words), out: at, to: n.partsAt(before.own, textColumns)}, scores, t.gram, 2), t.norm, 0)},
	}
	scores.gradient = scores.own
	for k := len(t.blocks) - 1; k >= 0; k-- {
		b := t.blocks[k]
		look, attention, out, wide, narrow := &n.layers[b.look], &n.layers[b.attention], &n.layers[b.out], &n.layers[b.wide], &n.layers[b.narrow]
		for _, l := range []*layer{look, out, wide, narrow} {
			l.gradient = l.own
		}
		between := n.layers[b.between].own
		n.textSteps(name, g, append(steps,
			textStep{end: "gelu_back", l: narrow, way: 1, p: squared(textTimes{x: n.partsAt(narrow.own, textColumns), at: wide.extra.before, to: n.partsAt(wide.own, wide.Out.Channels)}, narrow, n.gramOf(b, 3), 1)},
			textStep{end: "norm_back", l: wide, way: 1, p: normed(squared(textTimes{x: n.partsAt(wide.own, wide.Out.Channels), out: between, to: n.partsAt(out.own, textColumns)}, wide, n.gramOf(b, 2), 1), b.between, at)},
			textStep{end: "open", l: out, way: 1, p: squared(textTimes{x: n.partsAt(out.own, textColumns), out: attention.own}, out, n.gramOf(b, 1), 1)})...)
		if k == len(t.blocks)-1 && !n.parted.plain { // attention leaves room
			n.d.aside(func() {
				n.call("text_met", along(g, 1), 256, n.partsAt(scores.own, scores.Words), n.rows, n.parted.met)
			})
		}
		n.callShared("text_attend_back", [3]int{attention.Heads, g, 1}, 128, textHeadBytes, n.values[b.look+1], attention.own, n.partsAt(look.own, 3*textColumns), attention.Heads)
		p := textTimes{x: n.partsAt(look.own, 3*textColumns), out: n.layers[b.norm].own}
		if k > 0 {
			p.to = n.partsAt(n.layers[t.blocks[k-1].narrow].own, textColumns)
		}
		name, steps = "backward", []textStep{{end: "norm_back_heads", l: look, way: 1, p: normed(squared(p, look, n.gramOf(b, 0), 1), b.norm, between)}}
		at = n.layers[b.norm].own
	}
	n.textSteps("backward_last", g, steps...)
	n.layers[0].gradient, n.layers[1].gradient = at, at
	if !n.parted.plain {
		words, places := n.room, n.room
		words.squares0, places.squares0 = int32(n.layers[0].squares0), int32(n.layers[1].squares0)
		n.d.rejoin()
		n.d.atOnce(func() { n.gradientsParted(1, g, places) }, func() {
			n.callShared("text_words", along(g, 1), 256, textWordsBytes, n.rows, at, n.partsAt(n.values[scores.From], textColumns), n.parted.met, 2*roundingShare(textColumns, textColumns, false), words)
		})
	}
	n.giveNorms(g)
}

// textShare is what roundingShare is, of rows that stay in parts.
func textShare(a, b int) float64 {
	return float64(330+tiles(a, textScaled)+tiles(b, textScaled)) * 0x1p-24
}
