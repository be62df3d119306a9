package onnx

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/model"
)

// value is what flows between two layers. Flat values are [N, length], with channels
// innermost as package model has them; planes are [N, channels, height, width], as
// ONNX's convolutions and pools want them.
type value struct {
	name   string
	shape  model.Shape
	planes bool
}

// layerKinds are how layers are written, by kind: the counterpart of package model's
// registry. A test holds them against it.
var layerKinds map[string]func(g *graph, in value, s config.Layer) (value, error)

func init() { // not a literal: a residual writes layers
	layerKinds = map[string]func(g *graph, in value, s config.Layer) (value, error){
		"linear":          writeLinear,
		"conv":            writeConvolution,
		"transposed-conv": writeConvolution,
		"max-pool":        writePool,
		"mean-pool":       writePool,
		"relu":            activation("Relu"),
		"leaky-relu":      writeLeakyRelu,
		"sigmoid":         activation("Sigmoid"),
		"tanh":            activation("Tanh"),
		"flatten":         writeFlatten,
		"residual":        writeResidual,
		"group-norm":      writeGroupNorm,
		"layer-norm":      writeLayerNorm,
		"embedding":       writeEmbedding,
		"words":           writeWords,
		"positions":       writePositions,
		"attention":       writeAttention,
		"gelu":            writeGelu,
	}
}

func (g *graph) layers(in value, layers []config.Layer) (value, error) {
	for i, s := range layers {
		write, ok := layerKinds[s.Kind]
		if !ok {
			return in, fmt.Errorf("layer %d (%s): the ONNX export does not know this kind; it knows: %s", i, s.Kind, strings.Join(slices.Sorted(maps.Keys(layerKinds)), ", "))
		}
		out, err := write(g, in, s)
		if err != nil {
			return in, fmt.Errorf("layer %d (%s): %w", i, s.Kind, err)
		}
		in = out
	}
	return in, nil
}

// take is the next parameters of the vector.
func (g *graph) take(n int) ([]float64, error) {
	if n > len(g.theta) {
		return nil, fmt.Errorf("it needs %d parameters, %d are left", n, len(g.theta))
	}
	taken := g.theta[:n]
	g.theta = g.theta[n:]
	return taken, nil
}

// bias adds a layer's constant terms to the inputs of its node, if it has them.
func (g *graph) bias(inputs []string, s config.Layer, n int) ([]string, error) {
	if s.NoBias {
		return inputs, nil
	}
	bias, err := g.take(n)
	if err != nil {
		return nil, err
	}
	return append(inputs, g.floats("bias", []int{n}, single(bias)...)), nil
}

// single is values in single precision.
func single(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}

// flat lays a value out as package model does.
func (g *graph) flat(v value) value {
	if v.planes {
		inner := g.node("Transpose", []string{v.name}, integersAttribute("perm", 0, 2, 3, 1))
		v.name = g.node("Reshape", []string{inner, g.integers("shape", 0, v.shape.Len())})
		v.planes = false
	}
	return v
}

// asPlanes lays a value out as convolutions want it.
func (g *graph) asPlanes(v value) value {
	if !v.planes {
		picture := g.node("Reshape", []string{v.name, g.integers("shape", 0, v.shape.Height, v.shape.Width, v.shape.Channels)})
		v.name = g.node("Transpose", []string{picture}, integersAttribute("perm", 0, 3, 1, 2))
		v.planes = true
	}
	return v
}

func activation(operation string, attributes ...attribute) func(*graph, value, config.Layer) (value, error) {
	return func(g *graph, in value, _ config.Layer) (value, error) {
		in.name = g.node(operation, []string{in.name}, attributes...)
		return in, nil
	}
}

func writeLeakyRelu(g *graph, in value, s config.Layer) (value, error) {
	return activation("LeakyRelu", floatAttribute("alpha", cmp.Or(s.Slope, 0.01)))(g, in, s)
}

// writeLinear: the weights lie as [input][output], as Gemm wants them.
func writeLinear(g *graph, in value, s config.Layer) (value, error) {
	if s.Each {
		return writePlaces(g, in, s)
	}
	in = g.flat(in)
	n := in.shape.Len()
	weights, err := g.take(n * s.Units)
	if err != nil {
		return in, err
	}
	inputs, err := g.bias([]string{in.name, g.floats("weight", []int{n, s.Units}, single(weights)...)}, s, s.Units)
	if err != nil {
		return in, err
	}
	return value{name: g.node("Gemm", inputs), shape: model.Shape{Height: 1, Width: 1, Channels: s.Units}}, nil
}

// writeConvolution: the filter of package model is [row][column][channel][filter]. A
// transposed convolution has that of the convolution whose way back it goes: its own
// inputs are the filters; ONNX describes it so too.
func writeConvolution(g *graph, in value, s config.Layer) (value, error) {
	in = g.asPlanes(in)
	k, stride, pad := s.Kernel, max(s.Stride, 1), s.Padding
	operation, channels, filters := "Conv", in.shape.Channels, s.Channels
	out := model.Shape{Height: (in.shape.Height+2*pad-k)/stride + 1, Width: (in.shape.Width+2*pad-k)/stride + 1, Channels: s.Channels}
	if s.Kind == "transposed-conv" {
		operation, channels, filters = "ConvTranspose", s.Channels, in.shape.Channels
		out.Height, out.Width = (in.shape.Height-1)*stride-2*pad+k, (in.shape.Width-1)*stride-2*pad+k
	}
	theirs, err := g.take(k * k * channels * filters)
	if err != nil {
		return in, err
	}
	filter := make([]float32, 0, len(theirs))
	for f := range filters {
		for c := range channels {
			for at := range k * k {
				filter = append(filter, float32(theirs[(at*channels+c)*filters+f]))
			}
		}
	}
	inputs, err := g.bias([]string{in.name, g.floats("filter", []int{filters, channels, k, k}, filter...)}, s, s.Channels)
	if err != nil {
		return in, err
	}
	return value{name: g.node(operation, inputs, window(k, stride, pad)...), shape: out, planes: true}, nil
}

// window is how a kernel goes over a picture. Pads are those before rows and columns,
// then those behind.
func window(kernel, stride, pad int) []attribute {
	return []attribute{
		integersAttribute("kernel_shape", kernel, kernel),
		integersAttribute("strides", stride, stride),
		integersAttribute("pads", pad, pad, pad, pad),
	}
}

func writePool(g *graph, in value, s config.Layer) (value, error) {
	in = g.asPlanes(in)
	k, stride, pad := s.Kernel, cmp.Or(s.Stride, s.Kernel), s.Padding
	if k == 0 { // the whole picture
		out := model.Shape{Height: 1, Width: 1, Channels: in.shape.Channels}
		return value{name: g.node("GlobalAveragePool", []string{in.name}), shape: out, planes: true}, nil
	}
	operation, attributes := "MaxPool", window(k, stride, pad)
	if s.Kind == "mean-pool" {
		operation, attributes = "AveragePool", append(attributes, integerAttribute("count_include_pad", 1))
	}
	out := model.Shape{Height: (in.shape.Height+2*pad-k)/stride + 1, Width: (in.shape.Width+2*pad-k)/stride + 1, Channels: in.shape.Channels}
	return value{name: g.node(operation, []string{in.name}, attributes...), shape: out, planes: true}, nil
}

func writeFlatten(g *graph, in value, _ config.Layer) (value, error) {
	out := g.flat(in)
	out.shape = model.Shape{Height: 1, Width: 1, Channels: in.shape.Len()}
	return out, nil
}

func writeResidual(g *graph, in value, s config.Layer) (value, error) {
	inner, err := g.layers(in, s.Inner)
	if err != nil {
		return in, err
	}
	past, err := g.layers(in, s.Shortcut) // none: the input as it is
	if err != nil {
		return in, fmt.Errorf("shortcut: %w", err)
	}
	if inner.shape != past.shape {
		return in, fmt.Errorf("its inner layers end with %v, what is added to it is %v", inner.shape, past.shape)
	}
	if past.planes {
		inner = g.asPlanes(inner)
	} else {
		inner = g.flat(inner)
	}
	return value{name: g.node("Add", []string{past.name, inner.name}), shape: past.shape, planes: past.planes}, nil
}
