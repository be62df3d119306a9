package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "group-norm", keys: []string{"groups"}, single: buildGroupNorm[float32], double: buildGroupNorm[float64]})
}

// normEpsilon is added to variances before their root is taken: PyTorch's default.
const normEpsilon = 1e-5

// usualGroups is how many groups there are at most, if the run file does not say (Wu and
// He 2018, "Group normalization").
const usualGroups = 32

// groupNorm takes the mean off every group of channels of an example, over the whole
// picture, and divides by their standard deviation; then each channel has a factor and
// a constant. Examples never meet, as they would in a batch norm: each has a gradient of
// its own.
type groupNorm[F Float] struct {
	affine[F]
	groups int
}

func (n *groupNorm[F]) cell(examples int) cell[F] {
	c := n.shape.Channels
	return &groupNormCell[F]{
		affineCell: newAffineCell[F](c, examples), groupNorm: n,
		centred: make([]F, n.shape.Len()), sums: make([]F, c), scale: make([]F, c), shift: make([]F, c), inverse: make([]F, c),
	}
}

type groupNormCell[F Float] struct {
	affineCell[F]
	*groupNorm[F]
	centred      []F // one example without its groups' means
	sums         []F // by channel
	scale, shift []F
	inverse      []F // 1/standard deviation, of every channel's group
}

// centre writes one example without its groups' means to dst, and sets c.inverse.
func (c *groupNormCell[F]) centre(dst, x []F) {
	clear(c.sums)
	kernel.SumRows(c.sums, x)
	c.eachGroup(c.sums, func(channels []F, mean float64) { fill(channels, F(-mean)) })
	kernel.AffineRows(dst, x, c.ones, c.sums)
	clear(c.inverse)
	kernel.SumProducts(c.inverse, dst, dst)
	c.eachGroup(c.inverse, func(channels []F, variance float64) { fill(channels, F(1/math.Sqrt(variance+normEpsilon))) })
}

// eachGroup hands a group's channels to set, with the mean over all of its values that
// has these sums by channel.
func (c *groupNormCell[F]) eachGroup(sums []F, set func(channels []F, mean float64)) {
	each := len(sums) / c.groups
	values := float64(each * c.shape.Height * c.shape.Width)
	for from := 0; from < len(sums); from += each {
		var total float64
		for _, s := range sums[from : from+each] {
			total += float64(s)
		}
		set(sums[from:from+each], total/values)
	}
}

func fill[F Float](dst []F, v F) {
	for i := range dst {
		dst[i] = v
	}
}

func (c *groupNormCell[F]) forward(theta, in, out []F, g int) {
	n, channels := c.shape.Len(), c.shape.Channels
	for i := range g {
		y := out[i*n : (i+1)*n]
		c.centre(y, in[i*n:(i+1)*n])
		for j, factor := range theta[:channels] {
			c.scale[j] = factor * c.inverse[j]
		}
		kernel.AffineRows(y, y, c.scale, theta[channels:])
	}
}

func (c *groupNormCell[F]) backward(p pass[F]) {
	n, channels := c.shape.Len(), c.shape.Channels
	for i := range p.g {
		d := p.dOut[i*n : (i+1)*n]
		c.centre(c.centred, p.in[i*n:(i+1)*n])
		own := c.gradient(p, i)
		factors, constants := own[:channels], own[channels:]
		kernel.SumProducts(factors, d, c.centred)
		for j, inverse := range c.inverse {
			factors[j] *= inverse
		}
		kernel.SumRows(constants, d)
		if p.dIn != nil {
			c.back(p.dIn[i*n:(i+1)*n], d, factors, constants)
		}
		c.deliver(p, i, own) // after dIn: the sum may be the parameters themselves
	}
}

// back writes one example's gradient at the input. With h = factor*d and x the
// normalised values it is (h - mean(h) - x*mean(h*x))/sd, with means over the group, which
// follow from the gradients of the factors and the constants. d is overwritten.
func (c *groupNormCell[F]) back(dIn, d, factors, constants []F) {
	for j, f := range c.factors {
		c.scale[j], c.shift[j] = f*factors[j], f*constants[j]
	}
	c.eachGroup(c.scale, func(channels []F, mean float64) { fill(channels, F(mean)) })
	c.eachGroup(c.shift, func(channels []F, mean float64) { fill(channels, F(mean)) })
	for j, inverse := range c.inverse {
		c.scale[j] *= -inverse * inverse
		c.shift[j] *= -inverse
		c.sums[j] = c.factors[j] * inverse
	}
	kernel.AffineRows(dIn, c.centred, c.scale, c.shift)
	kernel.AffineRows(d, d, c.sums, c.zeros)
	kernel.Axpy(1, d, dIn)
}

func buildGroupNorm[F Float](in Shape, s Layer, _ []Layer) (layer[F], Shape, error) {
	groups := GroupsOf(s, in.Channels)
	if in.Channels%groups != 0 {
		return nil, in, fmt.Errorf("groups %d do not divide the %d channels; allowed: a number that does, such as %d", groups, in.Channels, GroupsOf(Layer{}, in.Channels))
	}
	if in.Len() == groups {
		return nil, in, fmt.Errorf("each of the %d groups has one value, which has no spread; give fewer groups", groups)
	}
	return &groupNorm[F]{newAffine[F](in), groups}, in, nil
}

// GroupsOf is into how many groups a group norm parts channels: as many as it says, or
// the most that divide them, up to 32.
func GroupsOf(s Layer, channels int) int {
	if s.Groups > 0 {
		return s.Groups
	}
	groups := min(usualGroups, channels)
	for channels%groups != 0 {
		groups--
	}
	return groups
}
