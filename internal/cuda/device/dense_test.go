//go:build linux

package device

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
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
