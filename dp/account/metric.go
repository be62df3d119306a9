// Package account reads events and says what they cost: metric, RDP, zCDP, PLD, node, tuning; and filters.
package account

import (
	"math"

	"github.com/coterie-fl/coterie/dp/event"
)

// Metric is what one participant has lost by d-private releases. The zero value
// is a fresh participant.
type Metric struct {
	Releases int64
	// Equal releases are counted, so that six of 2/5 are 12/5 and not a sum of
	// rounded sums.
	Closed     float64 // leaks of earlier, different releases
	Dimension  int     // of each of the last Same releases
	Multiplier float64
	Same       int64
	Distance   float64 // sum of epsilon_t: the loss per unit of distance
	Slack      float64 // what the lattice of exact noise adds
	Bare       int64   // releases without noise: whatever they show is shown
}

// AddUnprotected records a release without noise.
func (m *Metric) AddUnprotected() {
	m.Releases++
	m.Bare++
}

// Add records a release.
func (m *Metric) Add(e event.MetricLaplace) {
	if e.Dimension != m.Dimension || e.NoiseMultiplier != m.Multiplier {
		m.Closed += m.run()
		m.Dimension, m.Multiplier, m.Same = e.Dimension, e.NoiseMultiplier, 0
	}
	m.Same++
	m.Releases++
	m.Distance += e.Epsilon()
	m.Slack += e.Slack
}

// Epsilon is the sum of epsilon_t*r_t, the papers' number: the loss if in every
// round the other point lay at that round's radius.
func (m Metric) Epsilon() float64 {
	if m.Bare > 0 {
		return math.Inf(1)
	}
	return m.Closed + m.run() + m.Slack
}

// run is the leak of the last, equal releases.
func (m Metric) run() float64 {
	if m.Same == 0 {
		return 0
	}
	return float64(m.Same) * float64(m.Dimension) / m.Multiplier
}

// At is the loss between two participants whose points stay a fixed distance apart.
func (m Metric) At(distance float64) float64 {
	if m.Bare > 0 {
		return math.Inf(1)
	}
	return m.Distance*distance + m.Slack
}

// Allows says whether a further release keeps the loss within the ceiling, but
// for a rounding error of 1e-12 relative.
func (m Metric) Allows(e event.MetricLaplace, ceiling float64) bool {
	m.Add(e)
	return m.Epsilon() <= ceiling*(1+1e-12)
}

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
		return MetricCost{}, misfit{err}
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
