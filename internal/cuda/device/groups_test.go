//go:build linux

package device

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// onGroups is a bare network of a device that has groups of warps, and as many processors as make
// a block take several turns.
func onGroups(t testing.TB) *Network {
	t.Helper()
	n := bare(t)
	if !n.d.groups {
		t.Skip("the device has no groups of warps")
	}
	n.d.processors = 2
	return n
}

// laidFor is a matrix, [k][n] or, back, [n][k], laid for groups of warps; 0: they have no kernel.
// It makes the device one of few processors, so that they suit.
func laidFor(n *Network, from uintptr, columns, k, back int) uintptr {
	if !n.d.groups || columns%laidColumns != 0 || k%groupK != 0 {
		return 0
	}
	n.d.processors = 2
	m := groupMatrix{from: from, n: int32(columns), k: int32(k), turned: int32(back)}
	m.to = n.d.alloc(m.bytes())
	list := groupMatrices{count: 1}
	list.of[0] = m
	n.call("group_lay", along(m.units(), 1), 256, list)
	return m.to
}

// TestGroupProducts: products by groups of warps are those of float32, of any number of rows, in
// one turn or several, of a matrix that stays or one that is brought again, with all that is
// added, or nothing; a row that is not finite spoils no other.
func TestGroupProducts(t *testing.T) {
	n, src := onGroups(t), rand.New(rand.NewPCG(9, 8))
	for _, s := range [][3]int{{130, 128, 64}, {257, 256, 128}, {300, 128, 320}, {513, 128, 192}, {70, 192, 128}, {3, 64, 192}, {5, 64, 64}} { // the last three by small blocks
		inTurn(t, fmt.Sprint(s), func(t *testing.T) {
			m, columns, k := s[0], s[1], s[2]
			x, w, bias, plus, at := scaled(src, m*k), scaled(src, k*columns), drawn(src, columns), drawn(src, m*columns), drawn(src, m*columns)
			if m == 5 { // values far below float16's
				for i := range w {
					w[i] *= 0x1p-40
				}
				for i := range x {
					x[i] *= 0x1p-45
				}
				clear(bias)
				clear(plus)
			}
			want, sizes := multiplied(m, columns, k, func(i, at int) float64 { return float64(x[i*k+at]) }, func(j, at int) float64 { return float64(w[at*columns+j]) })
			x[0] = float32(math.Inf(1))
			there, before, out := put(n, x), n.d.alloc(4*m*columns), n.d.alloc(4*m*columns)
			forward, back := matrix{laid: laidFor(n, put(n, w), columns, k, 0)}, matrix{laid: laidFor(n, put(n, turned(w, k, columns)), columns, k, 1)}
			full, gates := make([]float64, m*columns), make([]float64, m*columns)
			for i, v := range want {
				full[i] = v + float64(bias[i%columns]) + float64(plus[i])
				x := float64(at[i])
				y := math.Tanh(math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x))
				gates[i] = (want[i] + float64(plus[i])) * ((1+y)/2 + x*(1-y*y)/2*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x))
				sizes[i] += math.Abs(float64(bias[i%columns])) + math.Abs(float64(plus[i]))
			}
			check := func(what string, at uintptr, exact []float64) {
				t.Helper()
				got := get(t, n, at, m*columns)
				if d := near(got[columns:], exact[columns:], sizes[columns:]); !(d <= 1) {
					t.Errorf("%s: off by %.3g of what it may", what, d)
				}
				if v := got[0]; v-v == 0 {
					t.Errorf("%s: a row that is not finite gives %v", what, v)
				}
			}
			n.product(there, forward, 0, 0, 0, out, m, columns, k, act{})
			check("alone", out, want)
			n.product(there, forward, put(n, bias), put(n, plus), before, out, m, columns, k, act{kind: gelu})
			check("before a gelu", before, full)
			n.productBack(there, back, 0, 0, act{}, out, m, columns, k)
			check("back", out, want)
			n.productBack(there, back, put(n, plus), put(n, at), act{kind: gelu}, out, m, columns, k)
			check("back, through a gelu", out, gates)
			for i, v := range full {
				full[i] = max(v, 0.25*v)
			}
			n.product(there, forward, put(n, bias), put(n, plus), 0, out, m, columns, k, act{2, 0.25})
			check("with all", out, full)
		})
	}
}

// TestGroupMatrices: groups of warps have what they have kernels for, both ways: sizes that they
// cut, at places from which four values are read.
func TestGroupMatrices(t *testing.T) {
	n := onGroups(t)
	for _, c := range []struct {
		kind                        string
		in, out, words, start, from int
		want                        [2]bool
	}{
		{"places", 128, 384, 0, 0, 3, [2]bool{true, true}},
		{"places", 64, 128, 0, 8, 1, [2]bool{true, true}},
		{"places", 128, 32, 0, 8, 1, [2]bool{false, false}}, // forward there are 32 columns, and back as many of k
		{"places", 128, 128, 0, 6, 1, [2]bool{}},
		{"places", 128, 128, 0, 4, 0, [2]bool{true, false}},
		{"places", 96, 128, 0, 4, 1, [2]bool{}},
		{"scores", 128, 2048, 2048, 0, 9, [2]bool{true, true}},
		{"scores", 128, 100, 100, 0, 9, [2]bool{}},
		{"attention", 384, 128, 0, 0, 1, [2]bool{}},
	} {
		l := &layer{}
		l.Kind, l.In.Channels, l.Out.Channels, l.Words, l.Start, l.From = c.kind, c.in, c.out, c.words, c.start, c.from
		for way, want := range c.want {
			if _, ok := n.groupMatrixOf(l, way); ok != want {
				t.Errorf("%+v, way %d: %t", c, way, ok)
			}
		}
	}
}

// turned is a matrix of so many lines, [line][column], the other way round.
func turned(w []float32, lines, columns int) []float32 {
	to := make([]float32, len(w))
	for i, v := range w {
		to[i%columns*lines+i/columns] = v
	}
	return to
}

// TestTensorCoresRound: what the clip's proof takes for granted of tensor cores
// (docs/proofs/gpu-clip.md): products of rows are off by at most (146 + K/32) units of the rows'
// lengths. Rows are such that sums nearly cancel, or have one large term, or many of one sign.
func TestTensorCoresRound(t *testing.T) {
	n, src := onGroups(t), rand.New(rand.NewPCG(9, 9))
	const rows, columns, k = 256, 128, 1024
	for _, kind := range []string{"drawn", "positive", "one large", "cancelling", "many sizes"} {
		x, w := drawn(src, rows*k), drawn(src, k*columns)
		each := func(v []float32, change func(at int, v float32) float32, of func(i int) int) {
			for i := range v {
				v[i] = change(of(i), v[i])
			}
		}
		change := map[string]func(at int, v float32) float32{
			"drawn":    func(_ int, v float32) float32 { return v },
			"positive": func(_ int, v float32) float32 { return 1 + v*v },
			"one large": func(at int, v float32) float32 {
				if at%16 == 3 {
					return 4096 * v
				}
				return v
			},
			"cancelling": func(at int, v float32) float32 {
				return float32(1-at%2*2) * (1 + v/65536)
			},
			"many sizes": func(at int, v float32) float32 { return float32(math.Ldexp(float64(v), at%24-12)) },
		}[kind]
		each(x, change, func(i int) int { return i % k })
		positive := change
		if kind == "cancelling" { // of one side alone, so that sums are near zero
			positive = func(_ int, v float32) float32 { return 1 + v/65536 }
		}
		each(w, positive, func(i int) int { return i / columns })
		out := n.d.alloc(4 * rows * columns)
		n.product(put(n, x), matrix{laid: laidFor(n, put(n, w), columns, k, 0)}, 0, 0, 0, out, rows, columns, k, act{})
		got, worst := get(t, n, out, rows*columns), 0.0
		for i := range rows {
			for j := range columns {
				sum, left, right := 0.0, 0.0, 0.0
				for at := range k {
					a, b := float64(x[i*k+at]), float64(w[at*columns+j])
					sum, left, right = sum+a*b, left+a*a, right+b*b
				}
				worst = max(worst, math.Abs(float64(got[i*columns+j])-sum)/math.Sqrt(left*right)*0x1p24)
			}
		}
		t.Logf("%s: off by %.2f units of %d", kind, worst, 146+k/32)
		if !(worst <= 146+k/32) {
			t.Errorf("%s: off by %.1f units", kind, worst)
		}
	}
}

// TestGroupBlocksAgree: a row of a product has the same bits by large blocks and by small ones, and
// so however many rows there are: what an example has does not depend on others
// (docs/proofs/gpu-clip.md).
func TestGroupBlocksAgree(t *testing.T) {
	n, src := onGroups(t), rand.New(rand.NewPCG(9, 10))
	for _, s := range [][3]int{{150, 128, 192}, {300, 256, 64}} {
		m, columns, k := s[0], s[1], s[2]
		x, w, e := put(n, scaled(src, m*k)), put(n, scaled(src, k*columns)), endsFor(n, src, m, columns)
		for back := range 2 {
			laid := matrix{laid: laidFor(n, w, columns, k, back)}
			var first []float32
			for i, processors := range []int32{1, 1000} {
				n.d.processors = processors
				if b, _, ok := n.groupsFor(laid, m, columns); !ok || b != groupBlocks[i] {
					t.Fatalf("%d rows on %d processors by %+v", m, processors, b)
				}
				if got := e.product(t, n, x, laid, m, columns, k, back); i == 0 {
					first = got
				} else if !slices.Equal(got, first) {
					t.Errorf("%v, way %d: small blocks have other bits than large ones", s, back)
				}
			}
		}
	}
}
