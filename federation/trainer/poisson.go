package trainer

import (
	crypto "crypto/rand"
	"fmt"
	"math"
	"math/rand/v2"
)

// poisson draws batches in which every example is with one probability,
// independently. Who is in a batch must stay secret, so it is system entropy.
type poisson struct {
	source *rand.ChaCha8
	below  uint64 // an example is in if a word is below
	always bool
}

func newPoisson(rate float64) (*poisson, error) {
	var seed [32]byte
	if _, err := crypto.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("trainer: no entropy to draw batches: %w", err)
	}
	// Rounded down: the true rate is never above the one that is accounted.
	return &poisson{source: rand.NewChaCha8(seed), below: uint64(math.Min(rate, 1-0x1p-53) * 0x1p64), always: rate >= 1}, nil
}

func (p *poisson) batch(examples int) []int {
	var batch []int
	for i := range examples {
		if p.always || p.source.Uint64() < p.below {
			batch = append(batch, i)
		}
	}
	return batch
}

// probe remembers two gradients of a batch, to ask for them again, alone: a trainer
// that mixes examples is caught before anything is noised.
type probe struct {
	at   []int
	seen [][]float64
}

func (p *poisson) probe(batch int) probe {
	r := rand.New(p.source)
	return probe{at: []int{r.IntN(batch), r.IntN(batch)}, seen: make([][]float64, 2)}
}

func (p *probe) see(k int, gradient []float64) {
	for i, at := range p.at {
		if at == k {
			p.seen[i] = append(p.seen[i][:0], gradient...)
		}
	}
}

// tolerance is by how much a gradient may differ when it is computed in another
// batch, relative to its norm: graphics cards sum in another order.
const tolerance = 1e-3

func (p *probe) alone(t *Trainer, theta []float64, batch []int) error {
	for i, at := range p.at {
		err := t.gradients(theta, batch[at:at+1], func(_ int, gradient []float64) error {
			var apart, size float64
			for j, g := range gradient {
				d := g - p.seen[i][j]
				apart += d * d
				size += g * g
			}
			if math.Sqrt(apart) > tolerance*math.Sqrt(size)+1e-30 {
				return fmt.Errorf("it is another one alone than among others, so it depends on other examples and no example is protected; take batch statistics out of the model")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
