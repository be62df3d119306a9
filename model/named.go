package model

import (
	"fmt"
	"maps"
	"slices"
)

// Named is a network that has a name.
type Named struct {
	Input  Shape
	Layers []Layer
}

// named are the papers' networks and a residual one. Output activations that the
// papers' tables print behind the last linear layer are left to the loss:
// docs/decisions/0004.
var named = map[string]Named{
	"hospital": { // paper 000, B.2
		Input:  Shape{1, 1, 3},
		Layers: []Layer{{Kind: "linear", Units: 2}, {Kind: "relu"}, {Kind: "linear", Units: 1}},
	},
	"mnist": { // paper 001, table 3.5, with padding 3 in the first convolution
		Input: Shape{28, 28, 1},
		Layers: []Layer{
			{Kind: "conv", Channels: 16, Kernel: 8, Padding: 3}, {Kind: "relu"},
			{Kind: "max-pool", Kernel: 2, Stride: 1},
			{Kind: "conv", Channels: 32, Kernel: 4}, {Kind: "relu"},
			{Kind: "linear", Units: 32}, {Kind: "relu"},
			{Kind: "linear", Units: 10},
		},
	},
	"autoencoder": { // paper 001, table 3.6
		Input: Shape{28, 28, 1},
		Layers: []Layer{
			{Kind: "conv", Channels: 8, Kernel: 3}, {Kind: "leaky-relu"},
			{Kind: "conv", Channels: 16, Kernel: 3}, {Kind: "leaky-relu"},
			{Kind: "conv", Channels: 32, Kernel: 3}, {Kind: "leaky-relu"},
			{Kind: "conv", Channels: 64, Kernel: 3}, {Kind: "leaky-relu"},
			{Kind: "transposed-conv", Channels: 32, Kernel: 3}, {Kind: "leaky-relu"},
			{Kind: "transposed-conv", Channels: 16, Kernel: 3}, {Kind: "leaky-relu"},
			{Kind: "transposed-conv", Channels: 8, Kernel: 3}, {Kind: "leaky-relu"},
			{Kind: "transposed-conv", Channels: 1, Kernel: 3}, {Kind: "sigmoid"},
		},
	},
	"agnews": { // paper 001, table 3.7, for 15 words of 50
		Input: Shape{1, 1, 750},
		Layers: []Layer{
			{Kind: "linear", Units: 128}, {Kind: "leaky-relu"},
			{Kind: "linear", Units: 128}, {Kind: "leaky-relu"},
			{Kind: "linear", Units: 4},
		},
	},
	"femnist": { // paper 000, table 3, with 3x3 kernels
		Input: Shape{28, 28, 1},
		Layers: []Layer{
			{Kind: "conv", Channels: 32, Kernel: 3}, {Kind: "relu"},
			{Kind: "conv", Channels: 64, Kernel: 3}, {Kind: "relu"},
			{Kind: "max-pool", Kernel: 2},
			{Kind: "linear", Units: 128}, {Kind: "relu"},
			{Kind: "linear", Units: 62},
		},
	},
	// Paper 002, appendix B.1.
	"cross-silo-cifar": {Input: Shape{32, 32, 3}, Layers: crossSilo(3, 10)},
	"cross-silo-mnist": {Input: Shape{28, 28, 1}, Layers: crossSilo(3, 10)},
	"cross-silo-adni":  {Input: Shape{32, 32, 1}, Layers: crossSilo(5, 1)},
	// Of no paper of this project's: He et al. 2016, "Deep residual learning", section 4.2
	// with n = 1, with group norms in place of batch norms, which would mix examples.
	"resnet8": {Input: Shape{32, 32, 3}, Layers: slices.Concat(
		[]Layer{{Kind: "conv", Channels: 16, Kernel: 3, Padding: 1, NoBias: true}, {Kind: "group-norm", Groups: residualGroups}, {Kind: "relu"}},
		residualBlock(16, 1), residualBlock(32, 2), residualBlock(64, 2),
		[]Layer{{Kind: "mean-pool"}, {Kind: "linear", Units: 10}},
	)},
}

// residualGroups is how many groups of channels the group norms of a residual network
// have.
const residualGroups = 8

// residualBlock is two convolutions, added to what they start from; if they have a
// stride, a convolution of single pixels makes its shape theirs.
func residualBlock(channels, stride int) []Layer {
	block := Layer{Kind: "residual", Inner: []Layer{
		{Kind: "conv", Channels: channels, Kernel: 3, Stride: stride, Padding: 1, NoBias: true}, {Kind: "group-norm", Groups: residualGroups}, {Kind: "relu"},
		{Kind: "conv", Channels: channels, Kernel: 3, Padding: 1, NoBias: true}, {Kind: "group-norm", Groups: residualGroups},
	}}
	if stride > 1 {
		block.Shortcut = []Layer{{Kind: "conv", Channels: channels, Kernel: 1, Stride: stride, NoBias: true}, {Kind: "group-norm", Groups: residualGroups}}
	}
	return []Layer{block, {Kind: "relu"}}
}

func crossSilo(kernel, outputs int) []Layer {
	return []Layer{
		{Kind: "conv", Channels: 32, Kernel: kernel}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2},
		{Kind: "conv", Channels: 64, Kernel: kernel}, {Kind: "relu"}, {Kind: "max-pool", Kernel: 2},
		{Kind: "linear", Units: outputs},
	}
}

// NamedNetwork is a network by its name.
func NamedNetwork(name string) (Named, error) {
	n, ok := named[name]
	if !ok {
		return Named{}, fmt.Errorf("network %q is not known; allowed: %v", name, slices.Sorted(maps.Keys(named)))
	}
	return n, nil
}

// LinearLayers is linear and logistic regression and the linear SVM: one linear
// layer; the loss makes the difference.
func LinearLayers(outputs int, bias bool) []Layer {
	return []Layer{{Kind: "linear", Units: outputs, NoBias: !bias}}
}
