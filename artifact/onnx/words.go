package onnx

import (
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/model"
)

// apart lays a flat value out as [N, places, channels].
func (g *graph) apart(v value) string {
	return g.node("Reshape", []string{v.name, g.integers("shape", 0, v.shape.Height*v.shape.Width, v.shape.Channels)})
}

// together makes a flat value of one whose places lie apart.
func (g *graph) together(name string, shape model.Shape) value {
	return value{name: g.node("Reshape", []string{name, g.integers("shape", 0, shape.Len())}), shape: shape}
}

// writePlaces is a linear layer on every place by itself.
func writePlaces(g *graph, in value, s config.Layer) (value, error) {
	in = g.flat(in)
	c := in.shape.Channels
	weights, err := g.take(c * s.Units)
	if err != nil {
		return in, err
	}
	name := g.node("MatMul", []string{g.apart(in), g.floats("weight", []int{c, s.Units}, single(weights)...)})
	inputs, err := g.bias([]string{name}, s, s.Units)
	if err != nil {
		return in, err
	}
	if len(inputs) > 1 {
		name = g.node("Add", inputs)
	}
	return g.together(name, model.Shape{Height: in.shape.Height, Width: in.shape.Width, Channels: s.Units}), nil
}

// writePositions adds every place's vector.
func writePositions(g *graph, in value, _ config.Layer) (value, error) {
	in = g.flat(in)
	n := in.shape.Len()
	vectors, err := g.take(n)
	if err != nil {
		return in, err
	}
	in.name = g.node("Add", []string{in.name, g.floats("weight", []int{1, n}, single(vectors)...)})
	return in, nil
}

// writeGelu: operator set 19 has none, so its form with tanh is written out:
// x/2 + x/2*tanh(x*(a + b*x*x)).
func writeGelu(g *graph, in value, _ config.Layer) (value, error) {
	scale := math.Sqrt(2 / math.Pi)
	x := in.name
	square := g.node("Mul", []string{x, x})
	slope := g.node("Add", []string{g.node("Mul", []string{square, g.scalar(scale * 0.044715)}), g.scalar(scale)})
	bent := g.node("Tanh", []string{g.node("Mul", []string{x, slope})})
	half := g.node("Mul", []string{x, g.scalar(0.5)})
	in.name = g.node("Add", []string{half, g.node("Mul", []string{half, bent})})
	return in, nil
}

// unseen is added to the scores of places that lie ahead: its exponential is 0.
const unseen = -1e30

// writeAttention: a place's channels are questions, keys and values, each head by head.
// They are laid out as [3, N, heads, places, width].
func writeAttention(g *graph, in value, s config.Layer) (value, error) {
	in = g.flat(in)
	places, out := in.shape.Height*in.shape.Width, in.shape.Channels/3
	width := out / s.Heads
	parts := g.node("Reshape", []string{in.name, g.integers("shape", 0, places, 3, s.Heads, width)})
	parts = g.node("Transpose", []string{parts}, integersAttribute("perm", 2, 0, 3, 1, 4))
	part := func(i int) string {
		one := g.node("Gather", []string{parts, g.integers("part", i)})
		return g.node("Squeeze", []string{one, g.integers("axes", 0)})
	}
	questions, keys, values := part(0), part(1), part(2)
	turned := g.node("Transpose", []string{keys}, integersAttribute("perm", 0, 1, 3, 2))
	scores := g.node("MatMul", []string{questions, turned})
	scores = g.node("Mul", []string{scores, g.scalar(1 / math.Sqrt(float64(width)))})
	ahead := make([]float32, places*places)
	for t := range places {
		for later := t + 1; later < places; later++ {
			ahead[t*places+later] = unseen
		}
	}
	scores = g.node("Add", []string{scores, g.floats("ahead", []int{places, places}, ahead...)})
	weights := g.node("Softmax", []string{scores}, integerAttribute("axis", 3))
	seen := g.node("MatMul", []string{weights, values})
	seen = g.node("Transpose", []string{seen}, integersAttribute("perm", 0, 2, 1, 3))
	return g.together(seen, model.Shape{Height: in.shape.Height, Width: in.shape.Width, Channels: out}), nil
}

// writeWords: words pick vectors, and what the inner layers make of a place is compared
// with all words' vectors.
func writeWords(g *graph, in value, s config.Layer) (value, error) {
	in = g.flat(in)
	places := in.shape.Len()
	vectors, err := g.take(s.Vocabulary * s.Units)
	if err != nil {
		return in, err
	}
	table := g.floats("weight", []int{s.Vocabulary, s.Units}, single(vectors)...)
	numbers := g.node("Cast", []string{in.name}, integerAttribute("to", integers))
	first := g.together(g.node("Gather", []string{table, numbers}), model.Shape{Height: places, Width: 1, Channels: s.Units})
	inner, err := g.layers(first, s.Inner)
	if err != nil {
		return in, err
	}
	turned := g.node("Transpose", []string{table}, integersAttribute("perm", 1, 0))
	scores := g.node("MatMul", []string{g.apart(g.flat(inner)), turned})
	return g.together(scores, model.Shape{Height: places, Width: 1, Channels: s.Vocabulary}), nil
}
