package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

func init() {
	registerLayer(layerKind{name: "embedding", keys: []string{"vocabulary", "units"}, single: buildEmbedding[float32], double: buildEmbedding[float64]})
}

// embedding gives every word of a row its vector: the row's values are words' numbers,
// and a place of the output is a word. Vectors lie one after another.
type embedding[F Float] struct {
	bare[F]
	vocabulary, words, units int
}

func (e *embedding[F]) views() []View {
	return []View{{Name: "weight", Shape: []int{e.vocabulary, e.units}}}
}

// initialise draws from N(0, 1), as PyTorch does.
func (e *embedding[F]) initialise(theta []F, src rand.Source) {
	for i := range theta {
		theta[i] = F(rng.Normal(src))
	}
}

// check refuses a row with a value that is no word.
func (e *embedding[F]) check(row []F) error {
	for i, v := range row {
		if _, ok := e.word(v); !ok {
			return fmt.Errorf("value %d is %v, which is no word; allowed: whole numbers from 0 to %d, as they are: not standardised", i, v, e.vocabulary-1)
		}
	}
	return nil
}

// word is a value's number.
func (e *embedding[F]) word(v F) (int, bool) {
	if !(v >= 0 && v < F(e.vocabulary)) {
		return 0, false
	}
	return int(v), F(int(v)) == v
}

func (e *embedding[F]) cell(examples int) cell[F] {
	return &embeddingCell[F]{embedding: e, kept: make([]F, examples*e.words*e.units), at: make([]int32, e.vocabulary)}
}

type embeddingCell[F Float] struct {
	*embedding[F]
	// kept is every example's gradient until its weight is known: that of a word's vector
	// at the word's first place in the row, 0 at its others.
	kept []F
	at   []int32 // 1 + the first place of every word in a row; 0 of all others, and between rows
	// noise is what is added to the vectors of the next words that are read; what was
	// added is cut off.
	noise []F
}

func (c *embeddingCell[F]) forward(theta, in, out []F, _ int) {
	for i, v := range in {
		vector := out[i*c.units : (i+1)*c.units]
		if word, ok := c.word(v); ok {
			copy(vector, theta[word*c.units:])
		} else {
			fill(vector, F(math.NaN())) // never a wrong answer
		}
	}
	if len(c.noise) > 0 {
		kernel.Axpy(1, c.noise[:len(out)], out)
		c.noise = c.noise[len(out):]
	}
}

func (c *embeddingCell[F]) backward(p pass[F]) {
	clear(p.dIn) // numbers of words have no slope
	n := c.words * c.units
	for i := range p.g {
		row, d := p.in[i*c.words:(i+1)*c.words], p.dOut[i*n:(i+1)*n]
		switch {
		case p.acc != nil:
			c.spread(p.acc, row, d, 1)
		case p.norms != nil:
			own := c.kept[(p.first+i)*n:][:n]
			c.gather(own, row, d)
			p.norms[i] += kernel.SquaredNorm(own)
		}
	}
}

// gather adds up what belongs to one word. The sums are formed before their norm is
// taken: two large gradients that cancel must not be added later, with an error that is
// larger than the clip.
func (c *embeddingCell[F]) gather(own, row, d []F) {
	clear(own)
	for place, v := range row {
		word, ok := c.word(v)
		if !ok {
			fill(own, F(math.NaN()))
			break
		}
		if c.at[word] == 0 {
			c.at[word] = int32(place) + 1
		}
		first := int(c.at[word]) - 1
		kernel.Axpy(1, d[place*c.units:(place+1)*c.units], own[first*c.units:(first+1)*c.units])
	}
	for _, v := range row {
		if word, ok := c.word(v); ok {
			c.at[word] = 0
		}
	}
}

// spread adds a row's gradient, times its weight, to those of its words' vectors.
func (c *embeddingCell[F]) spread(acc, row, gradient []F, weight F) {
	for place, v := range row {
		if word, ok := c.word(v); ok {
			kernel.Axpy(weight, gradient[place*c.units:(place+1)*c.units], acc[word*c.units:(word+1)*c.units])
		}
	}
}

func (c *embeddingCell[F]) add(acc, in, weights []F, g int) {
	n := c.words * c.units
	for i, w := range weights[:g] {
		if w != 0 {
			c.spread(acc, in[i*c.words:(i+1)*c.words], c.kept[i*n:(i+1)*n], w)
		}
	}
}

// addWhole adds what gather has laid at the first place of every word of a row.
func (c *embeddingCell[F]) addWhole(acc []float64, in []F, weights []float64, g int) {
	for k, w := range weights[:g] {
		if w == 0 {
			continue
		}
		for place, v := range in[k*c.words : (k+1)*c.words] {
			if word, ok := c.word(v); ok {
				kernel.AddTruncated(w, c.kept[(k*c.words+place)*c.units:][:c.units], acc[word*c.units:(word+1)*c.units])
			}
		}
	}
}

func buildEmbedding[F Float](in Shape, s Layer, _ []Layer) (layer[F], Shape, error) {
	if s.Vocabulary < 1 || s.Units < 1 {
		return nil, in, fmt.Errorf("vocabulary %d, units %d; allowed: 1 or more, 1 or more", s.Vocabulary, s.Units)
	}
	if s.Vocabulary*s.Units > maxParameters || in.Len()*s.Units > maxValues {
		return nil, in, fmt.Errorf("%d words in a row, %d in all and %d units are too many", in.Len(), s.Vocabulary, s.Units)
	}
	e := &embedding[F]{bare[F]{Shape{in.Len(), 1, s.Units}}, s.Vocabulary, in.Len(), s.Units}
	return e, e.shape, nil
}

// wordsFirst refuses an embedding of what is not the example itself: other layers' values
// are no words.
func wordsFirst(layers []Layer, first bool) error {
	for i, s := range layers {
		if (s.Kind == "embedding" || s.Kind == "words") && (i > 0 || !first) {
			return fmt.Errorf("layer %d (%s) stands behind other layers, whose values are no words; allowed: as the first", i, s.Kind)
		}
		for _, within := range [][]Layer{s.Inner, s.Shortcut} {
			if err := wordsFirst(within, first && i == 0 && s.Kind != "words"); err != nil {
				return fmt.Errorf("layer %d (%s): %w", i, s.Kind, err)
			}
		}
	}
	return nil
}
