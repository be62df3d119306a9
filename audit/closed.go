package audit

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/coterie-fl/coterie/model"
)

// ClosedForm reads the input of the first linear layer off its gradient. Where
// that layer is the network's first one, its input is the picture. Behind
// convolutions it is their output; the picture is then the one whose features come
// nearest, found by least squares with a prior: values from 0 to 1, few edges.
type ClosedForm struct {
	Evaluations int // of the least squares
	Loss        string
}

// Attack recovers the example behind an update.
func (c ClosedForm) Attack(ctx context.Context, n Network, u Update) (Recovered, error) {
	net, err := n.build()
	if err != nil {
		return Recovered{}, err
	}
	gradient, err := u.Gradient()
	if err != nil {
		return Recovered{}, err
	}
	if len(gradient) != net.Parameters() {
		return Recovered{}, fmt.Errorf("audit: an update of %d parameters for a network of %d", len(gradient), net.Parameters())
	}
	prefix, err := n.prefix()
	if err != nil {
		return Recovered{}, err
	}
	before, err := prefix.build()
	if err != nil {
		return Recovered{}, err
	}
	layers := denseLayers(net.Views())
	// Residual layers may hold linear ones, too: the one sought lies right behind
	// the prefix.
	first := slices.IndexFunc(layers, func(l denseLayer) bool { return l.offset == before.Parameters() })
	input, err := layers[first].recover(gradient)
	if err != nil {
		return Recovered{}, err
	}
	out := Recovered{Label: -1, Picture: input.input, Features: input.input, Scaled: input.scaled}
	if c.Loss == "cross-entropy" {
		last, err := layers[len(layers)-1].recover(gradient)
		if err != nil {
			return Recovered{}, err
		}
		// iDLG's label (Zhao, Mopuri and Bilen 2020): behind a softmax the output gradient
		// p - y is negative at the true class alone.
		out.Label = floats.MinIdx(last.delta)
	}
	if slices.ContainsFunc(prefix.Layers, func(l model.Layer) bool { return l.Kind != "flatten" }) {
		out.Picture, out.Evaluations, err = unroll(ctx, prefix, u.Before, input, c.Evaluations)
		if err != nil {
			return Recovered{}, err
		}
	}
	return out, nil
}

// Features is the input of the network's first linear layer for a picture: what
// the closed form recovers.
func Features(n Network, theta, x []float64) ([]float64, error) {
	prefix, err := n.prefix()
	if err != nil {
		return nil, err
	}
	engine, net, err := squaredEngine(prefix)
	if err != nil {
		return nil, err
	}
	if len(theta) < net.Parameters() || len(x) != n.Input.Len() {
		return nil, fmt.Errorf("audit: %d parameters and a picture of %d values do not fit the network", len(theta), len(x))
	}
	out := make([]float64, net.Output().Len())
	err = engine.Outputs(out, theta[:net.Parameters()], model.Examples[float64]{X: x}, one)
	return out, err
}

// squaredEngine is a network under the squared error.
func squaredEngine(n Network) (*model.Engine[float64], *model.Network[float64], error) {
	net, err := n.build()
	if err != nil {
		return nil, nil, err
	}
	objective, err := model.NewObjective[float64]("squared-error")
	if err != nil {
		return nil, nil, fmt.Errorf("audit: %w", err)
	}
	engine, err := model.NewEngine(net, objective, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("audit: %w", err)
	}
	return engine, net, nil
}
