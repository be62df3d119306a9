package model

import (
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
)

// A layer that only these tests know: all that a new one has to say, in one file.
func init() {
	registerLayer(layerKind{name: "gain", single: buildGain[float32], double: buildGain[float64]})
}

func buildGain[F Float](in Shape, _ Layer, _ []Layer) (layer[F], Shape, error) {
	return &gain[F]{bare[F]{in}}, in, nil
}

// gain multiplies all values by one factor, which is trained. What it does not say it
// has from bare: it works on whole batches, and not in place.
type gain[F Float] struct{ bare[F] }

func (g *gain[F]) views() []View                       { return []View{{Name: "factor", Shape: []int{1}}} }
func (g *gain[F]) initialise(theta []F, _ rand.Source) { theta[0] = 1 }
func (g *gain[F]) oneByOne() bool                      { return false }
func (g *gain[F]) cell(examples int) cell[F]           { return &gainCell[F]{kept: make([]F, examples)} }

// gainCell is the layer with one worker's memory.
type gainCell[F Float] struct {
	kept []F // every example's gradient, until its weight is known
}

func (c *gainCell[F]) forward(theta, in, out []F, _ int) { kernel.Scale(out, theta[0], in) }

func (c *gainCell[F]) backward(p pass[F]) {
	each, kept := len(p.in)/p.g, c.kept[p.first:][:p.g]
	for i := range kept {
		kept[i] = F(kernel.Dot(p.in[i*each:(i+1)*each], p.dOut[i*each:(i+1)*each]))
		if p.norms != nil {
			p.norms[i] += float64(kept[i]) * float64(kept[i])
		}
	}
	if p.dIn != nil {
		kernel.Scale(p.dIn, p.theta[0], p.dOut[:len(p.dIn)])
	}
	if p.acc != nil { // after dIn: the sum may be the parameters themselves
		for _, own := range kept {
			p.acc[0] += own
		}
	}
}

func (c *gainCell[F]) add(acc, _, weights []F, g int) {
	for i, w := range weights[:g] {
		acc[0] += w * c.kept[i]
	}
}
