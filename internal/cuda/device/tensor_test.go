//go:build linux

package device

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// near says by how much of 2e-6 of the sum of its terms' sizes a value is off at the most: what
// float32 leaves of sums of some hundred terms.
func near(got []float32, want, sizes []float64) float64 {
	worst := 0.0
	for i, v := range got {
		d := math.Abs(float64(v)-want[i]) / (2e-6 * sizes[i])
		if d != d {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst
}

// multiplied is the sum over k of x(m, k) y(k, n), and of the terms' sizes.
func multiplied(m, n, k int, x, y func(line, k int) float64) (values, sizes []float64) {
	values, sizes = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			for at := range k {
				v := x(i, at) * y(j, at)
				values[i*n+j] += v
				sizes[i*n+j] += math.Abs(v)
			}
		}
	}
	return values, sizes
}

// scaled draws values of many sizes, so that every part of theirs counts somewhere.
func scaled(src *rand.Rand, count int) []float32 {
	values := drawn(src, count)
	for i := range values {
		values[i] = float32(math.Ldexp(float64(values[i]), src.IntN(12)-6))
	}
	return values
}

// onTensors is a bare network of a device that has tensor cores.
func onTensors(t testing.TB) *Network {
	t.Helper()
	n := bare(t)
	if !n.d.tensor {
		t.Skip("the device has no tensor cores")
	}
	return n
}

// eachTile calls a test for every tile of a product, and sizes that it does not divide.
func eachTile(t *testing.T, name string, sizes [][3]int, test func(t *testing.T, one tile, m, n, k int)) {
	for _, one := range productTiles[name] {
		for _, s := range sizes {
			inTurn(t, fmt.Sprint(one.name(), "/", s), func(t *testing.T) { test(t, one, s[0], s[1], s[2]) })
		}
	}
}

// TestTensorProducts: products on tensor cores are those of float32, of any number of rows, with
// bias, plus and activation, or without; a row that is not finite spoils no other.
func TestTensorProducts(t *testing.T) {
	n, src := onTensors(t), rand.New(rand.NewPCG(9, 1))
	eachTile(t, "times", [][3]int{{130, 68, 36}, {1, 4, 4}, {33, 132, 100}, {64, 32, 16}}, func(t *testing.T, one tile, m, columns, k int) {
		x, w, bias, plus := scaled(src, m*k), scaled(src, k*columns), drawn(src, columns), drawn(src, m*columns)
		want, sizes := multiplied(m, columns, k, func(i, at int) float64 { return float64(x[i*k+at]) }, func(j, at int) float64 { return float64(w[at*columns+j]) })
		if m > 1 {
			x[0] = float32(math.Inf(1))
		}
		out, before := n.d.alloc(4*m*columns), n.d.alloc(4*m*columns)
		run := func(bias, plus uintptr, a act) {
			n.callShared(one.kernel("times"), along(one.blocks(m, columns), 1), one.threads, one.shared(true, false), put(n, x), put(n, w), bias, plus, before, out, m, columns, k, a)
		}
		check := func(what string, at uintptr, want []float64) {
			t.Helper()
			first := 0
			if m > 1 {
				first = columns
			}
			if d := near(get(t, n, at, m*columns)[first:], want[first:], sizes[first:]); !(d <= 1) {
				t.Errorf("%s: off by %.3g of what it may", what, d)
			}
		}
		run(0, 0, act{})
		check("alone", out, want)
		if v := get(t, n, out, 1)[0]; m > 1 && v-v == 0 {
			t.Error("a row that is not finite gives", v)
		}
		full, after := make([]float64, m*columns), make([]float64, m*columns)
		for i := range full {
			full[i] = want[i] + float64(bias[i%columns]) + float64(plus[i])
			sizes[i] += math.Abs(float64(bias[i%columns])) + math.Abs(float64(plus[i]))
			after[i] = max(full[i], 0.25*full[i])
		}
		run(put(n, bias), put(n, plus), act{2, 0.25})
		check("with all", out, after)
		for i, v := range full {
			after[i] = v * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v))) / 2
		}
		run(put(n, bias), put(n, plus), act{kind: gelu})
		check("before a gelu", before, full)
		check("behind a gelu", out, after)
	})
}

// TestTensorProductsBack: and those with a matrix that lies along the sum, through gates.
func TestTensorProductsBack(t *testing.T) {
	n, src := onTensors(t), rand.New(rand.NewPCG(9, 2))
	eachTile(t, "times_back", [][3]int{{130, 68, 36}, {1, 4, 4}, {33, 132, 100}, {64, 32, 16}}, func(t *testing.T, one tile, m, columns, k int) {
		d, w, plus, at := scaled(src, m*k), scaled(src, k*columns), drawn(src, m*columns), drawn(src, m*columns)
		want, sizes := multiplied(m, columns, k, func(i, at int) float64 { return float64(d[i*k+at]) }, func(j, at int) float64 { return float64(w[j*k+at]) })
		if m > 1 {
			d[k-1] = float32(math.NaN())
		}
		dx := n.d.alloc(4 * m * columns)
		for _, c := range []struct {
			plus uintptr
			gate act
		}{{0, act{}}, {put(n, plus), act{2, 0.25}}, {put(n, plus), act{kind: gelu}}} {
			n.callShared(one.kernel("times_back"), along(one.blocks(m, columns), 1), one.threads, one.shared(true, true), put(n, d), put(n, w), c.plus, put(n, at), c.gate, dx, m, columns, k)
			exact, size := make([]float64, m*columns), make([]float64, m*columns)
			for i := range exact {
				exact[i], size[i] = want[i], sizes[i]
				if c.plus != 0 {
					exact[i], size[i] = exact[i]+float64(plus[i]), size[i]+math.Abs(float64(plus[i]))
				}
				x, slope := float64(at[i]), 1.0
				switch {
				case c.gate.kind == gelu:
					y := math.Tanh(math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x))
					slope = (1+y)/2 + x*(1-y*y)/2*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
				case c.gate.kind == 2 && x <= 0:
					slope = 0.25
				}
				exact[i] *= slope
			}
			first := 0
			if m > 1 {
				first = columns
			}
			if off := near(get(t, n, dx, m*columns)[first:], exact[first:], size[first:]); !(off <= 1) {
				t.Errorf("through %v: off by %.3g of what it may", c.gate, off)
			}
		}
	})
}

// ends are what products end with, of all kinds: what is added to them, and what goes into a gelu.
type ends struct{ bias, plus, at uintptr }

func endsFor(n *Network, src *rand.Rand, m, columns int) ends {
	return ends{put(n, drawn(src, columns)), put(n, drawn(src, m*columns)), put(n, drawn(src, m*columns))}
}

// product is one, forward (0) or back (1), without ends and then with them.
func (e ends) product(t *testing.T, n *Network, x uintptr, w matrix, m, columns, k, way int) (values []float32) {
	t.Helper()
	for _, some := range []ends{{}, e} {
		a := act{}
		if some.at != 0 {
			a = act{kind: gelu}
		}
		out, before := n.d.alloc(4*m*columns), n.d.alloc(4*m*columns)
		if way == 0 {
			n.product(x, w, some.bias, some.plus, before, out, m, columns, k, a)
		} else {
			n.productBack(x, w, some.plus, some.at, a, out, m, columns, k)
		}
		values = append(values, get(t, n, out, m*columns)...)
		if way == 0 && some.at != 0 {
			values = append(values, get(t, n, before, m*columns)...)
		}
	}
	return values
}

// TestWidesAgree: where there are no tensor cores, a row has the same bits by tiles of 64 and of 128.
func TestWidesAgree(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(9, 8))
	n.d.tensor, n.d.groups = false, false
	const m, columns, k = 140, 136, 100
	x, w, e := put(n, scaled(src, m*k)), matrix{at: put(n, scaled(src, k*columns))}, endsFor(n, src, m, columns)
	for way := range 2 {
		var first []float32
		for _, processors := range []int32{1, 1000} {
			n.d.processors = processors
			if name, _ := n.wide("times", tiles(m, 128)*tiles(columns, 128), columns, k); (name == "times_128") != (processors == 1) {
				t.Fatalf("%d processors have %s", processors, name)
			}
			if got := e.product(t, n, x, w, m, columns, k, way); first == nil {
				first = got
			} else if !same(got, first) {
				t.Errorf("way %d: other bits by small tiles", way)
			}
		}
	}
}

// TestTilesAgree: a row of a product has the same bits whatever tile computes it, and so however
// many rows there are: what an example has does not depend on others (docs/proofs/gpu-clip.md).
// Where groups of warps have a product, they have it of any number of rows (TestGroupBlocksAgree).
func TestTilesAgree(t *testing.T) {
	n, src := onTensors(t), rand.New(rand.NewPCG(9, 7))
	const m, columns, k = 70, 36, 100
	x, w, e := put(n, scaled(src, m*k)), matrix{at: put(n, scaled(src, k*columns))}, endsFor(n, src, m, columns)
	var first [2][]float32
	for i := range productTiles["times"] {
		for way, name := range []string{"times", "times_back"} {
			n.tiles = productTiles[name][i : i+1]
			got := e.product(t, n, x, w, m, columns, k, way)
			if first[way] == nil {
				first[way] = got
			}
			if !slices.Equal(got, first[way]) {
				t.Errorf("%s by %s has other bits than by %s", name, n.tiles[0].name(), productTiles[name][0].name())
			}
		}
	}
}

// TestTensorSums: weighted sums over rows on tensor cores are those of float32, of several layers
// in one or several parts, with the sums of one side or without; rows of weight 0 are left out,
// finite or not.
func TestTensorSums(t *testing.T) {
	n, src := onTensors(t), rand.New(rand.NewPCG(9, 3))
	for _, one := range append([]tile{groupTile}, productTiles["times_sum"]...) {
		for _, k := range []int{1, 16, 37, 300} {
			inTurn(t, fmt.Sprint(one.kernel("sum"), "/", k), func(t *testing.T) {
				n.tiles = []tile{one}
				shapes := [][2]int{{132, 68}, {4, 4}, {36, 132}, {64, 32}}
				if one.groups {
					n.tiles, shapes, k = nil, [][2]int{{128, 256}, {256, 128}, {128, 128}}, 4*k
					if n.d.processors = 4; !n.sumsByGroups(nil, k) {
						t.Skip("the device has no groups of warps")
					}
				}
				weights := drawn(src, k)
				for i := range weights {
					if i%3 == 1 {
						weights[i] = 0
					}
				}
				var all []summed
				var wants, sizes [][]float64
				for i, s := range shapes {
					m, columns, bias := s[0], s[1], (i+k)%2
					x, d := scaled(src, m*k), scaled(src, columns*k)
					want, size := multiplied(m+bias, columns, k, func(i, at int) float64 {
						if i == m {
							return 1
						}
						return float64(x[at*m+i])
					}, func(j, at int) float64 { return float64(weights[at] * d[at*columns+j]) }) // rounded, as it enters
					for i, w := range weights {
						if w == 0 {
							x[i*m], d[i*columns] = float32(math.Inf(1)), float32(math.NaN())
						}
					}
					for i := range want {
						want[i], size[i] = want[i]+3, size[i]+3 // which was there
					}
					all = append(all, summed{x: put(n, x), d: put(n, d), sum: put(n, slices.Repeat([]float32{3}, len(want))), m: int32(m), n: int32(columns), bias: int32(bias)})
					wants, sizes = append(wants, want), append(sizes, size)
				}
				room := 0
				for _, l := range all {
					room += l.values()
				}
				n.parts, n.parted.weights = n.d.alloc(4*tiles(k, 128)*room), put(n, weights)
				ran := false
				n.tensorSums(all, k, func() { ran = true })
				for i, l := range all {
					if off := near(get(t, n, l.sum, l.values()), wants[i], sizes[i]); !(off <= 1) || !ran {
						t.Errorf("layer %d: off by %.3g of what it may", i, off)
					}
				}
			})
		}
	}
}

// TestTensorSplit: sums are made in as many parts as fill an H200's processors.
func TestTensorSplit(t *testing.T) {
	for _, s := range [][2]int{{1, 396}, {2, 198}, {6, 66}, {32, 12}, {80, 19}, {396, 1}, {500, 3}, {2000, 1}} {
		if got := tensorSplit(s[0], 3*processors); got != s[1] {
			t.Errorf("%d blocks: %d parts, not %d", s[0], got, s[1])
		}
	}
}
