package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Network is what the attacked client trains.
type Network struct {
	Name   string
	Input  model.Shape
	Layers []model.Layer
	// Spread draws the parameters from U(-Spread, Spread); 0: as PyTorch does.
	Spread float64
	// Gain multiplies parameters that are drawn as PyTorch does; 0: 1.
	Gain float64
}

// grey is the shape of MNIST's and UNIPEN's pictures.
var grey = model.Shape{Height: 28, Width: 28, Channels: 1}

// LeNet is the network that deep leakage from gradients was shown on (Zhu, Liu
// and Han 2019, and their published code): three 5x5 convolutions of 12
// channels, two of them with stride 2, sigmoids, one linear layer, parameters
// from U(-0.5, 0.5).
func LeNet(classes int) Network {
	conv := func(stride int) model.Layer {
		return model.Layer{Kind: "conv", Channels: 12, Kernel: 5, Stride: stride, Padding: 2}
	}
	return Network{
		Name: "lenet", Input: grey, Spread: 0.5,
		Layers: []model.Layer{
			conv(2), {Kind: "sigmoid"}, conv(2), {Kind: "sigmoid"}, conv(1), {Kind: "sigmoid"},
			{Kind: "linear", Units: classes},
		},
	}
}

// Papers is the handwriting network of thesis 001, table 2.5, as its section 2.5.1
// changes it for the attack: sigmoids in place of ReLUs. The pool takes means,
// because a maximum is not twice differentiable either. The text does not say how
// parameters start; PyTorch's own way leaves sigmoids so flat that little of the
// picture reaches the gradient, so they are made larger: the attacker's best.
func Papers(classes int) Network {
	return Network{
		Name: "papers", Input: grey, Gain: 3,
		Layers: []model.Layer{
			{Kind: "conv", Channels: 32, Kernel: 3}, {Kind: "sigmoid"},
			{Kind: "conv", Channels: 64, Kernel: 3}, {Kind: "sigmoid"},
			{Kind: "mean-pool", Kernel: 2},
			{Kind: "linear", Units: 128}, {Kind: "sigmoid"},
			{Kind: "linear", Units: classes},
		},
	}
}

// DenseFirst begins with a linear layer, whose gradient holds the picture itself.
func DenseFirst(classes int) Network {
	return Network{
		Name: "dense", Input: grey,
		Layers: []model.Layer{{Kind: "linear", Units: 128}, {Kind: "sigmoid"}, {Kind: "linear", Units: classes}},
	}
}

// Untouched is the papers' network as clients train it: ReLUs, maxima, PyTorch's
// own start.
func Untouched(classes int) Network {
	n := Papers(classes)
	n.Name, n.Gain, n.Layers = "relu", 0, slices.Clone(n.Layers)
	for i, l := range n.Layers {
		switch l.Kind {
		case "sigmoid":
			n.Layers[i].Kind = "relu"
		case "mean-pool":
			n.Layers[i].Kind = "max-pool"
		}
	}
	return n
}

// NamedNetwork is one of the attack's networks.
func NamedNetwork(name string, classes int) (Network, error) {
	for _, build := range []func(int) Network{LeNet, Papers, Untouched, DenseFirst} {
		if n := build(classes); n.Name == name {
			return n, nil
		}
	}
	return Network{}, fmt.Errorf("network %q is not known to the attack; allowed: lenet, papers, relu, dense", name)
}

func (n Network) build() (*model.Network[float64], error) {
	net, err := model.Build[float64](n.Input, n.Layers)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return net, nil
}

// initialise draws parameters from the network's own distribution.
func (n Network) initialise(net *model.Network[float64], theta []float64, src rand.Source) {
	if n.Spread == 0 {
		net.Initialise(theta, src)
		if n.Gain != 0 {
			kernel.Scale(theta, n.Gain, theta)
		}
		return
	}
	for i := range theta {
		theta[i] = n.Spread * (2*rng.Float64(src) - 1)
	}
}

// prefix is the network up to its first linear layer.
func (n Network) prefix() (Network, error) {
	i := slices.IndexFunc(n.Layers, func(l model.Layer) bool { return l.Kind == "linear" })
	if i < 0 {
		return Network{}, fmt.Errorf("audit: the network has no linear layer to read an input from")
	}
	return Network{Name: n.Name + " up to its first linear layer", Input: n.Input, Layers: n.Layers[:i]}, nil
}
