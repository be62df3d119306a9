package model

import (
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

func init() {
	registerLayer(layerKind{name: "positions", keys: []string{"sd"}, single: buildPositions[float32], double: buildPositions[float64]})
}

// positions adds a vector to every place, which tells where it is: layers behind it that
// treat all places alike would not know.
type positions[F Float] struct {
	bare[F]
	sd float64
}

func (l *positions[F]) oneByOne() bool { return false }

func (l *positions[F]) views() []View {
	return []View{{Name: "weight", Shape: []int{l.shape.Height * l.shape.Width, l.shape.Channels}}}
}

// initialise draws from N(0, 1), as PyTorch does for embeddings, or with the deviation given.
func (l *positions[F]) initialise(theta []F, src rand.Source) {
	sd := l.sd
	if sd == 0 {
		sd = 1
	}
	normal(theta, sd, src)
}

func (l *positions[F]) cell(examples int) cell[F] {
	return &positionsCell[F]{positions: l, kept: make([]F, examples*l.shape.Len())}
}

type positionsCell[F Float] struct {
	*positions[F]
	kept []F // gradients, until their weights are known
}

func (c *positionsCell[F]) forward(theta, in, out []F, _ int) {
	copy(out, in)
	kernel.AddToRows(out, theta)
}

func (c *positionsCell[F]) backward(p pass[F]) {
	n := c.shape.Len()
	d := p.dOut[:p.g*n]
	copy(p.dIn, d)
	switch {
	case p.acc != nil:
		kernel.SumRows(p.acc, d)
	case p.norms != nil:
		copy(c.kept, d)
		for i := range p.g {
			p.norms[i] += kernel.SquaredNorm(d[i*n : (i+1)*n])
		}
	}
}

func (c *positionsCell[F]) add(acc, _, weights []F, g int) {
	n := c.shape.Len()
	for i, w := range weights[:g] {
		if w != 0 {
			kernel.Axpy(w, c.kept[i*n:(i+1)*n], acc)
		}
	}
}

func (c *positionsCell[F]) addWhole(acc []float64, _ []F, weights []float64, g int) {
	addWholeRows(acc, c.kept, weights[:g])
}

func buildPositions[F Float](in Shape, s Layer, _ []Layer) (layer[F], Shape, error) {
	return &positions[F]{bare[F]{in}, s.SD}, in, nil
}
