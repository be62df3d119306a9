package onnx

import (
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/model"
)

// normEpsilon is what package model adds to variances.
const normEpsilon = 1e-5

// writeGroupNorm: ONNX has an operation of this name, but its factors were of groups
// before operator set 21. Each group is made a channel, whose instance is normalised;
// factors and constants come after.
func writeGroupNorm(g *graph, in value, s config.Layer) (value, error) {
	in = g.asPlanes(in)
	c, height, width := in.shape.Channels, in.shape.Height, in.shape.Width
	groups := model.GroupsOf(s, c)
	factors, err := g.take(c)
	if err != nil {
		return in, err
	}
	constants, err := g.take(c)
	if err != nil {
		return in, err
	}
	ones := make([]float32, groups)
	for i := range ones {
		ones[i] = 1
	}
	grouped := g.node("Reshape", []string{in.name, g.integers("shape", 0, groups, in.shape.Len()/groups)})
	normed := g.node("InstanceNormalization", []string{
		grouped, g.floats("ones", []int{groups}, ones...), g.floats("zeros", []int{groups}, make([]float32, groups)...),
	}, floatAttribute("epsilon", normEpsilon))
	back := g.node("Reshape", []string{normed, g.integers("shape", 0, c, height, width)})
	scaled := g.node("Mul", []string{back, g.floats("weight", []int{c, 1, 1}, single(factors)...)})
	in.name = g.node("Add", []string{scaled, g.floats("bias", []int{c, 1, 1}, single(constants)...)})
	return in, nil
}

// writeLayerNorm: channels lie innermost, and that is where the operation takes means.
func writeLayerNorm(g *graph, in value, _ config.Layer) (value, error) {
	in = g.flat(in)
	c, places := in.shape.Channels, in.shape.Height*in.shape.Width
	factors, err := g.take(c)
	if err != nil {
		return in, err
	}
	constants, err := g.take(c)
	if err != nil {
		return in, err
	}
	name := in.name
	if places > 1 {
		name = g.node("Reshape", []string{name, g.integers("shape", 0, places, c)})
	}
	name = g.node("LayerNormalization", []string{
		name, g.floats("weight", []int{c}, single(factors)...), g.floats("bias", []int{c}, single(constants)...),
	}, floatAttribute("epsilon", normEpsilon)) // over the last axis, if none is named
	if places > 1 {
		name = g.node("Reshape", []string{name, g.integers("shape", 0, in.shape.Len())})
	}
	in.name = name
	return in, nil
}

// writeEmbedding: a row's values are words, which pick vectors.
func writeEmbedding(g *graph, in value, s config.Layer) (value, error) {
	in = g.flat(in)
	words := in.shape.Len()
	vectors, err := g.take(s.Vocabulary * s.Units)
	if err != nil {
		return in, err
	}
	numbers := g.node("Cast", []string{in.name}, integerAttribute("to", integers))
	picked := g.node("Gather", []string{g.floats("weight", []int{s.Vocabulary, s.Units}, single(vectors)...), numbers})
	return value{
		name:  g.node("Reshape", []string{picked, g.integers("shape", 0, words*s.Units)}),
		shape: model.Shape{Height: words, Width: 1, Channels: s.Units},
	}, nil
}
