package trainer

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// probe remembers two gradients of a batch, to ask for them again, alone: a trainer
// that mixes examples is caught, and what it says does not count. The owner is told;
// the server is not.
type probe struct {
	at   []int
	seen [][]float64
}

func newProbe(batch int) probe {
	return probe{at: []int{rand.IntN(batch), rand.IntN(batch)}, seen: make([][]float64, 2)}
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
