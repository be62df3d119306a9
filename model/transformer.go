package model

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
)

// transformerSD is the deviation of the weights that GPT-2 starts from.
const transformerSD = 0.02

// TransformerLayers are GPT-2's, smaller: vectors of words and positions, blocks that look
// back and then think, each on normalised values and added to what it started from, a last
// norm, and scores by the words' own vectors. What ends a block starts smaller by the root
// of the number of such ends, as GPT-2's.
func TransformerLayers(m config.Model, vocabulary int) ([]Layer, error) {
	if m.Blocks < 1 || m.Width < 2 || m.Heads < 1 || m.Width%m.Heads != 0 {
		return nil, fmt.Errorf("blocks %d, width %d, heads %d; allowed: 1 or more, 2 or more, and heads that divide the width", m.Blocks, m.Width, m.Heads)
	}
	small := transformerSD / math.Sqrt(float64(2*m.Blocks))
	inner := []Layer{{Kind: "positions", SD: transformerSD}}
	for range m.Blocks {
		inner = append(inner,
			Layer{Kind: "residual", Inner: []Layer{
				{Kind: "layer-norm"},
				{Kind: "linear", Units: 3 * m.Width, Each: true, SD: transformerSD},
				{Kind: "attention", Heads: m.Heads},
				{Kind: "linear", Units: m.Width, Each: true, SD: small},
			}},
			Layer{Kind: "residual", Inner: []Layer{
				{Kind: "layer-norm"},
				{Kind: "linear", Units: 4 * m.Width, Each: true, SD: transformerSD},
				{Kind: "gelu"},
				{Kind: "linear", Units: m.Width, Each: true, SD: small},
			}},
		)
	}
	inner = append(inner, Layer{Kind: "layer-norm"})
	return []Layer{{Kind: "words", Vocabulary: vocabulary, Units: m.Width, SD: transformerSD, Inner: inner}}, nil
}
