package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/coterie-fl/coterie/internal/rng"
)

// Float is the arithmetic of a network: float32 for training, float64 where
// gradients are checked or inverted.
type Float interface{ float32 | float64 }

// Shape is what one example looks like between two layers; channels lie
// innermost. A plain vector has height and width 1.
type Shape struct{ Height, Width, Channels int }

// Len is the number of values.
func (s Shape) Len() int { return s.Height * s.Width * s.Channels }

func (s Shape) String() string {
	return fmt.Sprintf("%dx%dx%d", s.Height, s.Width, s.Channels)
}

// View names a part of the flat parameter vector.
type View struct {
	Name   string
	Offset int
	Shape  []int
}

// Len is the number of parameters in the view.
func (v View) Len() int {
	n := 1
	for _, d := range v.Shape {
		n *= d
	}
	return n
}

// layer is one step of a network. It holds no parameters and no activations:
// those are passed in, so that many workers share a layer.
type layer[F Float] interface {
	output() Shape
	views() []View // offsets count from the layer's own first parameter
	initialise(theta []F, src rand.Source)
	// prepare derives what all workers read from new parameters, for a batch of so
	// many examples.
	prepare(theta []F, examples int)
	cell(examples int) cell[F]
	// inPlace says that output may overwrite input; needsOutput that the backward
	// pass reads the output.
	inPlace() bool
	needsOutput() bool
	// oneByOne says that examples gain nothing from being taken together, neither
	// way, and that parameters may change between them on the way back.
	oneByOne() bool
}

// cell is a layer with one worker's memory.
type cell[F Float] interface {
	// forward computes the outputs of g examples.
	forward(theta, in, out []F, g int)
	// backward takes gradients back through the layer, and those of parameters
	// as the pass asks for.
	backward(p pass[F])
	// add adds the weighted sum of the examples' gradients, as kept by the last
	// backward pass with norms, to acc. An example of weight 0 is left out, and its
	// gradient stays as it is: it may belong to another sum. A layer may lay examples aside
	// until its method settle is called, if it has one.
	add(acc, in []F, weights []F, g int)
}

// wholeCell is a cell whose examples' gradients can be added as whole numbers, for sums that
// are exact. What backward says of their norms is then good to one part in 2^26, and no
// example's values depend on the others that are taken with it (docs/proofs/whole-sums.md).
type wholeCell[F Float] interface {
	// addWhole adds every example's gradient times its weight, each value rounded toward
	// zero, to acc. It may be called several times after one backward pass with norms, but
	// not beside add. An example of weight 0 is left out.
	addWhole(acc []float64, in []F, weights []float64, g int)
}

// pass is one backward step through a layer, for g examples.
type pass[F Float] struct {
	theta, in, out []F
	dOut           []F // may be overwritten
	dIn            []F // nil: not needed
	acc            []F // not nil: add the gradients' plain sum here at once
	norms          []float64
	g              int
	first          int // place of the first example among those whose gradients are kept
}

// bare is what layers without parameters share.
type bare[F Float] struct{ shape Shape }

func (b bare[F]) output() Shape             { return b.shape }
func (bare[F]) views() []View               { return nil }
func (bare[F]) initialise([]F, rand.Source) {}
func (bare[F]) prepare([]F, int)            {}
func (bare[F]) inPlace() bool               { return false }
func (bare[F]) needsOutput() bool           { return false }
func (bare[F]) oneByOne() bool              { return true }
func (bare[F]) add([]F, []F, []F, int)      {}

// uniformFan draws weights and biases from U(-1/sqrt(fan), 1/sqrt(fan)), fan being
// the number of inputs of one output: PyTorch's default for linear layers and
// convolutions (Kaiming uniform with a = sqrt(5)).
func uniformFan[F Float](theta []F, fan int, src rand.Source) {
	limit := 1 / math.Sqrt(float64(fan))
	for i := range theta {
		theta[i] = F(limit * (2*rng.Float64(src) - 1))
	}
}

// Span is the part of a parameter vector that one layer has: its weights and
// biases together.
type Span struct {
	Name     string
	From, To int
}

// Len is the number of parameters.
func (s Span) Len() int { return s.To - s.From }

// LayerSpans joins the views of every layer.
func LayerSpans(views []View) []Span {
	var out []Span
	for _, v := range views {
		name := v.Name[:max(0, strings.LastIndexByte(v.Name, '.'))]
		if n := len(out); n > 0 && out[n-1].Name == name {
			out[n-1].To = v.Offset + v.Len()
			continue
		}
		out = append(out, Span{name, v.Offset, v.Offset + v.Len()})
	}
	return out
}

// Layers are a model's layers; one without layers is one itself.
func Layers(m Model) []Span {
	if n, ok := m.(interface{ Views() []View }); ok {
		return LayerSpans(n.Views())
	}
	return []Span{{"all", 0, m.Parameters()}}
}
