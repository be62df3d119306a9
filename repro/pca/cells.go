package pca

import (
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl/method"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// cell is what came of one sum with noise.
type cell struct {
	Captured []float64 // by number of components: share of the judging rows' squared length
	Error    float64   // distance to the sum without clip and noise, over that sum's length
}

// delta of all cells: the thesis names none.
const delta = 1e-5

// noised adds noise to the sum of a clip, as the mechanism draws it: the release of a sum of
// nothing. At an infinite epsilon there is none. Above says by what noise above the
// diagonal is multiplied: sqrt(2) has it as the thesis does.
func (m *sums) noised(clip int, epsilon, above float64, seed int) ([]float64, error) {
	out := make([]float64, len(m.plain))
	if !math.IsInf(epsilon, 1) {
		nothing, err := mech.NewMomentSum(m.features, m.clips[clip], event.AddRemove)
		if err != nil {
			return nil, err
		}
		noise, err := account.AnalyticNoise(epsilon, delta, 1, event.AddRemove)
		if err != nil {
			return nil, err
		}
		family := rng.NewFamily(uint64(seed+1), "noise of second moments")
		terms := mech.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Trust: event.TrustLocal}
		if _, err := (mech.Gaussian{Multiplier: noise}).SimulateMoments(out, nothing, terms, family.Stream(clip, int(1000*epsilon))); err != nil {
			return nil, err
		}
	}
	for i, v := range m.clipped[clip] {
		if i >= m.features {
			out[i] *= above
		}
		out[i] += v
	}
	return out, nil
}

// judged finds components of a sum and asks what they capture.
func (m *sums) judged(sum []float64, components []int) (cell, error) {
	var c cell
	var apart, length float64
	for i, v := range m.plain {
		weight := 1.0
		if i >= m.features {
			weight = 2
		}
		apart, length = apart+weight*(sum[i]-v)*(sum[i]-v), length+weight*v*v
	}
	c.Error = math.Sqrt(apart / length)
	p := model.Projection{Features: m.features, Components: components[len(components)-1]}
	theta := make([]float64, p.Parameters())
	if err := method.Components(theta, sum, p); err != nil {
		return c, err
	}
	kept, next := 0.0, 0
	for k := range p.Components {
		w := theta[k*m.features : (k+1)*m.features]
		for i, v := range w {
			along := 0.0
			for j, u := range m.test[i*m.features : (i+1)*m.features] {
				along += u * w[j]
			}
			kept += v * along
		}
		if components[next] == k+1 {
			c.Captured = append(c.Captured, kept/m.length)
			next++
		}
	}
	return c, nil
}

// componentsOf are the numbers of components that are looked at.
func componentsOf(features int) []int {
	if features < 50 {
		return []int{1, min(3, features)}
	}
	return []int{1, 5, 20, 50}
}
