//go:build linux

package device

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// attention is what TestAttention compares with: outputs, and gradients at what went in.
func attention(x, d []float32, h heads) (out, dx []float32) {
	T, all := int(h.places), int(h.heads*h.width)
	out, dx = make([]float32, T*all), make([]float32, 3*T*all)
	scale := 1 / math.Sqrt(float64(h.width))
	for head := range int(h.heads) {
		at := func(v []float32, place, c, which, parts int) *float32 {
			return &v[(place*parts+which)*all+head*int(h.width)+c]
		}
		dq, dk, dv := make([]float64, T*int(h.width)), make([]float64, T*int(h.width)), make([]float64, T*int(h.width))
		for i := range T {
			w, slopes := make([]float64, i+1), make([]float64, i+1)
			sum, dot := 0.0, 0.0
			for j := range w {
				for c := range int(h.width) {
					w[j] += scale * float64(*at(x, i, c, 0, 3)) * float64(*at(x, j, c, 1, 3))
				}
				w[j] = math.Exp(w[j])
				sum += w[j]
			}
			for j := range w {
				w[j] /= sum
				for c := range int(h.width) {
					*at(out, i, c, 0, 1) += float32(w[j] * float64(*at(x, j, c, 2, 3)))
					slopes[j] += float64(*at(d, i, c, 0, 1)) * float64(*at(x, j, c, 2, 3))
					dv[j*int(h.width)+c] += w[j] * float64(*at(d, i, c, 0, 1))
				}
				dot += w[j] * slopes[j]
			}
			for j := range w {
				for c := range int(h.width) {
					dq[i*int(h.width)+c] += scale * w[j] * (slopes[j] - dot) * float64(*at(x, j, c, 1, 3))
					dk[j*int(h.width)+c] += scale * w[j] * (slopes[j] - dot) * float64(*at(x, i, c, 0, 3))
				}
			}
		}
		for which, from := range [][]float64{dq, dk, dv} {
			for i, v := range from {
				*at(dx, i/int(h.width), i%int(h.width), which, 3) = float32(v)
			}
		}
	}
	return out, dx
}

// TestAttention: both kernels of attention, and of its way back, have what the definition says,
// whatever the sizes; an example that is not finite spoils no other.
func TestAttention(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(9, 4))
	for _, h := range []heads{{64, 4, 32}, {7, 3, 4}, {1, 1, 32}, {33, 2, 20}, {64, 1, 28}, {5, 2, 6}, {70, 1, 8}, {9, 1, 40}} {
		inTurn(t, fmt.Sprint(h), func(t *testing.T) {
			T, all := int(h.places), int(h.heads*h.width)
			each := T * all
			x, d := drawn(src, 3*3*each), drawn(src, 3*each)
			x[0], d[1] = float32(math.NaN()), float32(math.Inf(1)) // of the first example
			values, out, dx := put(n, x), n.d.alloc(4*3*each), n.d.alloc(4*3*3*each)
			l := &layer{}
			l.Heads, l.Out.Height, l.Out.Width, l.Out.Channels = int(h.heads), T, 1, all
			looks := 3 * int(h.heads) * T
			l.extra.looks, l.extra.slopes, l.extra.along = n.d.alloc(4*looks*T), n.d.alloc(4*looks*T), n.d.alloc(4*looks)
			n.attend(l, 3, values, out)
			n.attendBack(l, 3, values, out, put(n, d), dx)
			y, back := get(t, n, out, 3*each), get(t, n, dx, 3*3*each)
			for e := 1; e < 3; e++ {
				want, wantBack := attention(x[3*e*each:3*(e+1)*each], d[e*each:(e+1)*each], h)
				if v := off(y[e*each:(e+1)*each], want); !(v < 1e-6) {
					t.Errorf("example %d: off by %.2g", e, v)
				}
				for part := range 3 {
					var got, exact []float32
					for i := range T {
						got = append(got, back[3*e*each+(3*i+part)*all:][:all]...)
						exact = append(exact, wantBack[(3*i+part)*all:][:all]...)
					}
					if v := off(got, exact); !(v < 2e-6) && T > 1 {
						t.Errorf("example %d: gradient %d is off by %.2g", e, part, v)
					}
				}
			}
		})
	}
}

// TestNextWord: the kernels of the next word's loss have what the definition says, for any
// vocabulary; a place that is not finite spoils no other.
func TestNextWord(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(9, 5))
	for _, vocabulary := range []int{3, 4, 52, 1020, 1024, 2044, 2048, 2052, 4096, 4098, 5000} {
		const places, rows = 3, 9
		scores, words := drawn(src, rows*vocabulary), make([]float32, rows)
		next := make([]int, rows)
		for i := range words {
			next[i] = src.IntN(vocabulary)
			words[i] = math.Float32frombits(uint32(next[i]))
		}
		scores[0] = float32(math.Inf(1))
		for _, back := range []int{0, 1} {
			at, losses := put(n, scores), n.d.alloc(8*rows)
			kept := n.d.alloc(4 * rows * places)
			n.call(nextWordKernel(vocabulary), along(rows, 1), 256, at, put(n, words), losses, kept*uintptr(back), places, vocabulary, back)
			met := get(t, n, kept, rows*places)
			got, raw := get(t, n, at, rows*vocabulary), get(t, n, losses, 2*rows)
			lost := unsafe.Slice((*float64)(unsafe.Pointer(&raw[0])), rows)
			if lost[0]-lost[0] == 0 {
				t.Errorf("%d words: a place that is not finite loses %g", vocabulary, lost[0])
			}
			for k := 1; k < rows; k++ {
				row := scores[k*vocabulary:][:vocabulary]
				sum, want, loss := 0.0, make([]float32, vocabulary), 0.0
				for _, v := range row {
					sum += math.Exp(float64(v))
				}
				if k%places != places-1 {
					loss = math.Log(sum) - float64(row[next[k+1]])
					for i, v := range row {
						p := math.Exp(float64(v)) / sum
						if i == next[k+1] {
							p--
						}
						want[i] = float32(p / (places - 1))
					}
				}
				if back == 0 {
					want = row
				}
				if !(math.Abs(lost[k]-loss) <= 1e-6*math.Abs(loss)) {
					t.Errorf("%d words, place %d: a loss of %g, not %g", vocabulary, k, lost[k], loss)
				}
				for i, v := range got[k*vocabulary:][:vocabulary] {
					if !(math.Abs(float64(v-want[i])) <= 1e-6*math.Abs(float64(want[i]))) {
						t.Fatalf("%d words, place %d: the slope of word %d is %g, not %g", vocabulary, k, i, v, want[i])
					}
				}
				for i := range places * back { // what is kept of the text's own words
					if v, own := met[k*places+i], got[k*vocabulary+next[k/places*places+i]]; v != own {
						t.Fatalf("%d words, place %d: at word %d of its text %g is kept, not %g", vocabulary, k, i, v, own)
					}
				}
			}
		}
	}
}

// TestHeldNorms: layer norms that hold a place have what those do that do not, both ways, with a
// gradient that is added and a gate, or without; and a place that is not finite spoils no other.
func TestHeldNorms(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(9, 6))
	for i, s := range [][2]int{{9, 128}, {1, 4}, {17, 36}, {8, 132}, {3, 512}, {5, 500}} {
		rows, channels := s[0], s[1]
		values := drawn(src, rows*channels)
		values[rows*channels-1] = float32(math.NaN())
		x, affine, d, at := put(n, values), put(n, drawn(src, 2*channels)), put(n, drawn(src, rows*channels)), put(n, drawn(src, rows*channels))
		plus := uintptr(0)
		if i%2 == 0 {
			plus = put(n, drawn(src, rows*channels))
		}
		var got [2][3][]float32
		for j := range got {
			names := [2]string{"layer_norm", "layer_norm_back"}
			if j == 0 {
				names = [2]string{normKernel(names[0], channels, affine), normKernel(names[1], channels, affine)}
			}
			out, stats, dx := n.d.alloc(4*rows*channels), n.d.alloc(8*rows), n.d.alloc(4*rows*channels)
			n.call(names[0], along(rows, 8), 256, x, affine, out, stats, rows, channels, act{int32(i % 3), 0.1})
			n.call(names[1], along(rows, 8), 256, x, stats, affine, d, plus, at, act{[]int32{5, 0, 2}[i%3], 0.3}, dx, rows, channels)
			last := (rows - 1) * channels
			got[j] = [3][]float32{get(t, n, out, rows*channels)[:last], get(t, n, stats, 2*rows)[:2*rows-2], get(t, n, dx, rows*channels)[:last]}
			if v := get(t, n, out, rows*channels)[last]; v == v && i%3 == 0 {
				t.Errorf("%v: a place that is not finite gives %v", s, v)
			}
		}
		for k, name := range []string{"outputs", "means and deviations", "gradients"} {
			if v := off(got[0][k], got[1][k]); !(v < 1e-6) && rows > 1 {
				t.Errorf("%v: %s are off by %.2g", s, name, v)
			}
		}
	}
}

// TestNormsOfLayersTogether: the squared norms of layers on places, which wait for one another,
// are those of their sums over places, or above by what rounding may take; an example that is
// not finite has none that is, and spoils no other; nothing is written beside them.
func TestNormsOfLayersTogether(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(9, 7))
	shapes := [][3]int{{16, 20, 1}, {128, 32, 0}, {4, 8, 1}, {36, 4, 1}, {900, 200, 0}, {12, 12, 1}, {32, 192, 1}, {64, 64, 0}, {1024, 32, 1}} // of long ones nobody waits for more; groups of warps have some
	for _, places := range []int{1, 7, 64} {
		const g = 3
		row := len(shapes) + 2
		n.room = room{squares: n.d.alloc(8 * g * row), squaresRow: int32(row)}
		var want, most [][g]float64
		for i, s := range shapes {
			in, out, bias := s[0], s[1], s[2]
			x, d := drawn(src, g*places*in), drawn(src, g*places*out)
			x[0] = float32(math.NaN())
			var square, above [g]float64
			share := roundingShare(in, out, n.pairsByGroups(places, in, out))
			for e := 1; e < g; e++ {
				lengths := 0.0
				for a := range places {
					for b := range places {
						xx, dd := float64(bias), 0.0
						for c := range in {
							xx += float64(x[(e*places+a)*in+c]) * float64(x[(e*places+b)*in+c])
						}
						for c := range out {
							dd += float64(d[(e*places+a)*out+c]) * float64(d[(e*places+b)*out+c])
						}
						if square[e] += xx * dd; a == b {
							lengths += math.Sqrt(xx * dd)
						}
					}
				}
				above[e] = square[e] + 2*share*lengths*lengths
			}
			want, most = append(want, square), append(most, above)
			at := n.room
			at.squares0 = int32(i + 1)
			n.productSquare(put(n, x), put(n, d), g, places, in, out, bias, 1, at)
		}
		n.squareHalves(g)
		raw := get(t, n, n.room.squares, 2*g*row)
		got := unsafe.Slice((*float64)(unsafe.Pointer(&raw[0])), g*row)
		for e := range g {
			for i := range shapes {
				v := got[e*row+i+1]
				if e == 0 && v-v == 0 || e > 0 && !(v >= want[i][e] && v <= most[i][e]) {
					t.Errorf("%d places, example %d, layer %d: a square of %.9g, not from %.9g to %.9g", places, e, i, v, want[i][e], most[i][e])
				}
			}
			if a, b := got[e*row], got[e*row+row-1]; a == a || b == b {
				t.Errorf("%d places, example %d: wrote beside its squares", places, e)
			}
		}
	}
}

// TestNormsRound: what groups of warps have of squared norms is off by at most what the clip's proof
// says (docs/proofs/gpu-clip.md), of which the device adds as much: (296 + 65/64 (m_x + m_d)) units of
// the square of the places' lengths, added up. Rows are such that places cancel, are of one sign or of
// many sizes, or have one large value; a scale is of a row's 32 values, so that no other one spoils them.
func TestNormsRound(t *testing.T) {
	n, src := onGroups(t), rand.New(rand.NewPCG(9, 11))
	const g, places, in, out = 4, 64, 128, 256
	for kind, change := range map[string]func(place, at int, v float32) float32{
		"drawn":    func(_, _ int, v float32) float32 { return v },
		"positive": func(_, _ int, v float32) float32 { return 1 + v*v },
		"one large": func(_, at int, v float32) float32 {
			if at%32 == 3 {
				return 4096 * v
			}
			return v
		},
		"cancelling": func(place, _ int, v float32) float32 { return float32(1-place%2*2) * (1 + v/65536) },
		"many sizes": func(place, at int, v float32) float32 {
			return float32(math.Ldexp(float64(v), at%24-12+place%40-20))
		},
		"tiny": func(_, _ int, v float32) float32 { return 0x1p-40 * v },
	} {
		x, d := drawn(src, g*places*in), drawn(src, g*places*out)
		for i := range x {
			x[i] = change(i/in, i%in, x[i])
		}
		for i := range d { // of one side alone, so that sums are near zero
			if kind == "cancelling" {
				d[i] = 1 + d[i]/65536
			} else {
				d[i] = change(i/out, i%out, d[i])
			}
		}
		n.room = room{squares: n.d.alloc(8 * g), squaresRow: 1}
		list := halves{room: n.room}
		list.of[0] = half{x: put(n, x), d: put(n, d), in: in, out: out}
		n.callShared("group_halves", [3]int{g, 1, 1}, 128, pairShared, list, places)
		raw := get(t, n, n.room.squares, 2*g)
		worst := 0.0
		for e, v := range unsafe.Slice((*float64)(unsafe.Pointer(&raw[0])), g) {
			square, lengths := 0.0, 0.0
			for a := range places {
				for b := range places {
					xx, dd := 0.0, 0.0
					for c := range in {
						xx += float64(x[(e*places+a)*in+c]) * float64(x[(e*places+b)*in+c])
					}
					for c := range out {
						dd += float64(d[(e*places+a)*out+c]) * float64(d[(e*places+b)*out+c])
					}
					if square += xx * dd; a == b {
						lengths += math.Sqrt(xx * dd)
					}
				}
			}
			worst = max(worst, math.Abs(v-square)/(lengths*lengths)*0x1p24)
		}
		most := 296 + float64(in/32+out/32)*65/64
		t.Logf("%s: off by %.2f units of %.0f", kind, worst, most)
		if !(worst <= most) {
			t.Errorf("%s: off by %.1f units", kind, worst)
		}
	}
}

// TestRoundingShare: of what the device adds for rounding at least one unit is left once all that the
// clip's proof counts is taken away (docs/proofs/gpu-clip.md), for rows of every length: products of
// rows, terms of second order, lengths that are made of such products, and, by groups of warps,
// products that are counted twice.
func TestRoundingShare(t *testing.T) {
	for x := 32; x <= maxRow; x *= 2 {
		for d := 32; d <= maxRow; d *= 2 {
			m, of := float64(x/32+d/32), float64(x/32)
			for groups, each := range map[bool]float64{false: 34, true: 146} {
				share := roundingShare(x, d, groups) * 0x1p24
				lost := 2*each + m + 1 + share*0x1p-11
				if groups {
					lost += (each + of) * 0x1p-10
				}
				if left := share - lost; !(left >= 1) {
					t.Errorf("rows of %d and %d, groups %t: %.2f of %.2f units are left", x, d, groups, left, share)
				}
			}
		}
	}
}

// TestWordsSum: gradients at places are added to those of their words' vectors, whether a word is read
// nowhere, once or at most places, so that its places are with several warps, or fill some; what a sum
// held before stays, an example of factor 0 is left out, finite or not.
func TestWordsSum(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(2, 8))
	for _, c := range []struct {
		examples, places, units, words int
		common                         float64 // share of places that have word 3
	}{{3, 7, 20, 10, 0}, {1, 1, 128, 9, 0}, {5, 64, 130, 17, 0.5}, {40, 64, 128, 300, 0.2}, {4, 33, 6, 8, 1}, {2, 512, 36, 4, 0}} {
		inTurn(t, fmt.Sprint(c), func(t *testing.T) {
			rows := c.examples * c.places
			words, d, factors, before := make([]float32, rows), drawn(src, rows*c.units), make([]float32, c.examples), drawn(src, c.words*c.units)
			want := make([]float32, len(before))
			exact := make([]float64, len(before))
			for i, v := range before {
				exact[i] = float64(v)
			}
			for e := range factors {
				factors[e] = src.Float32()
			}
			if c.examples > 1 {
				factors[1], d[c.places*c.units] = 0, float32(math.NaN())
			}
			for k := range words {
				word := src.IntN(c.words)
				if src.Float64() < c.common {
					word = 3
				}
				words[k] = math.Float32frombits(uint32(word))
				if f := factors[k/c.places]; f != 0 {
					for j := range c.units {
						exact[word*c.units+j] += float64(f) * float64(d[k*c.units+j])
					}
				}
			}
			for i, v := range exact {
				want[i] = float32(v)
			}
			l := &layer{gradient: put(n, d)}
			l.Words, l.Out.Height, l.Out.Width, l.Out.Channels = c.words, c.places, 1, c.units
			n.rows, n.parted.order, n.parted.crossing = put(n, words), n.d.alloc(4*rows), n.d.alloc(8*tiles(rows, wordsRun)*c.units)
			sum := put(n, before)
			n.addWords(l, c.examples, sum, put(n, factors))
			if v := off(get(t, n, sum, len(want)), want); !(v < 1e-6) {
				t.Errorf("off by %.2g", v)
			}
			order := get(t, n, n.parted.order, rows)
			for i := range order[1:] { // as strings, for words and places
				a, b := math.Float32bits(order[i]), math.Float32bits(order[i+1])
				if x, y := math.Float32bits(words[a]), math.Float32bits(words[b]); x > y || x == y && a >= b {
					t.Fatalf("place %d of word %d comes before place %d of word %d", a, x, b, y)
				}
			}
		})
	}
}
