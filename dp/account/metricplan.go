package account

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// MetricPlan is a number of equal d-private releases by one participant.
type MetricPlan struct {
	Dimension       int
	NoiseMultiplier float64
	Releases        int64
	Radius          float64 // 0: not told, and losses at a distance unknown
	Distance        float64 // 0: not asked
}

// MetricCost is what a MetricPlan loses.
type MetricCost struct {
	Guarantee
	PerRelease float64
	AtDistance float64
}

// Cost is the sum of the releases' losses at their radius (DESIGN, erratum 7), and
// the loss at a fixed distance if one was asked for.
func (p MetricPlan) Cost() (MetricCost, error) {
	one := event.MetricLaplace{Dimension: p.Dimension, NoiseMultiplier: p.NoiseMultiplier, Radius: p.Radius}
	if p.Radius == 0 {
		one.Radius = 1 // epsilon at the radius does not depend on it
	}
	if err := event.Validate(one); err != nil {
		return MetricCost{}, fmt.Errorf("%w: %w", ErrParameter, err)
	}
	if p.Releases < 0 {
		return MetricCost{}, parameter("releases", p.Releases, "a count >= 0")
	}
	if !(p.Distance >= 0) || math.IsInf(p.Distance, 1) {
		return MetricCost{}, parameter("distance", p.Distance, "a finite number >= 0")
	}
	if p.Distance > 0 && p.Radius == 0 {
		return MetricCost{}, parameter("radius", p.Radius, "the public radius: a loss at a distance needs it")
	}
	spent := Metric{
		Releases: p.Releases, Same: p.Releases, Dimension: p.Dimension, Multiplier: p.NoiseMultiplier,
		Distance: float64(p.Releases) * one.Epsilon(),
	}
	cost := MetricCost{PerRelease: one.Leak(), AtDistance: spent.At(p.Distance)}
	cost.Guarantee = Guarantee{
		Claim: event.ClaimMetric, Unit: event.UnitNeighbourhood, Relation: event.Metric, Trust: event.TrustLocal,
		Epsilon: spent.Epsilon(), Sampling: string(event.FullBatch), Radius: p.Radius, Accountant: "metric",
		NotCovered: []string{
			"points further apart than the radius, which lose in proportion to their distance",
			"group membership: the choice of hypothesis uses private data",
			"early stopping and validation data", "counts, losses and timings sent beside the releases",
		},
	}
	return cost, nil
}
