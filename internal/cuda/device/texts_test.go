//go:build linux

package device

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// float16 is v rounded to it, to nearest, ties to even: its bits, and what they are.
func float16(v float64) (bits uint16, value float64) {
	if v == 0 {
		return 0, 0
	}
	_, e := math.Frexp(v)
	unit := math.Ldexp(1, max(e-11, -24))
	value = math.RoundToEven(v/unit) * unit
	size := math.Abs(value)
	if size == 0 {
		return 0, 0
	}
	switch f, e := math.Frexp(size); {
	case size >= 65536:
		panic("too large for float16")
	case e < -13:
		bits = uint16(size * 0x1p24)
	default:
		bits = uint16(e+14)<<10 | uint16((f*2-1)*1024)
	}
	if v < 0 {
		bits |= 0x8000
	}
	return bits, value
}

// apart has examples' rows of so many columns lie in parts, as text_parts.cuh has them, with one scale
// for each example, and says what the rows then are.
func apart(n *Network, rows []float32, columns int) (at parts, are []float64) {
	each := textPlaces * columns
	laid, backs := make([]uint16, 2*len(rows)), make([]float32, len(rows)/each*columns/textScaled)
	are = make([]float64, len(rows))
	for e := range len(rows) / each {
		most := 0.0
		for _, v := range rows[e*each : (e+1)*each] {
			most = max(most, math.Abs(float64(v)))
		}
		_, exponent := math.Frexp(most)
		for i := range columns / textScaled {
			backs[e*columns/textScaled+i] = float32(math.Ldexp(1, exponent-15))
		}
		for i, v := range rows[e*each : (e+1)*each] {
			row, column := i/columns, i%columns
			to := 2*e*each + column/8*8*textPlaces + row*8 + column%8
			first, high := float16(math.Ldexp(float64(v), 15-exponent))
			second, low := float16(math.Ldexp(float64(v), 15-exponent) - high)
			laid[to], laid[to+each] = first, second
			are[e*each+i] = math.Ldexp(high+low, exponent-15)
		}
	}
	return parts{values: put(n, unsafe.Slice((*float32)(unsafe.Pointer(&laid[0])), len(rows))), backs: put(n, backs), columns: int32(columns)}, are
}

// TestTextNormsRound: norms of gradients of rows that stay in parts are off by no more than the clip's
// proof says (docs/proofs/gpu-clip.md), of rows that cancel, of one sign, of many sizes, some with a
// large value, and such that are small beside others whose gradient is 0.
func TestTextNormsRound(t *testing.T) {
	n, src := onGroups(t), rand.New(rand.NewPCG(9, 12))
	const g, in, out = 3, 128, 256
	l := &layer{}
	l.Kind, l.In.Channels, l.Out.Channels = "places", in, out
	for way := range l.grouped {
		l.grouped[way] = put(n, make([]float32, textUnitsOf(n.matrixOf(l, way))*textUnit/4))
	}
	kinds := map[string]func(place, at int, x, d *float32){
		"drawn":    func(_, _ int, x, d *float32) {},
		"positive": func(_, _ int, x, d *float32) { *x, *d = 1+*x**x, 1+*d**d },
		"one large": func(_, at int, x, d *float32) {
			if at%32 == 3 {
				*x, *d = 4096**x, 4096**d
			}
		},
		"cancelling": func(place, _ int, x, d *float32) { *x, *d = float32(1-place%2*2)*(1+*x/65536), 1+*d/65536 },
		"many sizes": func(place, at int, x, d *float32) {
			size := at%24 - 12 + place%24 - 12
			*x, *d = float32(math.Ldexp(float64(*x), size)), float32(math.Ldexp(float64(*d), size))
		},
		"tiny": func(_, _ int, x, d *float32) { *x, *d = 0x1p-25**x, 0x1p-25**d },
		"small beside large": func(place, _ int, x, d *float32) { // float16 has no more bits for them
			if place == 0 {
				*d = 0
			} else {
				*x *= 0x1p-30
			}
		},
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		change := kinds[kind]
		x, d := drawn(src, g*textPlaces*in), drawn(src, g*textPlaces*out)
		for place := range g * textPlaces {
			for at := range out {
				one := x[place*in+at%in]
				change(place%textPlaces, at, &one, &d[place*out+at])
				if at < in {
					x[place*in+at] = one
				}
			}
		}
		partsX, x64 := apart(n, x, in)
		partsD, d64 := apart(n, d, out)
		n.room = room{kept: n.d.alloc(4 * g * 2 * in), squares: n.d.alloc(8 * g * 6), keptRow: 2 * in, squaresRow: 6} // a norm's, and the rows'
		gram, to := n.d.alloc(4*g*textGram), n.d.alloc(4*g*textPlaces*out)
		n.textProduct(&textStep{end: "open", l: l, p: textTimes{x: partsX, out: to, gram: gram, kind: gramKept}}, g)
		back := textTimes{x: partsD, out: to, at: to, stats: put(n, make([]float32, 2*g*textPlaces)), affine: put(n, make([]float32, 2*in)), gram: gram, kind: gramSquare, squares: 4}
		n.textProduct(&textStep{end: "norm_back", l: l, way: 1, p: back}, g)
		back.share, back.squares = 1, 5
		n.textProduct(&textStep{end: "norm_back", l: l, way: 1, p: back}, g)
		raw := get(t, n, n.room.squares, 2*g*6)
		worst, short := 0.0, 0.0
		for e := range g {
			told := unsafe.Slice((*float64)(unsafe.Pointer(&raw[0])), g*6)[6*e:]
			v := told[4]
			square, lengths := 0.0, 0.0
			for a := range textPlaces {
				for b := range textPlaces {
					xx, dd := 0.0, 0.0
					for c := range in {
						xx += x64[(e*textPlaces+a)*in+c] * x64[(e*textPlaces+b)*in+c]
					}
					for c := range out {
						dd += d64[(e*textPlaces+a)*out+c] * d64[(e*textPlaces+b)*out+c]
					}
					if square += xx * dd; a == b {
						lengths += math.Sqrt(xx * dd)
					}
				}
			}
			worst = max(worst, math.Abs(v-square)/(lengths*lengths)*0x1p24)
			short = max(short, math.Abs((told[5]-v)/(lengths*lengths)-1)) // of what a share is of
		}
		if !(short <= 0x1p-11) {
			t.Errorf("%s: a share is of %.2g more or less than the proof says", kind, short)
		}
		most := 2*142.0 + 34 + 1 + in/32 + out/32
		t.Logf("%s: off by %.2f units of %.0f", kind, worst, most)
		if !(worst <= most) {
			t.Errorf("%s: off by %.1f units", kind, worst)
		}
	}
}

// TestTextShare: what is added to norms for rounding covers what the clip's proof counts.
func TestTextShare(t *testing.T) {
	for x := 32; x <= maxRow; x *= 2 {
		for d := 32; d <= maxRow; d *= 2 {
			share, m := textShare(x, d)*0x1p24, float64(x/32+d/32)
			lost := 2*142 + 34 + m + 1 + share*0x1p-11
			if left := share - lost; !(left >= 2.1) {
				t.Errorf("rows of %d and %d: %.2f of %.2f units are left", x, d, left, share)
			}
		}
	}
}

// TestTextNormsAreEnlarged: of every layer on places the norm that is told is above that of the gradient that
// is added, by as much as the clip's proof says, or more where places cancel.
func TestTextNormsAreEnlarged(t *testing.T) {
	n := textNetwork(t, 1, 128, 1)
	for _, processors := range []int32{1, 1000} {
		n.d.processors = processors
		n.d.clear(n.sums, 8*n.plan.Parameters)
		n.forward(nil, 1)
		n.backward(nil, 1)
		n.add(0, 1)
		sums, factor := get(t, n, n.sums, n.plan.Parameters), float64(get(t, n, n.factors[0], 1)[0])
		raw := get(t, n, n.room.squares, 2*n.squaresRow)
		squares := unsafe.Slice((*float64)(unsafe.Pointer(&raw[0])), n.squaresRow)
		for _, i := range n.texts.products() {
			l := &n.layers[i]
			if l.Kind == "scores" {
				continue // whose vectors are words', too
			}
			exact := 0.0
			for _, v := range sums[l.Start:][:l.In.Channels*l.Out.Channels+l.biases()*l.Out.Channels] {
				exact += float64(v) / factor * float64(v) / factor
			}
			if more := squares[l.squares0]/exact - 1; !(more >= 0.9*textShare(l.In.Channels, l.Out.Channels)) {
				t.Errorf("%s, on %d processors: a square that is %.2g more than that of the gradient", l.Name, processors, more)
			}
		}
	}
}

// textBits are the norms and losses of g texts, as strings of bits.
func textBits(t *testing.T, n *Network, g int) (norms, losses []float32) {
	n.forward(nil, g)
	n.backward(nil, g)
	return get(t, n, n.norms, 2*g), get(t, n, n.parted.losses, 2*g*textPlaces)
}

// TestTurns: texts have the same bits whichever turn of a block they are in, with another text or alone.
func TestTurns(t *testing.T) {
	const texts = 6
	n := textNetwork(t, 1, 128, texts)
	norms, losses := textBits(t, n, texts)
	for at, bytes := range map[uintptr]int{n.norms: 8 * texts, n.room.squares: 8 * texts * n.squaresRow, n.parted.losses: 8 * texts * textPlaces} {
		n.d.must(n.d.memset(at, 0xff, uint64(bytes), n.d.stream), "cuMemsetD8Async") // of before
	}
	n.d.processors = 2 // two turns, the last one of a text a block
	if got, loss := textBits(t, n, texts); !same(got, norms) || !same(loss, losses) {
		t.Error("texts have other bits in turns than each in a block")
	}
}

// TestTextsAlone: a text's norm and loss have the same bits alone and among others, by blocks of one
// example and of two: what an example has does not depend on others (docs/proofs/gpu-clip.md).
func TestTextsAlone(t *testing.T) {
	const texts = 3
	n := textNetwork(t, 2, 256, texts)
	all := get(t, n, n.rows, texts*textPlaces)
	bits := func(g int) (norms, losses []float32) { return textBits(t, n, g) }
	for _, processors := range []int32{1, 1000} {
		n.d.processors = processors
		n.d.toDevice(n.rows, unsafe.Slice((*byte)(unsafe.Pointer(&all[0])), 4*len(all)))
		norms, losses := bits(texts)
		for e := range texts {
			one := slices.Clone(all[e*textPlaces : (e+1)*textPlaces])
			n.d.toDevice(n.rows, unsafe.Slice((*byte)(unsafe.Pointer(&one[0])), 4*len(one)))
			n.d.processors = 1001 - processors
			norm, loss := bits(1)
			n.d.processors = processors
			if !same(norm, norms[2*e:2*e+2]) || !same(loss, losses[2*e*textPlaces:2*(e+1)*textPlaces]) {
				t.Errorf("text %d has other bits alone than among %d, on %d processors", e, texts, processors)
			}
		}
	}
}

// TestTextsLeftOut: what a text of factor 0 has, finite or not, is in no sum.
func TestTextsLeftOut(t *testing.T) {
	const texts, out = 3, 1
	n := textNetwork(t, 1, 128, texts)
	factors := []float32{0.5, 0, 2}
	n.d.toDevice(n.factors[0], unsafe.Slice((*byte)(unsafe.Pointer(&factors[0])), 4*texts))
	n.forward(nil, texts)
	n.backward(nil, texts)
	added := func() []float32 {
		n.d.clear(n.sums, 8*n.plan.Parameters)
		n.add(0, texts)
		return get(t, n, n.sums, n.plan.Parameters)
	}
	want := added()
	spoil := func(at uintptr, each int) {
		n.d.must(n.d.memset(at+uintptr(4*out*each), 0xff, uint64(4*each), n.d.stream), "cuMemsetD8Async")
	}
	for _, i := range n.texts.products() {
		l := &n.layers[i]
		spoil(n.values[l.From], l.In.Len())
		spoil(l.gradient, l.Out.Len())
	}
	spoil(n.layers[0].gradient, n.layers[0].Out.Len())
	spoil(n.room.kept, n.keptRow)
	if got := added(); !same(got, want) {
		t.Error("a text that is left out counts for something")
	}
	if slices.ContainsFunc(want, func(v float32) bool { return v-v != 0 }) || !slices.ContainsFunc(want, func(v float32) bool { return v != 0 }) {
		t.Error("there is nothing to count, or it is not finite")
	}
}

// TestRoomForTexts: there is room for the parts of sums of transformers of any number of blocks, and of
// any number of examples; and sums of whole numbers have gradients that are formed.
func TestRoomForTexts(t *testing.T) {
	bare := onGroups(t)
	for blocks := 1; blocks <= 24; blocks++ {
		m, err := model.Of(config.Run{Model: config.Model{Kind: "transformer", Blocks: blocks, Width: 128, Heads: 4}, Algorithm: config.Algorithm{Local: config.Local{Loss: "next-word"}}},
			data.Shape{Features: textPlaces, Vocabulary: 128 * (1 + blocks%5)})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := model.PlanOf(m)
		if err != nil {
			t.Fatal(err)
		}
		n := &Network{d: bare.d, plan: plan, chunk: 16}
		if err := n.prepare(); err != nil || n.texts == nil {
			t.Fatal(err, n.texts)
		}
		plan.Whole = true
		if n := (&Network{d: bare.d, plan: plan, chunk: 16}); n.prepare() != nil || n.texts != nil {
			t.Fatal("texts stay in parts, of which whole numbers cannot be formed")
		}
		for _, some := range n.textSums(sumShape) {
			for g := 1; g <= n.chunk; g++ {
				if need := some.split(g) * some.values(); need > n.partCount {
					t.Errorf("%d blocks, %d texts: %d values need room, and there is some for %d", blocks, g, need, n.partCount)
				}
			}
		}
	}
}

// same says that two have the same bits.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}

// TestFindTexts: which networks have a way of their own.
func TestFindTexts(t *testing.T) {
	transformer := func(blocks, places, width, heads, words int) (layers []layer) {
		add := func(kind string, from, plus, in, out int) {
			l := layer{}
			l.Kind, l.From, l.Plus, l.Heads, l.Words = kind, from, plus, heads, words
			l.In, l.Out = model.Shape{Height: places, Width: 1, Channels: in}, model.Shape{Height: places, Width: 1, Channels: out}
			layers = append(layers, l)
		}
		add("embedding", 0, 0, 1, width)
		add("positions", 1, 0, width, width)
		for range blocks {
			i := len(layers)
			add("layer-norm", i, 0, width, width)
			add("places", i+1, 0, width, 3*width)
			add("attention", i+2, 0, 3*width, width)
			add("places", i+3, i+1, width, width)
			add("layer-norm", i+4, 0, width, width)
			add("places", i+5, 0, width, 4*width)
			layers[i+5].activation.kind = gelu
			add("places", i+6, i+5, 4*width, width)
		}
		i := len(layers)
		add("layer-norm", i, 0, width, width)
		add("scores", i+1, 0, width, words)
		return layers
	}
	for _, c := range []struct {
		blocks, places, width, heads, words int
		change                              func(layers []layer)
		want                                bool
	}{
		{2, 64, 128, 4, 2048, nil, true},
		{1, 64, 128, 4, 128, nil, true},
		{4, 64, 128, 4, 8192, nil, true},
		{2, 63, 128, 4, 2048, nil, false},
		{2, 128, 128, 4, 2048, nil, false},
		{2, 64, 64, 2, 2048, nil, false},
		{2, 64, 128, 8, 2048, nil, false},
		{2, 64, 128, 4, 2000, nil, false},
		{2, 64, 128, 4, 1 << 15, nil, true},
		{0, 64, 128, 4, 2048, nil, false},
		{2, 64, 128, 4, 2048, func(l []layer) { l[7].activation.kind = 1 }, false},
		{2, 64, 128, 4, 2048, func(l []layer) { l[5].Plus = 2 }, false},
		{2, 64, 128, 4, 2048, func(l []layer) { l[8].From = 7 }, false},
		{2, 64, 128, 4, 2048, func(l []layer) { l[9].Kind = "group-norm" }, false},
		{2, 64, 128, 4, 2048, func(l []layer) { l[3].Start = 2 }, false},
	} {
		layers := transformer(c.blocks, c.places, c.width, c.heads, c.words)
		if c.change != nil {
			c.change(layers)
		}
		if found, ok := findTexts(layers); ok != c.want || ok && len(found.blocks) != c.blocks {
			t.Errorf("%s: %t, of %d blocks", fmt.Sprint(c.blocks, c.places, c.width, c.heads, c.words), ok, len(found.blocks))
		}
	}
}
