package model

import (
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "gelu", single: buildGelu[float32], double: buildGelu[float64]})
}

// gelu is x times the normal distribution function of x, in the form with tanh that GPT-2
// has: x*(1 + tanh(u))/2 with u = sqrt(2/pi)*(x + 0.044715*x^3).
type gelu[F Float] struct{ bare[F] }

const geluCube = 0.044715

var geluScale = math.Sqrt(2 / math.Pi)

func (l *gelu[F]) oneByOne() bool { return false }

func (l *gelu[F]) cell(examples int) cell[F] {
	return &geluCell[F]{gelu: l, tanh: make([]F, examples*l.shape.Len())}
}

type geluCell[F Float] struct {
	*gelu[F]
	tanh []F // of the last examples, for the way back
}

func (c *geluCell[F]) forward(_, in, out []F, _ int) {
	scale, cube := F(geluScale), F(geluScale*geluCube)
	t := c.tanh[:len(in)]
	for i, x := range in {
		t[i] = x * (scale + cube*x*x)
	}
	kernel.Tanh(t, t)
	for i, x := range in {
		half := x / 2
		out[i] = half + half*t[i]
	}
}

func (c *geluCell[F]) backward(p pass[F]) {
	if p.dIn == nil {
		return
	}
	scale, cube := F(geluScale), F(3*geluScale*geluCube)
	t, d := c.tanh[:len(p.in)], p.dOut[:len(p.in)]
	dIn := p.dIn[:len(p.in)]
	for i, x := range p.in {
		y := t[i]
		dIn[i] = d[i] * ((1 + y) / 2 * (1 + (1-y)*x*(scale+cube*x*x)))
	}
}

func buildGelu[F Float](in Shape, _ Layer, _ []Layer) (layer[F], Shape, error) {
	return &gelu[F]{bare[F]{in}}, in, nil
}
