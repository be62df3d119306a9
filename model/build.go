package model

import (
	"cmp"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// Layer describes one layer, as a run file does.
type Layer = config.Layer

// maxValues bounds one example between two layers, maxParameters a network: what
// is larger is a mistake in a run file, and must not exhaust memory.
const (
	maxValues     = 1 << 27
	maxParameters = 1 << 31
)

func build[F Float](input Shape, specs []Layer) (*chain[F], error) {
	var layers []layer[F]
	shape, total := input, 0
	for i, spec := range specs {
		fuse := i+1 < len(specs) && specs[i+1].Kind == "relu"
		if spec.Kind == "relu" && i > 0 && fuses(specs[i-1].Kind) {
			continue // done by the layer before
		}
		l, out, err := buildLayer[F](shape, spec, fuse)
		if c, ok := l.(*conv[F]); ok && err == nil {
			out = c.crop(poolBehind(specs[i+1:]))
		}
		if err != nil {
			return nil, fmt.Errorf("layer %d (%s) on %v: %w", i, spec.Kind, shape, err)
		}
		if l != nil {
			layers = append(layers, l)
			for _, v := range l.views() {
				total += v.Len()
			}
		}
		if out.Len() > maxValues || total > maxParameters {
			return nil, fmt.Errorf("layer %d (%s): %d values an example and %d parameters are too many", i, spec.Kind, out.Len(), total)
		}
		shape = out
	}
	c := newChain(input, layers)
	c.end = shape
	return c, nil
}

// poolBehind is the unpadded pool that alone reads a layer's output, but for a ReLU
// between; without one it is of 1 by 1.
func poolBehind(specs []Layer) (kernel, stride int) {
	for len(specs) > 0 && specs[0].Kind == "relu" {
		specs = specs[1:]
	}
	if len(specs) == 0 || specs[0].Kind != "max-pool" && specs[0].Kind != "mean-pool" || specs[0].Padding != 0 || specs[0].Kernel < 1 {
		return 1, 1
	}
	return specs[0].Kernel, max(1, cmp.Or(specs[0].Stride, specs[0].Kernel))
}

func fuses(kind string) bool {
	return kind == "linear" || kind == "conv" || kind == "transposed-conv"
}

func buildLayer[F Float](in Shape, s Layer, relued bool) (layer[F], Shape, error) {
	for _, v := range []int{s.Units, s.Channels, s.Kernel, s.Stride, s.Padding} {
		if v < 0 || v > 1<<24 {
			return nil, in, fmt.Errorf("%d is out of range; allowed: 0 to %d", v, 1<<24)
		}
	}
	switch s.Kind {
	case "linear":
		if s.Units < 1 {
			return nil, in, fmt.Errorf("units %d; allowed: 1 or more", s.Units)
		}
		if in.Len()*s.Units > maxParameters {
			return nil, in, fmt.Errorf("%d inputs and %d units are too many parameters", in.Len(), s.Units)
		}
		l := &dense[F]{in: in.Len(), out: s.Units, bias: !s.NoBias, relu: relued}
		return l, l.output(), nil
	case "conv", "transposed-conv":
		return buildConv[F](in, s, relued)
	case "max-pool", "mean-pool":
		return buildPool[F](in, s)
	case "relu":
		return relu[F](in), in, nil
	case "leaky-relu":
		slope := s.Slope
		if slope == 0 {
			slope = 0.01
		}
		if !(slope > 0 && slope < 1) {
			return nil, in, fmt.Errorf("slope %v; allowed: between 0 and 1", s.Slope)
		}
		return leakyRelu(in, F(slope)), in, nil
	case "sigmoid":
		return sigmoid[F](in), in, nil
	case "tanh":
		return tanh[F](in), in, nil
	case "flatten":
		return nil, Shape{1, 1, in.Len()}, nil // the values lie flat already
	case "residual":
		inner, err := build[F](in, s.Inner)
		if err != nil {
			return nil, in, err
		}
		if inner.output() != in {
			return nil, in, fmt.Errorf("its inner layers end with %v, but the input is added to it", inner.output())
		}
		return &residual[F]{inner}, in, nil
	}
	return nil, in, fmt.Errorf("not known; allowed: linear, conv, transposed-conv, max-pool, mean-pool, relu, leaky-relu, sigmoid, tanh, flatten, residual")
}

func buildConv[F Float](in Shape, s Layer, relued bool) (layer[F], Shape, error) {
	stride := max(s.Stride, 1)
	if s.Channels < 1 || s.Kernel < 1 || s.Padding >= s.Kernel {
		return nil, in, fmt.Errorf("channels %d, kernel %d, padding %d; allowed: 1 or more, 1 or more, below the kernel", s.Channels, s.Kernel, s.Padding)
	}
	c := &conv[F]{
		geometry: kernel.Conv{
			InH: in.Height, InW: in.Width, InC: in.Channels, OutC: s.Channels,
			KernelH: s.Kernel, KernelW: s.Kernel, StrideH: stride, StrideW: stride, PadH: s.Padding, PadW: s.Padding,
		},
		bias: !s.NoBias, relu: relued, fan: s.Kernel * s.Kernel * in.Channels,
	}
	g := &c.geometry
	c.out = Shape{g.OutH(), g.OutW(), g.OutC}
	if s.Kind == "transposed-conv" {
		c.transposed = true
		c.fan = s.Kernel * s.Kernel * s.Channels // PyTorch counts it from the other side
		c.out = Shape{(in.Height-1)*stride - 2*s.Padding + s.Kernel, (in.Width-1)*stride - 2*s.Padding + s.Kernel, s.Channels}
		g.InH, g.InW, g.InC, g.OutC = c.out.Height, c.out.Width, s.Channels, in.Channels
	}
	if err := g.Validate(); err != nil {
		return nil, in, err
	}
	return c, c.out, nil
}

func buildPool[F Float](in Shape, s Layer) (layer[F], Shape, error) {
	stride := s.Stride
	if stride == 0 {
		stride = s.Kernel
	}
	if s.Kernel < 1 || 2*s.Padding > s.Kernel {
		return nil, in, fmt.Errorf("kernel %d, padding %d; allowed: 1 or more, at most half the kernel", s.Kernel, s.Padding)
	}
	g := kernel.Pool{
		InH: in.Height, InW: in.Width, Channels: in.Channels, KernelH: s.Kernel, KernelW: s.Kernel,
		StrideH: stride, StrideW: stride, PadH: s.Padding, PadW: s.Padding,
	}
	if err := g.Validate(); err != nil {
		return nil, in, err
	}
	out := Shape{g.OutH(), g.OutW(), in.Channels}
	if s.Kind == "max-pool" {
		return &maxPool[F]{bare[F]{out}, g}, out, nil
	}
	return &meanPool[F]{bare[F]{out}, g}, out, nil
}
