package model

import (
	"fmt"
	"math/rand/v2"
)

// Network is a chain of layers on a flat parameter vector.
type Network[F Float] struct{ chain *chain[F] }

// Build makes a network of layers for examples of a shape.
func Build[F Float](input Shape, layers []Layer) (*Network[F], error) {
	if input.Height < 1 || input.Width < 1 || input.Channels < 1 || input.Len() > maxValues {
		return nil, fmt.Errorf("network: an input of %v cannot be", input)
	}
	c, err := build[F](input, layers)
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return &Network[F]{c}, nil
}

// Parameters is the length of the parameter vector.
func (n *Network[F]) Parameters() int { return n.chain.parameters() }

// Input and Output are the shapes at both ends.
func (n *Network[F]) Input() Shape { return n.chain.input }

// Output is the shape at the end.
func (n *Network[F]) Output() Shape { return n.chain.output() }

// Views names the parts of the parameter vector.
func (n *Network[F]) Views() []View { return n.chain.views() }

// Initialise draws parameters as PyTorch does by default.
func (n *Network[F]) Initialise(theta []F, src rand.Source) { n.chain.initialise(theta, src) }
