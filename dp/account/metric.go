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
