//go:build linux

package device

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// putDoubles is put of float64s.
func putDoubles(n *Network, values []float64) uintptr {
	p := n.d.alloc(8 * len(values))
	n.d.toDevice(p, unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 8*len(values)))
	n.d.wait()
	return p
}

// weighted draws weights, of which some are 0 and the others no powers of two.
func weighted(src *rand.Rand, g int) []float64 {
	w := make([]float64, g)
	for e := range w {
		if e%3 != 1 {
			w[e] = 3e9 * src.ExpFloat64()
		}
	}
	return w
}

// TestWholeRows: sums of rows, each value times its weight and rounded toward zero, to the last bit,
// whatever the sizes; rows of weight 0 are left out, finite or not.
func TestWholeRows(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 6))
	for _, s := range [][4]int{{1, 1, 1, 1}, {70, 33, 40, 3}, {9, 64, 64, 2}, {300, 5, 5, 7}} { // rows, columns, from one to the next, parts
		rows, weights := drawn(src, s[0]*s[2]), weighted(src, s[0])
		want := make([]float64, s[1])
		for e, w := range weights {
			for i := range s[1] {
				if w == 0 {
					rows[e*s[2]+i] = float32(math.NaN())
				} else {
					want[i] += math.Trunc(w * float64(rows[e*s[2]+i]))
				}
			}
		}
		sum := putDoubles(n, make([]float64, len(want)))
		n.call("whole_rows", [3]int{tiles(s[1], wholeColumns), s[3], 1}, 256, put(n, rows), putDoubles(n, weights), sum, s[0], s[1], s[2])
		if got := doubles(t, n, sum, len(want)); !slices.Equal(got, want) {
			t.Errorf("%v: %v instead of %v", s, got, want)
		}
	}
}

// TestWholeProducts: the same of the gradients of linear layers, of which none is formed.
func TestWholeProducts(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 7))
	for _, s := range [][5]int{{1, 1, 1, 1, 1}, {70, 65, 33, 1, 3}, {17, 64, 32, 0, 2}, {40, 3, 70, 1, 1}, {5, 130, 2, 0, 7}} { // rows, inputs, outputs, bias, parts
		g, in, out, bias := s[0], s[1], s[2], s[3]
		x, d, weights := drawn(src, g*in), drawn(src, g*out), weighted(src, g)
		want := make([]float64, (in+bias)*out)
		for e, w := range weights {
			if w == 0 {
				x[e*in], d[e*out] = float32(math.Inf(1)), float32(math.NaN())
				continue
			}
			for i := range in + bias {
				v := 1.
				if i < in {
					v = float64(x[e*in+i])
				}
				for j := range out {
					want[i*out+j] += math.Trunc(v * (float64(d[e*out+j]) * w))
				}
			}
		}
		sum := putDoubles(n, make([]float64, len(want)))
		n.call("whole_products", [3]int{tiles(in+bias, wholeInputs), tiles(out, wholeOutputs), s[4]}, 256, put(n, x), put(n, d), putDoubles(n, weights), sum, g, in, out, bias)
		if got := doubles(t, n, sum, len(want)); !slices.Equal(got, want) {
			t.Errorf("%v: another sum", s)
		}
	}
}

// TestFormed: gradients on places, and of words' vectors, are what they should be; what is added is
// what the norms are of, each value rounded toward zero.
func TestFormed(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 8))
	for name, f := range map[string]forming{
		"places":             {places: 17, high: 65, wide: 33, bias: 1},
		"one place":          {places: 1, high: 3, wide: 2, bias: 1},
		"without a bias":     {places: 40, high: 64, wide: 70},
		"words":              {places: 9, high: 70, wide: 35, words: 1},
		"words at both ends": {places: 20, high: 5, wide: 33, words: 1, x: 1},
	} {
		const g = 5
		places, high, wide := int(f.places), int(f.high), int(f.wide)
		vectors, products := f.words != 0, f.words == 0 || f.x != 0
		x, d, dx, words := drawn(src, g*places*high), drawn(src, g*places*wide), drawn(src, g*places*wide), make([]float32, g*places)
		for i := range words {
			words[i] = math.Float32frombits(uint32(src.IntN(high) * src.IntN(2)))
		}
		f.x, f.d, f.words, f.dx = 0, 0, 0, 0
		if products {
			f.x, f.d = put(n, x), put(n, d)
		}
		if vectors {
			f.words, f.dx = put(n, words), put(n, dx)
		}
		down, across := f.tiles()
		values, parts := (high+int(f.bias))*wide, down*across
		weights := weighted(src, g)
		const exact = 1 << 40 // a float32 that is no smaller than 2^-16 is a whole number of its inverses
		single, all := putDoubles(n, make([]float64, values)), putDoubles(n, make([]float64, values))
		squares := putDoubles(n, make([]float64, g*(parts+1)))
		n.call("formed_square", [3]int{down, across, g}, 256, f, room{squares: squares, squaresRow: int32(parts + 1), squares0: 1})
		told := doubles(t, n, squares, g*(parts+1))
		want := make([]float64, values)
		for e, w := range weights {
			n.d.clear(single, 8*values)
			one := make([]float64, g)
			one[e] = exact
			n.call("formed_sum", [3]int{down, across, 2}, 256, f, putDoubles(n, one), single, g)
			got := doubles(t, n, single, values)
			var square, toldSquare float64
			for _, v := range told[e*(parts+1)+1:][:parts] {
				toldSquare += v
			}
			for k := range got {
				got[k] /= exact
				square += got[k] * got[k]
				want[k] += math.Trunc(w * got[k])
				m, c := k/wide, k%wide
				var v float64
				for p := range places {
					at := e*places + p
					if products {
						factor := 1.
						if m < high {
							factor = float64(x[at*high+m])
						}
						v += factor * float64(d[at*wide+c])
					}
					if vectors && int(math.Float32bits(words[at])) == m {
						v += float64(dx[at*wide+c])
					}
				}
				if math.Abs(got[k]-v) > 1e-5 {
					t.Fatalf("%s, row %d, value %d: %v instead of %v", name, e, k, got[k], v)
				}
			}
			if math.Abs(toldSquare/square-1) > 1e-8 {
				t.Errorf("%s, row %d: a square of %v, and what is added has %v", name, e, toldSquare, square)
			}
		}
		n.call("formed_sum", [3]int{down, across, 3}, 256, f, putDoubles(n, weights), all, g)
		for k, v := range doubles(t, n, all, values) {
			if v != want[k] && math.Abs(v-want[k]) != 1 { // values below 2^-16 were cut off
				t.Fatalf("%s, value %d: %v instead of %v", name, k, v, want[k])
			}
		}
	}
}
