package model

import (
	"cmp"
	"fmt"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "relu", single: buildRelu[float32], double: buildRelu[float64]})
	registerLayer(layerKind{name: "leaky-relu", keys: []string{"slope"}, single: buildLeakyRelu[float32], double: buildLeakyRelu[float64]})
	registerLayer(layerKind{name: "sigmoid", single: buildSigmoid[float32], double: buildSigmoid[float64]})
	registerLayer(layerKind{name: "tanh", single: buildTanh[float32], double: buildTanh[float64]})
}

// activation works element by element, in place where it may; its derivative
// follows from its output.
type activation[F Float] struct {
	bare[F]
	kind  string
	slope float64 // of a leaky ReLU
	apply func(x []F)
	back  func(d, y []F) // d *= f', from the output y
}

func (a *activation[F]) inPlace() bool     { return true }
func (a *activation[F]) needsOutput() bool { return true }
func (a *activation[F]) cell(int) cell[F]  { return a }

func (a *activation[F]) forward(_, in, out []F, _ int) {
	if len(out) > 0 && &in[0] != &out[0] {
		copy(out, in)
	}
	a.apply(out)
}

func (a *activation[F]) backward(p pass[F]) {
	if p.dIn == nil {
		return
	}
	n := len(p.dIn)
	if n > 0 && &p.dIn[0] != &p.dOut[0] {
		copy(p.dIn, p.dOut[:n])
	}
	a.back(p.dIn, p.out[:n])
}

func buildRelu[F Float](s Shape, _ Layer, _ []Layer) (layer[F], Shape, error) {
	return &activation[F]{bare[F]{s}, "relu", 0, func(x []F) { kernel.Relu(x, x) }, func(d, y []F) { kernel.ReluGrad(d, y, d) }}, s, nil
}

// buildLeakyRelu is the identity above 0 and a slope below, which must be positive, so
// that the sign of the output tells the sign of the input.
func buildLeakyRelu[F Float](s Shape, l Layer, _ []Layer) (layer[F], Shape, error) {
	slope := F(cmp.Or(l.Slope, 0.01))
	if !(slope > 0 && slope < 1) {
		return nil, s, fmt.Errorf("slope %v; allowed: between 0 and 1", l.Slope)
	}
	return &activation[F]{bare[F]{s}, "leaky-relu", float64(slope),
		func(x []F) { kernel.LeakyRelu(x, slope, x) },
		func(d, y []F) { kernel.LeakyReluGrad(d, slope, y, d) },
	}, s, nil
}

func buildSigmoid[F Float](s Shape, _ Layer, _ []Layer) (layer[F], Shape, error) {
	return &activation[F]{bare[F]{s}, "sigmoid", 0, func(x []F) { kernel.Sigmoid(x, x) }, func(d, y []F) { kernel.SigmoidGrad(d, y, d) }}, s, nil
}

func buildTanh[F Float](s Shape, _ Layer, _ []Layer) (layer[F], Shape, error) {
	return &activation[F]{bare[F]{s}, "tanh", 0, func(x []F) { kernel.Tanh(x, x) }, func(d, y []F) { kernel.TanhGrad(d, y, d) }}, s, nil
}
