package model

import (
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/rng"
)

// uniformFan draws weights and biases from U(-1/sqrt(fan), 1/sqrt(fan)), fan being
// the number of inputs of one output: PyTorch's default for linear layers and
// convolutions (Kaiming uniform with a = sqrt(5)).
func uniformFan[F Float](theta []F, fan int, src rand.Source) {
	limit := 1 / math.Sqrt(float64(fan))
	for i := range theta {
		theta[i] = F(limit * (2*rng.Float64(src) - 1))
	}
}
