package model

import (
	"fmt"
	"math/rand/v2"
)

// chain is layers one after another: a network, or the inside of a residual.
type chain[F Float] struct {
	input  Shape
	layers []layer[F]
	starts []int // first parameter of every layer, and the end
	end    Shape // of the output: a flatten at the end changes the last layer's
}

func newChain[F Float](input Shape, layers []layer[F]) *chain[F] {
	c := &chain[F]{input: input, layers: layers, starts: []int{0}}
	for _, l := range layers {
		n := 0
		for _, v := range l.views() {
			n += v.Len()
		}
		c.starts = append(c.starts, c.starts[len(c.starts)-1]+n)
	}
	return c
}

func (c *chain[F]) parameters() int { return c.starts[len(c.layers)] }

func (c *chain[F]) output() Shape { return c.end }

func (c *chain[F]) views() []View {
	var out []View
	for i, l := range c.layers {
		for _, v := range l.views() {
			v.Name = fmt.Sprintf("%d.%s", i, v.Name)
			v.Offset += c.starts[i]
			out = append(out, v)
		}
	}
	return out
}

func (c *chain[F]) part(theta []F, i int) []F { return theta[c.starts[i]:c.starts[i+1]] }

func (c *chain[F]) initialise(theta []F, src rand.Source) {
	for i, l := range c.layers {
		l.initialise(c.part(theta, i), src)
	}
}

func (c *chain[F]) prepare(theta []F, examples int) {
	for i, l := range c.layers {
		if i == 0 {
			l.prepare(c.part(theta, i), 1) // gradients rarely go back through the first
			continue
		}
		l.prepare(c.part(theta, i), examples)
	}
}

// chainCell holds the activations of g examples between all layers, and two
// buffers through which gradients travel back.
type chainCell[F Float] struct {
	*chain[F]
	cells    []cell[F]
	values   [][]F // values[i] goes into layer i; the last one comes out
	gradient [2][]F
}

func (c *chain[F]) newCell(examples int) *chainCell[F] {
	cc := &chainCell[F]{chain: c, values: make([][]F, len(c.layers)+1)}
	largest := c.input.Len()
	for i, l := range c.layers {
		cc.cells = append(cc.cells, l.cell(examples))
		shape := l.output()
		largest = max(largest, shape.Len())
		if c.overwrites(i) {
			continue // its output lies where its input lies
		}
		cc.values[i+1] = make([]F, examples*shape.Len())
	}
	cc.gradient = [2][]F{make([]F, examples*largest), make([]F, examples*largest)}
	return cc
}

// overwrites says whether layer i may write over its input: it wants to, the
// input is not the caller's, and the layer before does not read its own output.
func (c *chain[F]) overwrites(i int) bool {
	return i > 0 && c.layers[i].inPlace() && !c.layers[i-1].needsOutput()
}

// forward returns the outputs of g examples.
func (c *chainCell[F]) forward(theta, in []F, g int) []F {
	c.values[0] = in
	shape := c.input
	for i, l := range c.layers {
		x := c.values[i][:g*shape.Len()]
		shape = l.output()
		if c.overwrites(i) {
			c.values[i+1] = c.values[i]
		}
		c.cells[i].forward(c.part(theta, i), x, c.values[i+1][:g*shape.Len()], g)
	}
	return c.values[len(c.layers)][:g*shape.Len()]
}

// backward takes dOut back through all layers and returns the gradient at the
// input if it is wanted. dOut is overwritten.
func (c *chainCell[F]) backward(theta, dOut, acc []F, norms []float64, g int, wantInput bool) []F {
	d, turn := dOut, 0
	for i := len(c.layers) - 1; i >= 0; i-- {
		inLen := c.input.Len()
		if i > 0 {
			inLen = c.layers[i-1].output().Len()
		}
		p := pass[F]{
			theta: c.part(theta, i), in: c.values[i][:g*inLen], out: c.values[i+1][:g*c.layers[i].output().Len()],
			dOut: d, norms: norms, g: g,
		}
		if acc != nil {
			p.acc = c.part(acc, i)
		}
		if i > 0 || wantInput {
			if c.overwrites(i) {
				p.dIn = d // same length: element by element
			} else {
				p.dIn = c.gradient[turn][:g*inLen]
				turn = 1 - turn
			}
		}
		c.cells[i].backward(p)
		d = p.dIn
	}
	return d
}

func (c *chainCell[F]) add(acc, weights []F, g int) {
	for i := range c.layers {
		inLen := c.input.Len()
		if i > 0 {
			inLen = c.layers[i-1].output().Len()
		}
		c.cells[i].add(c.part(acc, i), c.values[i][:g*inLen], weights, g)
	}
}
