package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

// places is a linear layer on the channels of every place by itself: on every word of a
// row, with one matrix for all. Weights lie as [input][output].
type places[F Float] struct {
	n, in, out int // places, and channels of each
	shape      Shape
	bias, relu bool
	sd         float64 // of the weights that training starts from; 0: PyTorch's default
	transposed []F     // weights as [output][input], for the way back
}

func (l *places[F]) output() Shape     { return l.shape }
func (l *places[F]) inPlace() bool     { return false }
func (l *places[F]) oneByOne() bool    { return false }
func (l *places[F]) needsOutput() bool { return l.relu }

func (l *places[F]) views() []View {
	v := []View{{Name: "weight", Shape: []int{l.in, l.out}}}
	if l.bias {
		v = append(v, View{Name: "bias", Offset: l.in * l.out, Shape: []int{l.out}})
	}
	return v
}

func (l *places[F]) initialise(theta []F, src rand.Source) {
	if l.sd == 0 {
		uniformFan(theta, l.in, src)
		return
	}
	normal(theta[:l.in*l.out], l.sd, src)
	clear(theta[l.in*l.out:])
}

// normal draws from N(0, sd^2).
func normal[F Float](theta []F, sd float64, src rand.Source) {
	for i := range theta {
		theta[i] = F(sd * rng.Normal(src))
	}
}

func (l *places[F]) prepare(theta []F, _ int) {
	if l.transposed == nil {
		l.transposed = make([]F, l.in*l.out)
	}
	kernel.Transpose(l.transposed, theta[:l.in*l.out], l.in, l.out)
}

func (l *places[F]) cell(examples int) cell[F] {
	return &placesCell[F]{places: l, kept: make([]F, examples*l.n*l.out)}
}

type placesCell[F Float] struct {
	*places[F]
	kept []F // gradients at the output, until their weights are known
	forming[F]
	norm productNorm[F]
	work kernel.Workspace[F]
}

func (c *placesCell[F]) forward(theta, in, out []F, g int) {
	rows := g * c.n
	kernel.Gemm(1, kernel.Dense(in, rows, c.in), kernel.Dense(theta[:c.in*c.out], c.in, c.out), 0, kernel.Dense(out, rows, c.out), &c.work)
	finish(out, theta[c.in*c.out:], c.relu)
}

func (c *placesCell[F]) backward(p pass[F]) {
	if c.relu {
		kernel.ReluGrad(p.dOut, p.out, p.dOut)
	}
	rows := p.g * c.n
	if p.dIn != nil {
		kernel.Gemm(1, kernel.Dense(p.dOut, rows, c.out), kernel.Dense(c.transposed, c.out, c.in), 0, kernel.Dense(p.dIn, rows, c.in), &c.work)
	}
	switch {
	case p.acc != nil:
		c.accumulate(p.acc, p.in, p.dOut, p.g)
	case p.norms != nil:
		copy(c.kept, p.dOut[:rows*c.out])
		in, out := c.n*c.in, c.n*c.out
		for i := range p.g {
			if c.forms {
				p.norms[i] += kernel.SquaredNorm(c.form(p.in, i))
				continue
			}
			p.norms[i] += c.norm.squared(p.in[i*in:(i+1)*in], p.dOut[i*out:(i+1)*out], c.n, c.in, c.out, c.bias)
		}
	}
}

func (c *placesCell[F]) add(acc, in, weights []F, g int) {
	all := scaleRows(c.kept, weights[:g], c.n*c.out)
	if all {
		c.accumulate(acc, in, c.kept, g)
		return
	}
	for i, w := range weights[:g] {
		if w != 0 {
			c.accumulate(acc, in[i*c.n*c.in:(i+1)*c.n*c.in], c.kept[i*c.n*c.out:], 1)
		}
	}
}

// scaleRows multiplies rows by their weights, but for those of weight 0, and says whether
// there are none of these.
func scaleRows[F Float](rows, weights []F, length int) (all bool) {
	all = true
	for i, w := range weights {
		if w == 0 {
			all = false
		} else if w != 1 {
			row := rows[i*length : (i+1)*length]
			kernel.Scale(row, w, row)
		}
	}
	return all
}

// accumulate adds in' * dOut, and the column sums for the bias.
func (c *placesCell[F]) accumulate(acc, in, dOut []F, g int) {
	rows := g * c.n
	dOut = dOut[:rows*c.out]
	kernel.Gemm(1, kernel.Dense(in, rows, c.in).T(), kernel.Dense(dOut, rows, c.out), 1, kernel.Dense(acc[:c.in*c.out], c.in, c.out), &c.work)
	if c.bias {
		kernel.SumRows(acc[c.in*c.out:], dOut)
	}
}

// form is the gradient of example i of those whose gradients at the output are kept.
func (c *placesCell[F]) form(in []F, i int) []F {
	n := c.in * c.out
	formed := c.room(n + c.out)
	x, d := kernel.Dense(in[i*c.n*c.in:], c.n, c.in), kernel.Dense(c.kept[i*c.n*c.out:], c.n, c.out)
	kernel.Gemm(1, x.T(), d, 0, kernel.Dense(formed[:n], c.in, c.out), &c.work)
	if !c.bias {
		return formed[:n]
	}
	clear(formed[n:])
	kernel.SumRows(formed[n:], d.Data[:c.n*c.out])
	return formed
}

func (c *placesCell[F]) addWhole(acc []float64, in []F, weights []float64, g int) {
	for i, w := range weights[:g] {
		if w != 0 {
			kernel.AddTruncated(w, c.form(in, i), acc)
		}
	}
}

func buildPlaces[F Float](in Shape, s Layer, behind []Layer) (layer[F], Shape, error) {
	if s.Units < 1 || s.Units > maxParameters/in.Channels || s.Units > maxValues/(in.Height*in.Width) {
		return nil, in, fmt.Errorf("units %d; allowed: 1 or more, and few enough for %d places of %d channels", s.Units, in.Height*in.Width, in.Channels)
	}
	out := Shape{in.Height, in.Width, s.Units}
	l := &places[F]{n: in.Height * in.Width, in: in.Channels, out: s.Units, shape: out, bias: !s.NoBias, relu: reluBehind(behind), sd: s.SD}
	return l, out, nil
}
