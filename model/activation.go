package model

import "github.com/coterie-fl/coterie/internal/kernel"

// activation works element by element, in place where it may; its derivative
// follows from its output.
type activation[F Float] struct {
	bare[F]
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

func relu[F Float](s Shape) *activation[F] {
	return &activation[F]{bare[F]{s}, func(x []F) { kernel.Relu(x, x) }, func(d, y []F) { kernel.ReluGrad(d, y, d) }}
}

// leakyRelu's slope must be positive: the sign of the output then tells the sign
// of the input.
func leakyRelu[F Float](s Shape, slope F) *activation[F] {
	return &activation[F]{bare[F]{s},
		func(x []F) { kernel.LeakyRelu(x, slope, x) },
		func(d, y []F) { kernel.LeakyReluGrad(d, slope, y, d) },
	}
}

func sigmoid[F Float](s Shape) *activation[F] {
	return &activation[F]{bare[F]{s}, func(x []F) { kernel.Sigmoid(x, x) }, func(d, y []F) { kernel.SigmoidGrad(d, y, d) }}
}

func tanh[F Float](s Shape) *activation[F] {
	return &activation[F]{bare[F]{s}, func(x []F) { kernel.Tanh(x, x) }, func(d, y []F) { kernel.TanhGrad(d, y, d) }}
}
