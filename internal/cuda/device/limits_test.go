//go:build linux

package device

import (
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/model"
)

// TestWiderThanAGrid: linear layers for whose outputs, or inputs on the way back, a launch has not enough
// blocks are refused when the network is made, with the number that is allowed.
func TestWiderThanAGrid(t *testing.T) {
	n := bare(t)
	for _, c := range []struct {
		from, in, out int
		whole         bool
		want          string
	}{
		{0, 1, 4_194_241, false, "has 4194241 outputs; allowed are 4194240"},
		{0, 1, 2_097_121, true, "has 2097121 outputs; allowed are 2097120"},
		{1, 4_194_241, 1, false, "has 4194241 inputs; allowed are 4194240"},
		{0, 4_194_241, 1, false, ""},
		{0, 1, 4_194_240, false, ""},
	} {
		l := model.PlannedLayer{Name: "layer 3 (linear)", Kind: "linear", From: c.from, In: model.Shape{Height: 1, Width: 1, Channels: c.in}, Out: model.Shape{Height: 1, Width: 1, Channels: c.out}}
		made := &Network{d: n.d, chunk: 1, plan: model.Plan{Input: l.In, Layers: []model.PlannedLayer{l}, Loss: "cross-entropy", Classes: c.out, Parameters: c.in * c.out, Chunk: 1, Whole: c.whole}}
		err := made.prepare()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "layer 3 (linear): it "+c.want)) {
			t.Errorf("%d to %d: %v", c.in, c.out, err)
		}
	}
}

// TestGridsThatAreTooLarge: a launch of more blocks than a grid has across is an error, so that the
// limits above are a device's.
func TestGridsThatAreTooLarge(t *testing.T) {
	n := bare(t)
	x := put(n, make([]float32, 4))
	for _, blocks := range []int{mostAcross, mostAcross + 1} {
		n.call("activate", [3]int{1, blocks, 1}, 32, x, 4, act{})
		if err := n.d.wait(); (err == nil) != (blocks == mostAcross) {
			t.Errorf("%d blocks: %v", blocks, err)
		}
	}
}
