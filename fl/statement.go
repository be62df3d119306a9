package fl

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
)

// Privacy is the statement about a run of Algorithm 1, with the budgets that
// participants spent.
type Privacy struct {
	event.Statement
	NoiseMultiplier   event.Number `json:"noise_multiplier"`
	EpsilonPerRelease event.Number `json:"epsilon_per_release"`
	MedianEpsilon     event.Number `json:"median_epsilon"`
	MaxEpsilon        event.Number `json:"max_epsilon"`
	// EpsilonAnyUpdate and EpsilonSwitch bound the most exposed participant's loss
	// in sound mode: against any other update of the same hypotheses, and against
	// a participant that chooses other hypotheses too.
	EpsilonAnyUpdate *event.Number `json:"epsilon_any_update"`
	EpsilonSwitch    *event.Number `json:"epsilon_switch"`
	// Layers is what was sanitised apart; absent if updates were noised in one piece.
	Layers           []LayerTerms  `json:"layers,omitempty"`
	Ceiling          *event.Number `json:"ceiling"`
	Declined         int           `json:"declined"`          // clients that declined at least once
	DeclinedRequests int           `json:"declined_requests"` // requests that were declined
}

// LayerTerms is what one release says about one layer, noised on its own.
type LayerTerms struct {
	Name       string `json:"name"`
	Parameters int    `json:"parameters"`
	// Radius is the layer's share of the first round's public radius; null in paper
	// mode, where it is the layer's own length.
	Radius *event.Number `json:"radius"`
	// EpsilonPerRelease is what a release loses on the layer at its radius. Over the
	// layers they add up to the release's.
	EpsilonPerRelease event.Number `json:"epsilon_per_release"`
}

// DescribeLayers adds to a statement what was sanitised apart. In sound mode its
// radius is then the distance, over all layers, within which a release loses n/nu.
func (g *Group) DescribeLayers(p *Privacy) {
	if g.privacy.Sanitise != SanitiseLayers || g.privacy.NoiseMultiplier == 0 {
		return
	}
	var parts []bounded
	for _, l := range g.layers {
		terms := LayerTerms{
			Name: l.Name, Parameters: l.Len(), EpsilonPerRelease: event.Number(float64(l.Len()) / g.privacy.NoiseMultiplier),
		}
		if g.sound() {
			radius := event.Number(g.privacy.Radius * l.share)
			terms.Radius = &radius
			parts = append(parts, bounded{event: event.MetricLaplace{
				Dimension: l.Len(), NoiseMultiplier: g.privacy.NoiseMultiplier, Radius: float64(radius),
			}})
		}
		p.Layers = append(p.Layers, terms)
	}
	if g.sound() {
		radius := event.Number(joint(parts).Radius)
		p.Radius = &radius
	}
}

// stateTerms says what the releases of a run protect, and what they do not.
func stateTerms(run config.Run) event.Statement {
	s := event.Statement{
		Unit: event.UnitNeighbourhood, Relation: event.Metric, Trust: event.TrustLocal,
		Sampling: run.Algorithm.Sampling,
	}
	p := run.Privacy
	switch {
	case p.NoiseMultiplier == 0:
		s.Claim, s.Unit, s.Relation, s.Trust = event.ClaimNone, event.UnitClient, event.ReplaceOne, event.TrustNobody
		s.NotCovered = append(s.NotCovered, "everything: the trained vectors are sent as they are")
	case run.Algorithm.Mode == "sound":
		radius := event.Number(p.Radius)
		s.Claim, s.Radius = event.ClaimMetric, &radius
		s.NotCovered = append(s.NotCovered,
			"group membership: a change of the chosen hypothesis moves further than the radius (epsilon_switch bounds it)",
			"updates further apart than the radius lose in proportion, up to twice epsilon (epsilon_any_update)")
	default:
		s.Claim = event.ClaimHeuristic
		s.NotCovered = append(s.NotCovered,
			"the radius is each update's own length, which is private: the size of the noise gives it away, and no proof covers updates of different length",
			"group membership: a change of the chosen hypothesis moves further than the radius")
		if p.Sanitise == SanitiseLayers {
			s.NotCovered = append(s.NotCovered, "every layer has a radius of its own: the size of its noise gives its length away, too")
		}
	}
	s.NotCovered = append(s.NotCovered, "participation: the server sees who is asked and who declines")
	if stop := run.Algorithm.Stop; stop.Patience > 0 || stop.Return == "best" {
		s.NotCovered = append(s.NotCovered,
			"validation clients: their raw losses decide when training stops and which round is returned")
	}
	s.NotCovered = append(s.NotCovered, "tuning: the settings were chosen without charging anyone")
	if p.NoiseMultiplier > 0 && p.Noise == "simulated" {
		s.NotCovered = append(s.NotCovered, "arithmetic: seeded float noise, for simulation only")
	}
	if p.NoiseMultiplier > 0 && p.Noise == NoiseSeeded {
		s.NotCovered = append(s.NotCovered, "everything, against whoever knows the seed: the noise is exact but repeatable")
	}
	if p.NoiseMultiplier > 0 && p.Noise == "exact" {
		s.NotCovered = append(s.NotCovered, "timing: how long a release takes depends on its noise")
	}
	return s
}

// StatePrivacy sums up what a run's participants spent. parameters is the length
// of what each of them releases.
func StatePrivacy(run config.Run, participants []Participant, parameters, declined, declinedRequests int) Privacy {
	p := Privacy{
		Statement:       stateTerms(run),
		NoiseMultiplier: event.Number(run.Privacy.NoiseMultiplier),
		Declined:        declined, DeclinedRequests: declinedRequests,
	}
	if c := run.Privacy.Ceiling; c != nil {
		ceiling := event.Number(*c)
		p.Ceiling = &ceiling
	}
	// n/nu, infinite without noise.
	p.EpsilonPerRelease = event.Number(float64(parameters) / run.Privacy.NoiseMultiplier)
	totals := make([]float64, len(participants))
	worst := 0.0
	for i := range participants {
		totals[i] = participants[i].Account.Epsilon()
		worst = max(worst, participants[i].Switch)
	}
	median, most := MedianAndMax(totals)
	p.MedianEpsilon, p.MaxEpsilon, p.Epsilon = event.Number(median), event.Number(most), event.Number(most)
	if run.Algorithm.Mode == "sound" && run.Privacy.NoiseMultiplier > 0 {
		twice, change := event.Number(2*most), event.Number(worst)
		p.EpsilonAnyUpdate, p.EpsilonSwitch = &twice, &change
	}
	return p
}

// MedianAndMax sorts values. The median of an even number is the mean of the
// middle two.
func MedianAndMax(values []float64) (median, most float64) {
	if len(values) == 0 {
		return 0, 0
	}
	slices.Sort(values)
	n := len(values)
	median = values[n/2]
	if n%2 == 0 && values[n/2-1] != values[n/2] {
		median = (values[n/2-1] + values[n/2]) / 2
	}
	return median, values[n-1]
}
