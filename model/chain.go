package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// chain is layers one after another: a network, or the inside of a residual.
type chain[F Float] struct {
	input  Shape
	layers []layer[F]
	names  []string // where every layer is in the run file
	starts []int    // first parameter of every layer, and the end
	end    Shape    // of the output: a flatten at the end changes the last layer's
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

// values is how many activations one example has in all layers.
func (c *chain[F]) values() int {
	values := c.input.Len()
	for _, l := range c.layers {
		values += l.output().Len()
		if within, ok := l.(interface{ values() int }); ok {
			values += within.values()
		}
	}
	return values
}

// checks says that the first layer does not read every value.
func (c *chain[F]) checks() bool {
	if len(c.layers) == 0 {
		return false
	}
	_, reads := c.layers[0].(interface{ check([]F) error })
	return reads
}

// check refuses an example that the first layer cannot read.
func (c *chain[F]) check(example []F) error {
	if len(c.layers) > 0 {
		if reads, ok := c.layers[0].(interface{ check([]F) error }); ok {
			return reads.check(example)
		}
	}
	return nil
}

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
	examples int   // for how many there is room
	values   [][]F // values[i] goes into layer i; the last one comes out
	gradient [2][]F
	// The first layers take examples one by one: what is between two of them is then
	// still in the cache.
	singly int
	own    [2][]F // through which one example's gradients travel back
	places []inputPlace[F]
}

// inputPlace is a layer that says where its inputs are to be laid, and the buffer that they
// are laid in: that of the first of the layers that write over one another's.
type inputPlace[F Float] struct {
	layer interface{ inputs() []F }
	at    int
}

func (c *chain[F]) newCell(examples int) *chainCell[F] {
	cc := &chainCell[F]{chain: c, examples: examples, values: make([][]F, len(c.layers)+1)}
	for i, l := range c.layers {
		cc.cells = append(cc.cells, l.cell(examples))
		if c.overwrites(i) {
			continue // its output lies where its input lies
		}
		cc.values[i+1] = make([]F, examples*l.output().Len())
	}
	for cc.singly < len(c.layers) && c.layers[cc.singly].oneByOne() {
		cc.singly++
	}
	if cc.singly == 1 {
		cc.singly = 0 // nothing is between
	}
	for i, one := range cc.cells[min(1, len(cc.cells)):] { // the first one's are the caller's
		if l, ok := one.(interface{ inputs() []F }); ok {
			at := i + 1
			for c.overwrites(at - 1) {
				at--
			}
			cc.places = append(cc.places, inputPlace[F]{l, at})
		}
	}
	return cc
}

// room is one of the two buffers, for the gradients of g examples of n values each. They
// are made for what has to pass through them: a layer that nothing goes back through, or
// only one example at a time, needs no place there.
func room[F Float](buffer *[]F, examples, g, n int) []F {
	if len(*buffer) < g*n {
		*buffer = make([]F, max(g, examples)*n)
	}
	return (*buffer)[:g*n]
}

// lengthInto is the number of values of one example that go into layer i, or come out
// of the last one.
func (c *chain[F]) lengthInto(i int) int {
	if i == 0 {
		return c.input.Len()
	}
	return c.layers[i-1].output().Len()
}

// overwrites says whether layer i may write over its input: it wants to, the
// input is not the caller's, and the layer before does not read its own output.
func (c *chain[F]) overwrites(i int) bool {
	return i > 0 && c.layers[i].inPlace() && !c.layers[i-1].needsOutput()
}

// forward returns the outputs of g examples.
func (c *chainCell[F]) forward(theta, in []F, g int) []F {
	c.values[0] = in
	for _, p := range c.places {
		if room := p.layer.inputs(); room != nil {
			c.values[p.at] = room
		}
	}
	for i := range c.layers {
		if c.overwrites(i) {
			c.values[i+1] = c.values[i]
		}
	}
	for e := range g {
		for i := range c.singly {
			c.forwardThrough(theta, i, e, 1)
		}
	}
	for i := c.singly; i < len(c.layers); i++ {
		c.forwardThrough(theta, i, 0, g)
	}
	return c.values[len(c.layers)][:g*c.lengthInto(len(c.layers))]
}

// forwardThrough takes g examples from the first-th on through layer i.
func (c *chainCell[F]) forwardThrough(theta []F, i, first, g int) {
	in, out := c.lengthInto(i), c.lengthInto(i+1)
	c.cells[i].forward(c.part(theta, i), c.values[i][first*in:(first+g)*in], c.values[i+1][first*out:(first+g)*out], g)
}

// backward takes dOut back through all layers and returns the gradient at the
// input if it is wanted. dOut is overwritten.
func (c *chainCell[F]) backward(theta, dOut, acc []F, norms []float64, g int, wantInput bool) []F {
	d, turn := dOut, 0
	for i := len(c.layers) - 1; i >= c.singly; i-- {
		p := c.pass(theta, acc, norms, i, 0, g)
		p.dOut = d
		if i > 0 || wantInput {
			if c.overwrites(i) {
				p.dIn = d // same length: element by element
			} else {
				p.dIn = room(&c.gradient[turn], c.examples, g, c.lengthInto(i))
				turn = 1 - turn
			}
		}
		c.cells[i].backward(p)
		d = p.dIn
	}
	if c.singly == 0 {
		return d
	}
	var inputs []F
	if wantInput {
		inputs = room(&c.gradient[turn], c.examples, g, c.lengthInto(0))
	}
	for e := range g {
		c.backwardSingly(theta, d, acc, norms, e, inputs)
	}
	return inputs
}

// backwardSingly takes one example's gradient back through the first layers, into its
// place among the inputs' unless they are nil.
func (c *chainCell[F]) backwardSingly(theta, dOut, acc []F, norms []float64, e int, inputs []F) {
	out := c.lengthInto(c.singly)
	d, turn := dOut[e*out:(e+1)*out], 0
	for i := c.singly - 1; i >= 0; i-- {
		p := c.pass(theta, acc, norms, i, e, 1)
		p.dOut = d
		in := c.lengthInto(i)
		switch {
		case i == 0 && inputs == nil:
		case i == 0:
			p.dIn = inputs[e*in : (e+1)*in]
		case c.overwrites(i):
			p.dIn = d
		default:
			p.dIn = room(&c.own[turn], 1, 1, in)
			turn = 1 - turn
		}
		c.cells[i].backward(p)
		d = p.dIn
	}
}

// pass is the way back through layer i for g examples from the first-th on, but for
// the gradients.
func (c *chainCell[F]) pass(theta, acc []F, norms []float64, i, first, g int) pass[F] {
	in, out := c.lengthInto(i), c.lengthInto(i+1)
	p := pass[F]{
		theta: c.part(theta, i), in: c.values[i][first*in : (first+g)*in], out: c.values[i+1][first*out : (first+g)*out],
		g: g, first: first,
	}
	if acc != nil {
		p.acc = c.part(acc, i)
	}
	if norms != nil {
		p.norms = norms[first : first+g]
	}
	return p
}

// canAddAtOnce says whether every layer that has parameters can be told to add at once.
func (c *chain[F]) canAddAtOnce() bool {
	for i, l := range c.layers {
		if _, can := l.(*dense[F]); !can && c.starts[i] < c.starts[i+1] {
			return false
		}
	}
	return true
}

// addAtOnce has layers add a chunk's gradient, value by value, as one number, or in
// whatever way is fastest.
func (c *chainCell[F]) addAtOnce(once bool) {
	for _, one := range c.cells {
		if d, can := one.(*denseCell[F]); can {
			d.once = once
		}
	}
}

// settle adds what layers have laid aside since the last add.
func (c *chainCell[F]) settle() {
	for _, one := range c.cells {
		if s, ok := one.(interface{ settle() }); ok {
			s.settle()
		}
	}
}

func (c *chainCell[F]) add(acc, weights []F, g int) {
	for i := range c.layers {
		c.cells[i].add(c.part(acc, i), c.values[i][:g*c.lengthInto(i)], weights, g)
	}
}

// canAddWhole says whether every layer that has parameters has a cell that adds whole numbers.
func (c *chainCell[F]) canAddWhole() bool {
	for i, one := range c.cells {
		if _, can := one.(wholeCell[F]); !can && c.starts[i] < c.starts[i+1] {
			return false
		}
		if within, is := one.(interface{ canAddWhole() bool }); is && !within.canAddWhole() {
			return false
		}
	}
	return true
}

// formsWhole has layers tell norms that whole numbers can be clipped by, or whatever is fastest.
func (c *chainCell[F]) formsWhole(on bool) {
	for _, one := range c.cells {
		if f, can := one.(interface{ formsWhole(on bool) }); can {
			f.formsWhole(on)
		}
	}
}

func (c *chainCell[F]) addWhole(acc, weights []float64, g int) {
	for i, one := range c.cells {
		if c.starts[i] < c.starts[i+1] {
			one.(wholeCell[F]).addWhole(acc[c.starts[i]:c.starts[i+1]], c.values[i][:g*c.lengthInto(i)], weights, g)
		}
	}
}

// addWholeRows adds rows that lie one after another, as wholeCell.addWhole has it.
func addWholeRows[F Float](acc []float64, rows []F, weights []float64) {
	for i, w := range weights {
		if w != 0 {
			kernel.AddTruncated(w, rows[i*len(acc):(i+1)*len(acc)], acc)
		}
	}
}
