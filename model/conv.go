package model

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	keys := []string{"channels", "kernel", "stride", "padding", "no_bias"}
	for _, name := range []string{"conv", "transposed-conv"} {
		registerLayer(layerKind{name: name, keys: keys, single: buildConv[float32], double: buildConv[float64], relus: true})
	}
}

// conv is a convolution or a transposed one, with ReLU behind it if asked for. A
// transposed convolution goes the way back of the convolution that geometry
// describes: from its output to its input.
type conv[F Float] struct {
	geometry   kernel.Conv
	out        Shape
	transposed bool
	bias, relu bool
	fan        int
	rotated    []F // the filter as ConvInputGrad wants it
}

func (c *conv[F]) output() Shape { return c.out }

// crop leaves out the last rows and columns, which a pool behind the layer would
// not read, and returns the output's new shape.
func (c *conv[F]) crop(kernel, stride int) Shape {
	if !c.transposed && c.out.Height >= kernel && c.out.Width >= kernel {
		c.geometry.CropH, c.geometry.CropW = (c.out.Height-kernel)%stride, (c.out.Width-kernel)%stride
		c.out.Height, c.out.Width = c.geometry.OutH(), c.geometry.OutW()
	}
	return c.out
}

func (c *conv[F]) views() []View {
	g := c.geometry
	v := []View{{Name: "weight", Shape: []int{g.KernelH, g.KernelW, g.InC, g.OutC}}}
	if c.bias {
		v = append(v, View{Name: "bias", Offset: g.FilterLen(), Shape: []int{c.out.Channels}})
	}
	return v
}

func (c *conv[F]) parameters() int {
	if c.bias {
		return c.geometry.FilterLen() + c.out.Channels
	}
	return c.geometry.FilterLen()
}

func (c *conv[F]) initialise(theta []F, src rand.Source) { uniformFan(theta, c.fan, src) }

func (c *conv[F]) prepare(theta []F, _ int) {
	if c.rotated == nil {
		c.rotated = make([]F, c.geometry.RotatedLen())
	}
	kernel.RotateFilter(c.geometry, c.rotated, theta[:c.geometry.FilterLen()])
}

func (c *conv[F]) inPlace() bool     { return false }
func (c *conv[F]) needsOutput() bool { return c.relu }
func (c *conv[F]) oneByOne() bool    { return !c.transposed } // whose way back reads the parameters

func (c *conv[F]) cell(examples int) cell[F] {
	return &convCell[F]{conv: c, kept: make([]F, examples*c.parameters())}
}

type convCell[F Float] struct {
	*conv[F]
	kept []F // every example's gradient, until its weight is known
	work kernel.Workspace[F]
}

func (c *convCell[F]) forward(theta, in, out []F, _ int) {
	filter := theta[:c.geometry.FilterLen()]
	if c.transposed {
		kernel.ConvInputGrad(c.geometry, in, c.rotated, out, &c.work)
	} else {
		kernel.ConvForward(c.geometry, in, filter, out, &c.work)
	}
	finish(out, theta[len(filter):], c.relu)
}

func (c *convCell[F]) backward(p pass[F]) {
	if c.relu {
		kernel.ReluGrad(p.dOut, p.out, p.dOut)
	}
	switch {
	case p.dIn == nil:
	case c.transposed:
		kernel.ConvForward(c.geometry, p.dOut, p.theta[:c.geometry.FilterLen()], p.dIn, &c.work)
	default:
		kernel.ConvInputGrad(c.geometry, p.dOut, c.rotated, p.dIn, &c.work)
	}
	switch { // after dIn: the sum may be the parameters themselves
	case p.acc != nil:
		c.gradient(p.acc, p.in, p.dOut, true)
	case p.norms != nil:
		in, out, n := len(p.in)/p.g, c.out.Len(), c.parameters()
		for i := range p.g {
			own := c.kept[(p.first+i)*n:][:n]
			c.gradient(own, p.in[i*in:(i+1)*in], p.dOut[i*out:(i+1)*out], false)
			p.norms[i] += kernel.SquaredNorm(own)
		}
	}
}

// gradient writes or adds the gradient of the parameters, summed over the
// examples that it is given.
func (c *convCell[F]) gradient(dst, in, dOut []F, add bool) {
	filter := dst[:c.geometry.FilterLen()]
	if c.transposed {
		kernel.ConvWeightGrad(c.geometry, dOut, in, filter, add, &c.work)
	} else {
		kernel.ConvWeightGrad(c.geometry, in, dOut, filter, add, &c.work)
	}
	if !c.bias {
		return
	}
	bias := dst[len(filter):]
	if !add {
		clear(bias)
	}
	kernel.SumRows(bias, dOut)
}

func (c *convCell[F]) add(acc, _, weights []F, g int) {
	n := c.parameters()
	for i, w := range weights[:g] {
		if w != 0 {
			kernel.Axpy(w, c.kept[i*n:(i+1)*n], acc)
		}
	}
}

func (c *convCell[F]) addWhole(acc []float64, _ []F, weights []float64, g int) {
	addWholeRows(acc, c.kept, weights[:g])
}

func buildConv[F Float](in Shape, s Layer, behind []Layer) (layer[F], Shape, error) {
	stride := max(s.Stride, 1)
	if s.Channels < 1 || s.Kernel < 1 || s.Padding >= s.Kernel {
		return nil, in, fmt.Errorf("channels %d, kernel %d, padding %d; allowed: 1 or more, 1 or more, below the kernel", s.Channels, s.Kernel, s.Padding)
	}
	c := &conv[F]{
		geometry: kernel.Conv{
			InH: in.Height, InW: in.Width, InC: in.Channels, OutC: s.Channels,
			KernelH: s.Kernel, KernelW: s.Kernel, StrideH: stride, StrideW: stride, PadH: s.Padding, PadW: s.Padding,
		},
		bias: !s.NoBias, relu: reluBehind(behind), fan: s.Kernel * s.Kernel * in.Channels,
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
	return c, c.crop(poolBehind(behind)), nil
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
