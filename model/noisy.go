package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Noise is Gaussian noise on what a model reads of an example: on the vectors of its words,
// or else on the values of a row or picture. It is keyed, so that two deviations have the
// same noise but for its size.
type Noise struct {
	Deviation float64
	Seed      uint64
	Neighbour int // which of an example's noisy neighbours it makes
}

// noiseSource draws the noise of examples one by one.
type noiseSource struct {
	family    rng.Family
	neighbour int
}

func (n Noise) source() noiseSource {
	return noiseSource{rng.NewFamily(n.Seed, "noisy neighbours"), n.Neighbour}
}

// addNoise adds an example's noise to values.
func addNoise[F Float](s noiseSource, deviation float64, values []F, example int) {
	var stream rng.Stream
	stream.Key(&s.family, s.neighbour, example)
	for i := range values {
		values[i] += F(deviation * stream.Normal())
	}
}

// noisyLearner is a learner that reads more than rows.
type noisyLearner interface {
	noisyLosses(dst, theta []float64, c *data.Client, n Noise) error
	inputSquares(theta []float64, c *data.Client) (sum, count float64, err error)
}

// NoisyLosses is Learner.Losses of examples with noise. What an example is compared with,
// its target or its next words, has none.
func NoisyLosses(l Learner, dst, theta []float64, c *data.Client, n Noise) error {
	if !(n.Deviation >= 0) || math.IsInf(n.Deviation, 0) {
		return fmt.Errorf("noise of deviation %v; allowed: 0 or more", n.Deviation)
	}
	if own, ok := l.(noisyLearner); ok {
		return own.noisyLosses(dst, theta, c, n)
	}
	if c.Images != nil {
		return fmt.Errorf("the model needs rows, the client has pictures")
	}
	noisy, source := *c, n.source()
	noisy.X = append([]float64(nil), c.X...)
	for i := range c.Y {
		addNoise(source, n.Deviation, noisy.X[i*c.Features:(i+1)*c.Features], i)
	}
	return l.Losses(dst, theta, &noisy)
}

// InputRMS is the root mean square of what Noise is added to, over all of c's examples: the
// unit that its deviation is best told in.
func InputRMS(l Learner, theta []float64, c *data.Client) (float64, error) {
	sum, count := kernel.SquaredNorm(c.X), float64(len(c.X))
	if own, ok := l.(noisyLearner); ok {
		var err error
		if sum, count, err = own.inputSquares(theta, c); err != nil {
			return 0, err
		}
	}
	return math.Sqrt(sum / max(1, count)), nil
}

func (l *networkLearner[F]) noisyLosses(dst, theta []float64, c *data.Client, n Noise) error {
	l.engine.noise = &chunkNoise{source: n.source(), deviation: n.Deviation}
	defer func() { l.engine.noise = nil }()
	return l.Losses(dst, theta, c)
}

func (l *networkLearner[F]) inputSquares(theta []float64, c *data.Client) (sum, count float64, err error) {
	vectors := l.engine.network.chain.vectors()
	for from := 0; from < c.Len(); from += blockSize {
		n := min(blockSize, c.Len()-from)
		if err := l.lay(theta, c, identity(&l.every, from+n)[from:], l.judged); err != nil {
			return 0, 0, err
		}
		if vectors == nil {
			sum, count = sum+kernel.SquaredNorm(l.ex.X), count+float64(len(l.ex.X))
			continue
		}
		for _, v := range l.ex.X {
			if word, ok := vectors.word(v); ok {
				sum += kernel.SquaredNorm(l.theta[word*vectors.units : (word+1)*vectors.units])
				count += float64(vectors.units)
			}
		}
	}
	return sum, count, nil
}

// chunkNoise is the noise of a block of examples, which an engine adds chunk by chunk.
type chunkNoise struct {
	source    noiseSource
	deviation float64
	first     int // example that the block's first row is
}

// noised are the inputs of a chunk's rows with noise, or the inputs themselves where its
// cell adds the noise to their words' vectors.
func (e *Engine[F]) noised(w *workspace[F], x []F, rows []int) []F {
	n := e.noise
	vectors := w.cell.vectors()
	if vectors == nil {
		in := e.network.Input().Len()
		copy(w.x, x)
		for k, i := range rows {
			addNoise(n.source, n.deviation, w.x[k*in:(k+1)*in], n.first+i)
		}
		return w.x[:len(x)]
	}
	each := vectors.words * vectors.units
	if len(w.noise) < e.chunk*each {
		w.noise = make([]F, e.chunk*each)
	}
	clear(w.noise)
	for k, i := range rows {
		addNoise(n.source, n.deviation, w.noise[k*each:(k+1)*each], n.first+i)
	}
	vectors.noise = w.noise[:len(rows)*each]
	return x
}

// vectors is the layer that gives words their vectors; nil: examples are no words.
func (c *chain[F]) vectors() *embedding[F] {
	if len(c.layers) == 0 {
		return nil
	}
	switch first := c.layers[0].(type) {
	case *words[F]:
		return first.embedding
	case *embedding[F]:
		return first
	}
	return nil
}

// vectors is that layer's cell.
func (c *chainCell[F]) vectors() *embeddingCell[F] {
	if len(c.cells) == 0 {
		return nil
	}
	switch first := c.cells[0].(type) {
	case *wordsCell[F]:
		return first.first
	case *embeddingCell[F]:
		return first
	}
	return nil
}
