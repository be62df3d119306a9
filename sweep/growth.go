package sweep

import (
	"slices"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// Growth is what so many runs at this noise would cost the participant that pays the most
// for the grid, on the terms of the grid's price.
type Growth struct {
	Runs   int           `json:"runs"`
	Grid   event.Number  `json:"grid"`   // all of them composed
	Random *event.Number `json:"random"` // random stopping with so many on average; null: it has no price
}

// growth is how the prices rise with the number of runs, which must cost the same.
func (p *Plan) growth(c *counter, random *stopping) ([]Growth, error) {
	most, err := dearest(c.all)
	if err != nil {
		return nil, err
	}
	n := len(p.Points)
	counts := append([]int{1, 2, 3, 5, 7, 10, 15, 25, 35, 50, 80, 120, 200}, n)
	counts = slices.DeleteFunc(counts, func(k int) bool { return k > max(10, 2*n) })
	slices.Sort(counts)
	var out []Growth
	for _, runs := range slices.Compact(counts) {
		g, err := purchase{[]wallet{most}, []int64{int64(runs)}}.accounted(nil)
		if err != nil {
			return nil, err
		}
		one := Growth{Runs: runs, Grid: event.Number(g.Epsilon)}
		if random != nil && runs > 1 {
			if one.Random, err = p.randomly(most, runs, random.pivot); err != nil {
				return nil, err
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// randomly is the price of random stopping with so many runs on average.
func (p *Plan) randomly(w wallet, runs int, pivot bool) (*event.Number, error) {
	t := Tuning{}
	if p.Tuning != nil {
		t = *p.Tuning
	}
	trials, err := trialsOf(t, float64(runs))
	if err != nil { // the shape has no such mean
		return nil, nil
	}
	g, err := one(w).accounted(&stopping{trials, pivot})
	epsilon := event.Number(g.Epsilon)
	return &epsilon, err
}

// dearest is the wallet that pays the most.
func dearest(runs []purchase) (most wallet, err error) {
	highest := -1.0
	for _, r := range runs {
		var g account.Guarantee
		if g, err = r.accounted(nil); err != nil {
			return most, err
		}
		if g.Epsilon > highest {
			highest, most = g.Epsilon, r.kinds[0]
		}
	}
	return most, nil
}
