package sweep

import (
	"errors"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// prices are what one run and the whole grid would cost at the noise of charged tuning,
// and beside them what that costs itself, its scores included.
func (t *tuner) prices(tuned fl.Privacy) ([]Price, error) {
	one, err := t.composed(WayOne, 1)
	if err != nil {
		return nil, err
	}
	grid, err := t.composed(WayGrid, len(t.plan.Points))
	if err != nil {
		return nil, err
	}
	random := Price{Way: WayRandom, Runs: event.Number(t.plan.Trials.Mean), Pivot: true, Privacy: tuned.Statement, Proved: tuned.Proved}
	noise := make([]float64, len(t.pivot.Participants))
	for i := range noise {
		noise[i] = t.pivot.Participants[i].Plan.Noise
	}
	random.Noise = medianOf(noise)
	return []Price{one, grid, random}, nil
}

// composed is the price of so many runs like the pivot.
func (t *tuner) composed(way string, runs int) (Price, error) {
	k, rounds := len(t.pivot.Participants), t.plan.Base.Algorithm.Rounds
	costs, proved, noise, errs := make([]account.Guarantee, k), make([]*account.Guarantee, k), make([]float64, k), make([]error, k)
	t.pivot.Each(k, func(_, i int) {
		w := wallet{plan: t.pivot.Participants[i].Plan, paid: fl.Paid{Rounds: rounds}}
		if costs[i], proved[i], errs[i] = (purchase{[]wallet{w}, []int64{int64(runs)}}).cost(nil); errs[i] == nil {
			w.plan.Target.Runs = runs
			errs[i] = w.plan.Calibrate(rounds, 0)
			noise[i] = w.plan.Noise
		}
	})
	if err := errors.Join(errs...); err != nil {
		return Price{}, err
	}
	s, err := fl.StateSpends(t.plan.Base, costs, proved, t.federation.NotCovered)
	if way == WayGrid {
		cover(&s)
	}
	return Price{Way: way, Runs: event.Number(runs), Privacy: s.Statement, Proved: s.Proved, Noise: medianOf(noise)}, err
}

// medianOf is the median participant's noise.
func medianOf(noise []float64) *event.Number {
	median, _ := fl.MedianAndMax(noise)
	of := event.Number(median)
	return &of
}
