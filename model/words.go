package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "words", keys: []string{"vocabulary", "units", "sd", "inner"}, single: buildWords[float32], double: buildWords[float64]})
}

// words is a language model around its inner layers: every word of a row gets its vector,
// and what the inner layers make of a place is compared with all words' vectors, which
// gives every word a score at every place. The vectors are one matrix for both ends. It is
// the whole network: nothing stands before or behind it.
type words[F Float] struct {
	*embedding[F]
	sd    float64
	inner *chain[F]
	own   int // parameters of the vectors, which come first
}

func (l *words[F]) output() Shape     { return Shape{l.places(), 1, l.vocabulary} }
func (l *words[F]) oneByOne() bool    { return false }
func (l *words[F]) inPlace() bool     { return false }
func (l *words[F]) needsOutput() bool { return false }

func (l *words[F]) views() []View {
	views := l.embedding.views()
	for _, v := range l.inner.views() {
		v.Name = "inner." + v.Name
		v.Offset += l.own
		views = append(views, v)
	}
	return views
}

// ofWords says that a network is a language model.
func (c *chain[F]) ofWords() bool {
	if len(c.layers) == 0 {
		return false
	}
	_, ok := c.layers[0].(*words[F])
	return ok
}

// values is how many activations one example has within.
func (l *words[F]) values() int { return l.inner.values() }

func (l *words[F]) initialise(theta []F, src rand.Source) {
	if l.sd > 0 {
		normal(theta[:l.own], l.sd, src)
	} else {
		l.embedding.initialise(theta[:l.own], src)
	}
	l.inner.initialise(theta[l.own:], src)
}

func (l *words[F]) prepare(theta []F, examples int) { l.inner.prepare(theta[l.own:], examples) }

func (l *words[F]) cell(examples int) cell[F] {
	n := l.places()
	return &wordsCell[F]{
		words: l, first: l.embedding.cell(examples).(*embeddingCell[F]), inner: l.inner.newCell(examples),
		x: make([]F, examples*n*l.units), dh: make([]F, examples*n*l.units), between: make([]F, n*n),
	}
}

type wordsCell[F Float] struct {
	*words[F]
	first *embeddingCell[F]
	inner *chainCell[F]
	x     []F // the words' vectors
	h     []F // what the inner layers made of them
	dh    []F
	dOut  []F // gradients at the scores, the caller's, until their weights are known
	forming[F]
	apart   []float64 // norms of no use
	between []F       // products between places of one example
	norm    productNorm[F]
	work    kernel.Workspace[F]
}

// places is how many words a row has.
func (l *words[F]) places() int { return l.embedding.words }

func (c *wordsCell[F]) vectors(theta []F) kernel.Matrix[F] {
	return kernel.Dense(theta[:c.own], c.vocabulary, c.units)
}

func (c *wordsCell[F]) forward(theta, in, out []F, g int) {
	rows := g * c.places()
	c.first.forward(theta, in, c.x[:rows*c.units], g)
	c.h = c.inner.forward(theta[c.own:], c.x[:rows*c.units], g)
	kernel.Gemm(1, kernel.Dense(c.h, rows, c.units), c.vectors(theta).T(), 0, kernel.Dense(out, rows, c.vocabulary), &c.work)
}

func (c *wordsCell[F]) backward(p pass[F]) {
	n := c.places()
	rows := p.g * n
	dh, dOut := c.dh[:rows*c.units], kernel.Dense(p.dOut, rows, c.vocabulary)
	kernel.Gemm(1, dOut, c.vectors(p.theta), 0, kernel.Dense(dh, rows, c.units), &c.work)
	var acc []F
	if p.acc != nil {
		acc = p.acc[c.own:]
	}
	dx := c.inner.backward(p.theta[c.own:], dh, acc, p.norms, p.g, true)
	apart := p.norms
	if c.forms { // both ends' gradients are of the same vectors: their norm is that of the sum
		c.apart = append(c.apart[:0], p.norms...)
		apart = c.apart
	}
	c.first.backward(pass[F]{in: p.in, dOut: dx, dIn: p.dIn, acc: p.acc, norms: apart, g: p.g})
	c.dOut = p.dOut
	switch {
	case p.norms != nil && c.forms:
		for i := range p.g {
			p.norms[i] += kernel.SquaredNorm(c.form(p.in, i))
		}
	case p.acc != nil:
		c.accumulate(p.acc, 0, p.g)
	case p.norms != nil:
		for i := range p.g {
			p.norms[i] += c.further(p.in[i*n:(i+1)*n], dx[i*n*c.units:(i+1)*n*c.units], i)
		}
	}
}

// further is what the vectors' gradient at the scores, B, adds to the squared norm of
// that at the words, A, of example i: |B|^2 + 2<A, B>.
func (c *wordsCell[F]) further(row, dx []F, i int) float64 {
	n := c.places()
	h, d := c.h[i*n*c.units:(i+1)*n*c.units], c.dOut[i*n*c.vocabulary:(i+1)*n*c.vocabulary]
	total := c.norm.squared(h, d, n, c.units, c.vocabulary, false)
	kernel.Gemm(1, kernel.Dense(h, n, c.units), kernel.Dense(dx, n, c.units).T(), 0, kernel.Dense(c.between, n, n), &c.work)
	var both float64
	for s := range n {
		scores, products := d[s*c.vocabulary:(s+1)*c.vocabulary], c.between[s*n:(s+1)*n]
		for t, v := range row {
			if word, ok := c.word(v); ok {
				both += float64(scores[word]) * float64(products[t])
			}
		}
	}
	return total + 2*both
}

// accumulate adds the gradient at the scores of g examples from the first-th on.
func (c *wordsCell[F]) accumulate(acc []F, first, g int) {
	n := c.places()
	h, d := c.h[first*n*c.units:], c.dOut[first*n*c.vocabulary:]
	kernel.Gemm(1, kernel.Dense(d, g*n, c.vocabulary).T(), kernel.Dense(h, g*n, c.units), 1, c.vectors(acc), &c.work)
}

func (c *wordsCell[F]) add(acc, in, weights []F, g int) {
	c.first.add(acc, in, weights, g)
	c.inner.add(acc[c.own:], weights, g)
	if scaleRows(c.dOut, weights[:g], c.places()*c.vocabulary) {
		c.accumulate(acc, 0, g)
		return
	}
	for i, w := range weights[:g] {
		if w != 0 {
			c.accumulate(acc, i, 1)
		}
	}
}

// form is the gradient of the vectors of example i, at both ends.
func (c *wordsCell[F]) form(in []F, i int) []F {
	n, formed := c.places(), c.room(c.own)
	h, d := kernel.Dense(c.h[i*n*c.units:], n, c.units), kernel.Dense(c.dOut[i*n*c.vocabulary:], n, c.vocabulary)
	kernel.Gemm(1, d.T(), h, 0, c.vectors(formed), &c.work)
	c.first.spread(formed, in[i*n:(i+1)*n], c.first.kept[i*n*c.units:], 1)
	return formed
}

func (c *wordsCell[F]) addWhole(acc []float64, in []F, weights []float64, g int) {
	c.inner.addWhole(acc[c.own:], weights, g)
	for i, w := range weights[:g] {
		if w != 0 {
			kernel.AddTruncated(w, c.form(in, i), acc[:c.own])
		}
	}
}

func (c *wordsCell[F]) canAddWhole() bool { return c.inner.canAddWhole() }

func (c *wordsCell[F]) formsWhole(on bool) {
	c.forms = on
	c.inner.formsWhole(on)
}

// settle adds what the layers within have laid aside.
func (c *wordsCell[F]) settle() { c.inner.settle() }

func buildWords[F Float](in Shape, s Layer, behind []Layer) (layer[F], Shape, error) {
	if len(behind) > 0 {
		return nil, in, fmt.Errorf("it ends with a score for every word, but %q stands behind it; allowed: nothing (give the layers as inner)", behind[0].Kind)
	}
	first, shape, err := buildEmbedding[F](in, s, nil)
	if err != nil {
		return nil, in, err
	}
	inner, err := build[F](shape, s.Inner)
	if err != nil {
		return nil, in, err
	}
	if inner.output() != shape {
		return nil, in, fmt.Errorf("its inner layers end with %v; allowed: %v, a vector for every word", inner.output(), shape)
	}
	if in.Len() > maxValues/s.Vocabulary {
		return nil, in, fmt.Errorf("%d words in a row with %d scores each are too many", in.Len(), s.Vocabulary)
	}
	l := &words[F]{embedding: first.(*embedding[F]), sd: s.SD, inner: inner, own: s.Vocabulary * s.Units}
	return l, l.output(), nil
}
