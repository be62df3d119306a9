package protect

import (
	"math"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/cluster"
)

// priced completes what a layer's release costs: by the lattice, and by how far apart
// the hypotheses are in that layer. Nothing private enters in sound mode.
func (u *update) priced(l *layer, e event.MetricLaplace, b *fl.Broadcast) (event.MetricLaplace, error) {
	var err error
	if u.exact() {
		e.Slack, err = u.slack(l, e, b)
	}
	if u.sound() {
		e.Spread = u.spread(l, b)
	}
	return e, err
}

// spread is the largest distance between two hypotheses in one layer.
func (u *update) spread(l *layer, b *fl.Broadcast) float64 {
	if len(u.layers) == 1 {
		return b.Spread
	}
	var most float64
	for i := 0; i < len(b.Hypotheses); i += u.n {
		for j := 0; j < i; j += u.n {
			most = max(most, cluster.SquaredDistance(b.Hypotheses[i+l.From:i+l.To], b.Hypotheses[j+l.From:j+l.To]))
		}
	}
	return math.Sqrt(most)
}

// releaseOf is a release on the run's terms, of one event a layer.
func (u *update) releaseOf(parts []event.Event) event.Release {
	r := event.Release{
		Unit: event.UnitNeighbourhood, Relation: event.Metric, Claim: u.claim, Trust: event.TrustLocal,
	}
	if r.What = parts[0]; len(parts) > 1 {
		r.What = event.Composed{Parts: parts}
	}
	return r
}

// Price is what a round costs, from its broadcast alone: a participant can decline
// before it touches its data, and its declining tells nothing of them. In paper mode
// the radius is private: 1 stands for it, and what the lattice adds is left out.
func (u *update) Price(b *fl.Broadcast) (event.Release, bool, error) {
	parts := make([]event.Event, len(u.layers))
	for i := range u.layers {
		l := &u.layers[i]
		e := event.MetricLaplace{Dimension: l.Len(), NoiseMultiplier: u.laplace.Multiplier, Radius: 1}
		if u.sound() {
			e.Radius = b.Radius * l.share
			var err error
			if e, err = u.priced(l, e, b); err != nil {
				return event.Release{}, false, err
			}
		}
		parts[i] = e
	}
	r := u.releaseOf(parts)
	return r, true, r.Validate()
}

// mostBlocks bounds how many different radii PriceAhead tells apart.
const mostBlocks = 4096

// PriceAhead takes the run's own ceiling into account, as far as it is spent. The models
// are taken for equal, since how far apart they will be is not known before: with a
// spread, a switch costs more. Where the radius decays over more rounds than can be
// listed, blocks of them are priced at their smallest radius.
func (u *update) PriceAhead(p *fl.Participant, from int) (r event.Release, rounds int, err error) {
	rounds = max(0, u.outline.Sends-from)
	if r, _, err = u.Price(&fl.Broadcast{Round: from, Radius: u.radius(from)}); err != nil {
		return r, 0, err
	}
	if c := u.privacy.Ceiling; c != nil {
		rounds = min(rounds, left(*c, p.Account, r.What))
	}
	if rounds == 0 {
		return r, 0, nil
	}
	blocks := 1
	if u.sound() && u.privacy.RadiusDecay != 1 {
		blocks = min(rounds, mostBlocks)
	}
	parts := make([]event.Event, 0, blocks)
	for i := range blocks {
		first := from + int(int64(i)*int64(rounds)/int64(blocks))
		next := from + int(int64(i+1)*int64(rounds)/int64(blocks))
		last := next - 1 // radii decay
		if r, _, err = u.Price(&fl.Broadcast{Round: last, Radius: u.radius(last)}); err != nil {
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

// Bounds are what fits the finest of a layer's lattices, that of the broadcast after the
// last round. A value that fits only the lattice of an earlier round would be a model
// that no later one can send.
func (u *update) Bounds() []fl.Bound {
	out := make([]fl.Bound, len(u.layers))
	for i := range u.layers {
		part := &u.layers[i]
		out[i] = fl.Bound{From: part.From, To: part.To, Most: fl.MostAnywhere}
		if !u.exact() {
			continue
		}
		l, err := u.lattice(part, u.radius(u.cfg.Rounds))
		if err != nil {
			out[i].Most = 0 // nothing can be sent in the end
			continue
		}
		out[i].Most = min(fl.MostAnywhere, mech.MaxCoordinate*l.Step)
	}
	return out
}

// Describe adds what was sanitised apart. In sound mode the statement's radius is then
// the distance, over all layers, within which a release loses n/nu.
func (u *update) Describe(p *fl.Privacy) {
	if u.privacy.Sanitise != fl.SanitiseLayers {
		return
	}
	var parts []bounded
	for _, l := range u.layers {
		terms := fl.LayerTerms{
			Name: l.Name, Parameters: l.Len(), EpsilonPerRelease: event.Number(float64(l.Len()) / u.privacy.NoiseMultiplier),
		}
		if u.sound() {
			radius := event.Number(u.privacy.Radius * l.share)
			terms.Radius = &radius
			parts = append(parts, bounded{event: event.MetricLaplace{
				Dimension: l.Len(), NoiseMultiplier: u.privacy.NoiseMultiplier, Radius: float64(radius),
			}})
		}
		p.Layers = append(p.Layers, terms)
	}
	if u.sound() {
		radius := event.Number(joint(parts).Radius)
		p.Radius = &radius
	}
}
