package model

import (
	"testing"

	"github.com/coterie-fl/coterie/internal/pool"
)

func TestBuildRefuses(t *testing.T) {
	in := Shape{4, 4, 1}
	for name, l := range map[string]Layer{
		"unknown":           {Kind: "attention"},
		"no units":          {Kind: "linear"},
		"no channels":       {Kind: "conv", Kernel: 3},
		"kernel too large":  {Kind: "conv", Channels: 1, Kernel: 5},
		"padding too large": {Kind: "conv", Channels: 1, Kernel: 2, Padding: 2},
		"negative":          {Kind: "conv", Channels: -1, Kernel: 2},
		"huge":              {Kind: "linear", Units: 1 << 30},
		"too many":          {Kind: "conv", Channels: 1 << 24, Kernel: 1},
		"window too large":  {Kind: "max-pool", Kernel: 5},
		"slope":             {Kind: "leaky-relu", Slope: -1},
		"residual":          {Kind: "residual", Inner: []Layer{{Kind: "linear", Units: 3}}},
		"inner":             {Kind: "residual", Inner: []Layer{{Kind: "x"}}},
		"shortcut":          {Kind: "residual", Inner: []Layer{{Kind: "linear", Units: 3}}, Shortcut: []Layer{{Kind: "linear", Units: 2}}},
		"in a shortcut":     {Kind: "residual", Inner: []Layer{{Kind: "linear", Units: 3}}, Shortcut: []Layer{{Kind: "x"}}},
		"max of all":        {Kind: "max-pool"},
		"stride of all":     {Kind: "mean-pool", Stride: 2},
		"groups":            {Kind: "group-norm", Groups: 2},
		"one channel":       {Kind: "layer-norm"},
		"no vocabulary":     {Kind: "embedding", Units: 2},
		"no values":         {Kind: "embedding", Vocabulary: 2},
		"huge vocabulary":   {Kind: "embedding", Vocabulary: 1 << 24, Units: 1 << 24},
	} {
		if _, err := Build[float32](in, []Layer{l}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	words := Layer{Kind: "embedding", Vocabulary: 2, Units: 1}
	for name, layers := range map[string][]Layer{
		"words of values":  {{Kind: "relu"}, words},
		"within, too late": {{Kind: "relu"}, {Kind: "residual", Inner: []Layer{words}, Shortcut: []Layer{words}}},
		"within, second":   {{Kind: "residual", Inner: []Layer{words}, Shortcut: []Layer{{Kind: "relu"}, words}}},
		"one value each":   {{Kind: "linear", Units: 4}, {Kind: "group-norm"}},
	} {
		if _, err := Build[float32](in, layers); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := Build[float32](Shape{}, nil); err == nil {
		t.Error("an empty input was accepted")
	}
	for name, outputs := range map[string]int{"cross-entropy": 1, "hinge": 2, "binary-cross-entropy": 3} {
		o, err := NewObjective[float32](name)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := Build[float32](in, LinearLayers(outputs, true))
		if _, err := NewEngine(n, o, pool.New(1)); err == nil {
			t.Errorf("%s took %d outputs", name, outputs)
		}
	}
}
