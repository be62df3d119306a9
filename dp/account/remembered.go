package account

import (
	"fmt"
	"sync"
)

// remembered is the least noise of plans that were asked for before: cells of a sweep, seeds
// of a run and silos of one size ask for the same again, and the search takes a quarter of a
// small silo's whole training. It holds nothing but what follows from the plan, and whoever
// takes a noise of it prices the plan with it once more (checked).
var remembered struct {
	sync.Mutex
	noise map[string]float64
}

// mostRemembered is how many there are at most: a MB or two. Then it begins anew.
const mostRemembered = 1 << 13

// remember is the noise that find found for the plan, or what it finds now. Plans with other
// charges beside the steps, or on a lattice, are not remembered: their parts have no name.
func (p Training) remember(m Method, epsilon, delta float64, orders []float64, find func() (float64, error)) (float64, error) {
	if len(p.Also) > 0 || p.Lattice != nil || len(orders) > 0 {
		return find()
	}
	p.Noise = 0
	name := fmt.Sprintf("%+v %v %v %v", p, m, epsilon, delta) // every field, numbers to the last digit
	remembered.Lock()
	noise, found := remembered.noise[name]
	remembered.Unlock()
	if found {
		return noise, nil
	}
	noise, err := find()
	if err != nil {
		return noise, err
	}
	remembered.Lock()
	defer remembered.Unlock()
	if remembered.noise == nil || len(remembered.noise) >= mostRemembered {
		remembered.noise = map[string]float64{}
	}
	remembered.noise[name] = noise
	return noise, nil
}
