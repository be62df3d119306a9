package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "layer-norm", single: buildLayerNorm[float32], double: buildLayerNorm[float64]})
}

// layerNorm takes the mean off the channels of every place of an example, and divides
// by their standard deviation; then each channel has a factor and a constant. A plain
// vector is one place, a sequence of words as many as it has words.
type layerNorm[F Float] struct{ affine[F] }

func (n *layerNorm[F]) cell(examples int) cell[F] {
	return &layerNormCell[F]{
		affineCell: newAffineCell[F](n.shape.Channels, examples), layerNorm: n,
		normed: make([]F, n.shape.Len()), inverse: make([]float64, n.shape.Height*n.shape.Width),
	}
}

type layerNormCell[F Float] struct {
	affineCell[F]
	*layerNorm[F]
	normed  []F       // one example, normalised
	inverse []float64 // 1/standard deviation, by place
}

// normalise writes one example, normalised, to dst, and sets c.inverse.
func (c *layerNormCell[F]) normalise(dst, x []F) {
	n := c.shape.Channels
	for place := range c.inverse {
		from, to := x[place*n:(place+1)*n], dst[place*n:(place+1)*n]
		mean := F(kernel.Dot(from, c.ones) / float64(n))
		for j, v := range from {
			to[j] = v - mean
		}
		c.inverse[place] = 1 / math.Sqrt(kernel.SquaredNorm(to)/float64(n)+normEpsilon)
		kernel.Scale(to, F(c.inverse[place]), to)
	}
}

func (c *layerNormCell[F]) forward(theta, in, out []F, g int) {
	n, channels := c.shape.Len(), c.shape.Channels
	for i := range g {
		y := out[i*n : (i+1)*n]
		c.normalise(y, in[i*n:(i+1)*n])
		kernel.AffineRows(y, y, theta[:channels], theta[channels:])
	}
}

func (c *layerNormCell[F]) backward(p pass[F]) {
	n, channels := c.shape.Len(), c.shape.Channels
	for i := range p.g {
		d := p.dOut[i*n : (i+1)*n]
		c.normalise(c.normed, p.in[i*n:(i+1)*n])
		own := c.gradient(p, i)
		kernel.SumProducts(own[:channels], d, c.normed)
		kernel.SumRows(own[channels:], d)
		if p.dIn != nil {
			c.back(p.dIn[i*n:(i+1)*n], d)
		}
		c.deliver(p, i, own) // after dIn: the sum may be the parameters themselves
	}
}

// back writes one example's gradient at the input. With h = factor*d and x the
// normalised values it is (h - mean(h) - x*mean(h*x))/sd, with means over the place.
func (c *layerNormCell[F]) back(dIn, d []F) {
	n := c.shape.Channels
	kernel.AffineRows(dIn, d, c.factors, c.zeros)
	for place, inverse := range c.inverse {
		h, x := dIn[place*n:(place+1)*n], c.normed[place*n:(place+1)*n]
		mean, along := F(kernel.Dot(h, c.ones)/float64(n)), F(kernel.Dot(h, x)/float64(n))
		for j, v := range h {
			h[j] = F(inverse) * (v - mean - x[j]*along)
		}
	}
}

func buildLayerNorm[F Float](in Shape, _ Layer, _ []Layer) (layer[F], Shape, error) {
	if in.Channels < 2 {
		return nil, in, fmt.Errorf("one channel has no spread; allowed: 2 or more (of pictures, after a convolution)")
	}
	return &layerNorm[F]{newAffine[F](in)}, in, nil
}
