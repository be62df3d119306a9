//go:build linux

package device

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestFewOutputs: the way back through a linear layer of few outputs has the bits of that of
// many, whatever the sizes, the slopes it goes through, and where weights begin; and a row
// that is not finite spoils no other.
func TestFewOutputs(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 5))
	for i, s := range [][3]int{{70, 140, 32}, {1, 129, 10}, {64, 128, 33}, {65, 7, 64}, {3, 260, 1}} {
		g, in, out := s[0], s[1], s[2]
		gate, gradients := act{kind: int32(i % 5), slope: 0.1}, drawn(src, g*out)
		if g > 1 {
			gradients[0] = float32(math.Inf(1))
		}
		d, w, y := put(n, gradients), put(n, drawn(src, in*out+1))+uintptr(4*(i%2)), put(n, drawn(src, g*in))
		one, other := n.d.alloc(4*g*in), n.d.alloc(4*g*in)
		n.denseBack(d, w, y, gate, one, g, in, out)
		n.call("dense_back", [3]int{tiles(g, 128), tiles(in, 64), 1}, 128, d, w, y, gate, other, g, in, out)
		got, want := get(t, n, one, g*in), get(t, n, other, g*in)
		if g > 1 {
			got, want = got[in:], want[in:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d examples, %d to %d: off by %.2g", g, in, out, off(got, want))
		}
	}
}

// TestWeightedSums: the weighted sums of the gradients of linear layers, with or without
// biases, are those of their examples, in as many parts as there are, of few layers or many
// at once; examples of weight 0 are left out, finite or not.
func TestWeightedSums(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 6))
	type shape struct{ in, out, split, bias int }
	for _, s := range []struct {
		g      int
		layers []shape
	}{
		{70, []shape{{140, 32, 2, 1}, {33, 10, 3, 1}, {40, 66, 2, 1}, {3, 4, 1, 0}, {128, 70, 3, 1}, {5, 33, 1, 0}}},
		{1, []shape{{5, 10, 1, 1}}},
		{1030, []shape{{3, 4, 2, 0}, {2, 65, 2, 1}}},
		{47, []shape{{128, 20, 4, 1}, {129, 31, 2, 1}, {127, 66, 1, 0}}},
	} {
		weights := drawn(src, s.g)
		for e := range weights {
			if e%3 == 1 {
				weights[e] = 0
			}
		}
		var all []linear
		var wants [][]float32
		room := 0
		for i, l := range s.layers {
			x, d := drawn(src, s.g*l.in+1), drawn(src, s.g*l.out+1)
			skip := i % 2 // where they begin
			want := make([]float32, (l.in+l.bias)*l.out)
			for e, v := range weights {
				if v == 0 {
					x[skip+e*l.in], d[skip+e*l.out] = float32(math.Inf(1)), float32(math.NaN())
					continue
				}
				for i := range l.in + l.bias {
					value := float32(1)
					if i < l.in {
						value = x[skip+e*l.in+i]
					}
					for o := range l.out {
						want[i*l.out+o] += value * d[skip+e*l.out+o] * v
					}
				}
			}
			for i := range want {
				want[i] += 3 // which were there
			}
			sum := put(n, slices.Repeat([]float32{3}, len(want)))
			all = append(all, linear{x: put(n, x) + uintptr(4*skip), d: put(n, d) + uintptr(4*skip), sum: sum, in: int32(l.in), out: int32(l.out), bias: int32(l.bias), split: int32(l.split)})
			wants = append(wants, want)
			room += tiles(l.split*len(want), 4) * 4
		}
		n.parts = n.d.alloc(4 * room)
		n.denseSums(all, put(n, weights), s.g)
		for i, want := range wants {
			l := s.layers[i]
			got := get(t, n, all[i].sum, len(want))
			if d := off(got, want); !(d < 1e-6) {
				t.Errorf("%d examples, %d to %d: off by %.2g", s.g, l.in, l.out, d)
			}
			if d := off(got[l.in*l.out:], want[l.in*l.out:]); l.bias == 1 && !(d < 1e-6) {
				t.Errorf("%d examples, %d to %d: biases are off by %.2g", s.g, l.in, l.out, d)
			}
		}
	}
}

// TestHead: a network's end in one kernel has what its layers' kernels have, up to rounding,
// whatever the sizes and activations; and a row that is not finite spoils no other.
func TestHead(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 7))
	for i, s := range [][4]int{{9, 32, 10, 64}, {1, 128, 64, 3}, {5, 33, 62, 1}, {6, 7, 1, 2}, {4, 97, 33, 17}, {3, 1, 2, 1}} {
		g, hidden, classes, split := s[0], s[1], s[2], s[3]
		acts := [2]act{{int32(i+1) % 3, 0.1}, {int32(i) % 3, 0.2}}
		values := drawn(src, split*g*hidden)
		if g > 1 {
			values[hidden-1] = float32(math.Inf(1))
		}
		parts, w, bias, hiddenBias := put(n, values), put(n, drawn(src, hidden*classes+1))+uintptr(4*(i%2)), put(n, drawn(src, classes)), put(n, drawn(src, hidden))
		if i%3 == 2 {
			bias, hiddenBias = 0, 0
		}
		numbers := func(count, of int) uintptr { // of 32 bits
			all := make([]float32, count)
			for i := range all {
				all[i] = math.Float32frombits(uint32(src.IntN(of)))
			}
			return put(n, all)
		}
		labels, rows := numbers(20, classes), numbers(g, 20)
		room := room{squares: n.d.alloc(8 * 3 * g), squaresRow: 3, squares0: 1}
		other := room
		other.squares = n.d.alloc(8 * 3 * g)
		h, d, dh := n.d.alloc(4*g*hidden), n.d.alloc(4*g*classes), n.d.alloc(4*g*hidden)
		h2, d2, dh2, out2, parts2 := n.d.alloc(4*g*hidden), n.d.alloc(4*g*classes), n.d.alloc(4*g*hidden), n.d.alloc(4*g*classes), n.d.alloc(4*g*classes)
		squares := make([]float64, split*g)
		for i := range squares {
			squares[i] = src.Float64()
		}
		inputs := put(n, unsafe.Slice((*float32)(unsafe.Pointer(&squares[0])), 2*len(squares)))
		n.call("head", along(g, 4), 128, parts, split, hiddenBias, acts[0], w, bias, acts[1], labels, rows, h, d, dh, g, hidden, classes, room, inputs, 0)
		n.call("dense_end", along(g*hidden, 256), 256, parts, hiddenBias, h2, g*hidden, hidden, split, acts[0])
		n.call("dense_64", [3]int{tiles(g, 128), 1, 1}, 128, h2, w, parts2, g, hidden, classes, uintptr(0))
		n.call("dense_end", along(g*classes, 256), 256, parts2, bias, out2, g*classes, classes, 1, acts[1])
		n.call("cross_entropy", along(g, 4), 128, out2, labels, rows, d2, g, classes, acts[1])
		biases := 0
		if bias != 0 {
			biases = 1
		}
		n.call("dense_square", along(g, 1), 256, h2, d2, hidden, classes, biases, other)
		n.denseBack(d2, w, h2, acts[0], dh2, g, hidden, classes)
		for j, pair := range [][3]uintptr{{h, h2, uintptr(hidden)}, {d, d2, uintptr(classes)}, {dh, dh2, uintptr(hidden)}} {
			each := int(pair[2])
			got, want := get(t, n, pair[0], g*each), get(t, n, pair[1], g*each)
			for e := min(g-1, 1); e < g; e++ {
				if d := off(got[e*each:][:each], want[e*each:][:each]); !(d < 4e-6) && !slices.Equal(got[e*each:][:each], want[e*each:][:each]) {
					t.Errorf("%v, row %d of %d: off by %.2g", s, e, j, d)
				}
			}
		}
		doubles := func(r uintptr) []float64 {
			raw := get(t, n, r, 6*g)
			return unsafe.Slice((*float64)(unsafe.Pointer(&raw[0])), 3*g)
		}
		got, want := doubles(room.squares), doubles(other.squares)
		for e := min(g-1, 1); e < g; e++ {
			if a, b := got[3*e+1], want[3*e+1]; !(math.Abs(a-b) <= 1e-5*b) {
				t.Errorf("%v, row %d: a square of %g, not %g", s, e, a, b)
			}
			into, behind := float64(biases), 0.0
			for k := range split {
				into += squares[k*g+e]
			}
			for _, v := range get(t, n, dh, g*hidden)[e*hidden:][:hidden] {
				behind += float64(v) * float64(v)
			}
			if a, b := got[3*e], into*behind; !(math.Abs(a-b) <= 1e-12*b) {
				t.Errorf("%v, row %d: a square of %g before the last layer, not %g", s, e, a, b)
			}
			if !math.IsNaN(got[3*e+2]) {
				t.Errorf("%v, row %d: wrote beside its squares", s, e)
			}
		}
		if v := get(t, n, dh, g*hidden)[0]; g > 1 && acts[1].kind == 0 && !(v != v) && got[1] == got[1] {
			t.Errorf("%v: the row that is not finite has a gradient of %v and a square of %v", s, v, got[1])
		}
	}
}

// TestSquaresOfProducts: with a product come the sums of the squares of what goes into it, part
// by part, if somebody asks for them, and no bit of the product changes; nor is there another
// one where outputs are few. It is what its values say.
func TestSquaresOfProducts(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 10))
	for i, s := range [][4]int{{130, 72, 32, 3}, {5, 129, 70, 2}, {1, 3, 10, 1}, {129, 64, 130, 4}, {140, 37, 31, 2}, {3, 200, 12, 5}, {3, 38, 5, 2}} {
		g, in, out, split := s[0], s[1], s[2], s[3]
		values := drawn(src, g*in)
		if g > 1 {
			values[0] = float32(math.NaN())
		}
		x, w, squares := put(n, values), put(n, drawn(src, in*out+1))+uintptr(4*(i%2)), n.d.alloc(8*(split*g+1))
		one, other := n.d.alloc(4*split*g*out), n.d.alloc(4*split*g*out)
		name, grid := fmt.Sprint("dense_", denseWidth(out)), [3]int{tiles(g, 128), tiles(out, denseWidth(out)), split}
		n.call(name, grid, 128, x, w, one, g, in, out, squares)
		n.call("dense_64", [3]int{grid[0], tiles(out, 64), split}, 128, x, w, other, g, in, out, uintptr(0))
		exact := make([]float32, out)
		for k := range in {
			for o, v := range get(t, n, w+uintptr(4*k*out), out) {
				exact[o] += values[(g-1)*in+k] * v
			}
		}
		for z, all := 1, get(t, n, one, split*g*out); z < split; z++ {
			for o := range out {
				exact[o] -= all[(z*g+g-1)*out+o]
			}
		}
		if d := off(get(t, n, one+uintptr(4*(g-1)*out), out), exact); !(d < 1e-5) {
			t.Errorf("%v: the last row is off by %.2g", s, d)
		}
		got, want := get(t, n, one, split*g*out), get(t, n, other, split*g*out)
		for z := range split {
			for e := min(g-1, 1); e < g; e++ {
				if at := (z*g + e) * out; !slices.Equal(got[at:][:out], want[at:][:out]) {
					t.Fatalf("%v, part %d, row %d: another product", s, z, e)
				}
			}
		}
		raw := get(t, n, squares, 2*(split*g+1))
		sums := unsafe.Slice((*float64)(unsafe.Pointer(&raw[0])), split*g+1)
		for e := min(g-1, 1); e < g; e++ {
			for z := range split {
				from, to := z*tiles(in, 16)/split*16, min(in, (z+1)*tiles(in, 16)/split*16)
				want := 0.0
				for _, v := range values[e*in+from : e*in+to] {
					want += float64(v) * float64(v)
				}
				if v := sums[z*g+e]; !(math.Abs(v-want) <= 1e-12*want) {
					t.Errorf("%v, part %d, row %d: %g, not %g", s, z, e, v, want)
				}
			}
		}
		if v := sums[split*g]; v == v {
			t.Errorf("%v: wrote behind its squares", s)
		}
	}
}

// TestDenseParts: large layers have the parts that were timed best, a part is never empty, and
// none has more examples than a block has weights for.
func TestDenseParts(t *testing.T) {
	for _, s := range []struct{ chunk, in, out, outputs, gradients int }{
		{576, 16928, 32, 64, 2}, // digits: 23.5 us forward, 34 back, of 512
		{576, 9216, 128, 48, 2}, // handwriting: 33.6 and 53
		{576, 32, 10, 1, 8},
		{16, 40, 3, 1, 1},
		{1024, 3072, 512, 9, 2},
		{5000, 64, 10, 1, 8},
		{20000, 16928, 32, 4, 20},
	} {
		outputs, gradients := denseParts(s.chunk, s.in, s.out)
		if outputs != s.outputs || gradients != s.gradients {
			t.Errorf("%+v: %d and %d parts", s, outputs, gradients)
		}
		if most := (tiles(s.chunk, 16)/gradients + 1) * 16; most > mostWeights {
			t.Errorf("%+v: up to %d examples a part", s, most)
		}
	}
}
