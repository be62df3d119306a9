package model

import (
	"testing"

	"github.com/coterie-fl/coterie/internal/pool"
)

// A convolution does not compute what the pool behind it drops: the pool's output
// must be that of the whole convolution.
func TestConvolutionsLeaveOutWhatAPoolDrops(t *testing.T) {
	const side, channels = 7, 3 // 5 by 5 after the convolution, of which the pool reads 4 by 4
	input := Shape{side, side, 2}
	layers := []Layer{{Kind: "conv", Channels: channels, Kernel: 3}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2}}
	whole, err := Build[float32](input, layers[:2])
	if err != nil {
		t.Fatal(err)
	}
	pooled, err := Build[float32](input, layers)
	if err != nil {
		t.Fatal(err)
	}
	if got := pooled.chain.layers[0].output(); got != (Shape{4, 4, channels}) || pooled.Output() != (Shape{2, 2, channels}) || whole.Output() != (Shape{5, 5, channels}) {
		t.Fatalf("the convolution gives %v, the pool %v, the convolution alone %v", got, pooled.Output(), whole.Output())
	}
	theta := normals[float32]("theta", whole.Parameters(), 0.3)
	ex := Examples[float32]{X: normals[float32]("x", input.Len(), 1)}
	outputs := func(n *Network[float32]) []float32 {
		e, err := NewEngine(n, Objective[float32](squaredError[float32]{}), pool.New(1))
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float32, n.Output().Len())
		if err := e.Outputs(out, theta, ex, []int{0}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	all, few := outputs(whole), outputs(pooled)
	for y := range 2 {
		for x := range 2 {
			for c := range channels {
				at := func(dy, dx int) float32 { return all[((2*y+dy)*5+2*x+dx)*channels+c] }
				if got, want := few[(y*2+x)*channels+c], max(at(0, 0), at(0, 1), at(1, 0), at(1, 1)); got != want {
					t.Errorf("(%d, %d), channel %d: %v, want %v", y, x, c, got, want)
				}
			}
		}
	}
	// Overlapping windows, padding and other layers leave nothing out.
	for _, behind := range [][]Layer{{{Kind: "max-pool", Kernel: 2, Stride: 1}}, {{Kind: "max-pool", Kernel: 2, Padding: 1}}, {{Kind: "tanh"}, {Kind: "max-pool", Kernel: 2}}, {{Kind: "linear", Units: 1}}} {
		n, err := Build[float32](input, append([]Layer{layers[0]}, behind...))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.chain.layers[0].output(); got != (Shape{5, 5, channels}) {
			t.Errorf("before %v the convolution gives %v", behind, got)
		}
	}
}
