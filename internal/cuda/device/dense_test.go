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

// TestWeightedSums: the weighted sum of the gradients of a linear layer, with or without
// biases, is that of its examples, in as many parts as there are; those of weight 0 are left
// out, finite or not.
func TestWeightedSums(t *testing.T) {
	n, src := bare(t), rand.New(rand.NewPCG(8, 6))
	for _, s := range [][5]int{{70, 140, 32, 2, 1}, {1, 5, 10, 1, 1}, {33, 130, 70, 3, 1}, {47, 128, 20, 4, 1}, {1030, 3, 4, 2, 0}, {40, 127, 66, 1, 0}} {
		g, in, out, split, bias := s[0], s[1], s[2], s[3], s[4]
		x, d, weights := drawn(src, g*in), drawn(src, g*out), drawn(src, g)
		want := make([]float32, (in+bias)*out)
		for e, v := range weights {
			if e%3 == 1 {
				weights[e] = 0
				x[e*in], d[e*out] = float32(math.Inf(1)), float32(math.NaN())
				continue
			}
			for i := range in + bias {
				value := float32(1)
				if i < in {
					value = x[e*in+i]
				}
				for o := range out {
					want[i*out+o] += value * d[e*out+o] * v
				}
			}
		}
		sum := put(n, make([]float32, len(want)))
		n.parts = n.d.alloc(4 * split * len(want))
		n.denseSum(put(n, x), put(n, d), put(n, weights), sum, g, in, out, bias, split)
		got := get(t, n, sum, len(want))
		if d := off(got, want); !(d < 1e-6) {
			t.Errorf("%d examples, %d to %d: off by %.2g", g, in, out, d)
		}
		if d := off(got[in*out:], want[in*out:]); bias == 1 && !(d < 1e-6) {
			t.Errorf("%d examples, %d to %d: biases are off by %.2g", g, in, out, d)
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
