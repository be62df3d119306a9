package fl

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

// bareRelease is a trained vector as it is.
var bareRelease = event.Release{
	Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimNone, Trust: event.TrustNobody,
	What: event.Unprotected{},
}

// radius is the public one of a round; paper mode has none.
func (g *Group) radius(round int) float64 {
	if !g.sound() {
		return 0
	}
	return g.privacy.Radius * math.Pow(g.privacy.RadiusDecay, float64(round))
}

// priced completes what a layer's release costs: by the lattice, and by how far apart
// the hypotheses are in that layer. Nothing private enters in sound mode.
func (g *Group) priced(l *layer, e event.MetricLaplace, b Broadcast) (event.MetricLaplace, error) {
	var err error
	if g.exact() {
		e.Slack, err = g.slack(l, e, b)
	}
	if g.sound() {
		e.Spread = g.spread(l, b)
	}
	return e, err
}

// spread is the largest distance between two hypotheses in one layer.
func (g *Group) spread(l *layer, b Broadcast) float64 {
	if len(g.layers) == 1 {
		return b.Spread
	}
	var most float64
	for i := 0; i < len(b.Hypotheses); i += g.clusters.n {
		for j := 0; j < i; j += g.clusters.n {
			most = max(most, squaredDistance(b.Hypotheses[i+l.From:i+l.To], b.Hypotheses[j+l.From:j+l.To]))
		}
	}
	return math.Sqrt(most)
}

// releaseOf is a release on the run's terms, of one event a layer.
func (g *Group) releaseOf(parts []event.Event) event.Release {
	r := event.Release{
		Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: event.ClaimHeuristic, Trust: event.TrustLocal,
	}
	if g.sound() {
		r.Claim = event.ClaimMetric
	}
	if r.What = parts[0]; len(parts) > 1 {
		r.What = event.Composed{Parts: parts}
	}
	return r
}

// Price is what a round costs, from its broadcast alone: a participant can decline
// before it touches its data, and its declining tells nothing of them. In paper mode
// the radius is private: 1 stands for it, and what the lattice adds is left out.
func (g *Group) Price(b Broadcast) (event.Release, error) {
	if g.privacy.NoiseMultiplier == 0 {
		return bareRelease, nil
	}
	parts := make([]event.Event, len(g.layers))
	for i := range g.layers {
		l := &g.layers[i]
		e := event.MetricLaplace{Dimension: l.Len(), NoiseMultiplier: g.laplace.Multiplier, Radius: 1}
		if g.sound() {
			e.Radius = b.Radius * l.share
			var err error
			if e, err = g.priced(l, e, b); err != nil {
				return event.Release{}, fmt.Errorf("round %d: %w", b.Round+1, err)
			}
		}
		parts[i] = e
	}
	r := g.releaseOf(parts)
	if err := r.Validate(); err != nil {
		return event.Release{}, fmt.Errorf("round %d: %w", b.Round+1, err)
	}
	return r, nil
}

// mostBlocks bounds how many different radii PriceFrom tells apart.
const mostBlocks = 4096

// PriceFrom is what the rounds from one on cost a participant that is asked in all of
// them and has spent so much of the run's own ceiling, as one release; rounds says how
// many that are. The hypotheses are taken for equal, since how far apart they will be
// is not known before: with a spread, a switch costs more. Where the radius decays over
// more rounds than can be listed, blocks of them are priced at their smallest radius.
func (g *Group) PriceFrom(from int, spent account.Metric) (r event.Release, rounds int, err error) {
	if rounds = g.cfg.Rounds - from; from < 0 || rounds < 1 {
		return r, 0, fmt.Errorf("round %d is not among the %d rounds", from+1, g.cfg.Rounds)
	}
	if r, err = g.Price(Broadcast{Round: from, Radius: g.radius(from)}); err != nil {
		return r, 0, err
	}
	if c := g.privacy.Ceiling; c != nil && g.privacy.NoiseMultiplier > 0 {
		rounds = min(rounds, left(*c, spent, r.What))
	}
	if rounds == 0 {
		return r, 0, nil
	}
	blocks := 1
	if g.sound() && g.privacy.RadiusDecay != 1 {
		blocks = min(rounds, mostBlocks)
	}
	parts := make([]event.Event, 0, blocks)
	for i := range blocks {
		first := from + int(int64(i)*int64(rounds)/int64(blocks))
		next := from + int(int64(i+1)*int64(rounds)/int64(blocks))
		last := next - 1 // radii decay
		if r, err = g.Price(Broadcast{Round: last, Radius: g.radius(last)}); err != nil {
			return r, 0, err
		}
		parts = append(parts, event.Repeated{Times: int64(next - first), Of: r.What})
	}
	if r.What = parts[0]; len(parts) > 1 {
		r.What = event.Composed{Parts: parts}
	}
	return r, rounds, nil
}

// left is how many more releases the run's own ceiling allows.
func left(ceiling float64, spent account.Metric, e event.Event) int {
	parts := []event.Event{e}
	if all, ok := e.(event.Composed); ok {
		parts = all.Parts
	}
	var one float64
	for _, part := range parts {
		if m, ok := part.(event.MetricLaplace); ok {
			one += m.Leak() + m.Slack
		}
	}
	if n := (ceiling*(1+1e-12) - spent.Epsilon()) / one; n > 0 {
		return int(min(n+1e-9, math.MaxInt32))
	}
	return 0
}
