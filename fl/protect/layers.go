package protect

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// layer is a part of the update that is sanitised on its own: one layer of a
// network (thesis 001, section 2.5.1), or all of the update.
type layer struct {
	model.Span
	share float64 // of the public radius
	most  float64 // in paper mode: the largest radius that an update's own length can be
}

// newLayers cuts a model's update as the run file says. Without shares the public
// radius C goes to layers as C*sqrt(n_l/n): the same noise on every parameter.
func newLayers(p config.Privacy, m model.Model) ([]layer, error) {
	spans := []model.Span{{Name: "all", To: m.Parameters()}}
	if p.Sanitise == fl.SanitiseLayers {
		spans = model.Layers(m)
	}
	var c config.Checker
	c.Require(len(p.LayerShares) == 0 || p.Sanitise == fl.SanitiseLayers && p.Accounting == "sound", "privacy.layer_shares",
		"are given, but only sound mode with privacy.sanitise: layers has public radii for layers; allowed: none")
	c.Require(len(p.LayerShares) == 0 || p.Sanitise != fl.SanitiseLayers || len(p.LayerShares) == len(spans), "privacy.layer_shares",
		"has %d values, but the model has %d layers with parameters; allowed: one for each", len(p.LayerShares), len(spans))
	for i, share := range p.LayerShares {
		c.Require(share > 0 && share <= 1, fmt.Sprintf("privacy.layer_shares[%d]", i), "is %v; allowed: above 0, at most 1", share)
	}
	if faults := c.Faults(); faults != nil {
		return nil, faults
	}
	out := make([]layer, len(spans))
	for i, s := range spans {
		out[i] = layer{Span: s, share: math.Sqrt(float64(s.Len()) / float64(m.Parameters()))}
		if len(p.LayerShares) > 0 {
			out[i].share = p.LayerShares[i]
		}
	}
	return out, nil
}

// bounded is a layer's update with its radius, and what releasing it costs.
type bounded struct {
	update mech.Clipped
	event  event.MetricLaplace
}

// boundLayers gives every layer's update its radius and prices its release.
func (g *updateGuard) boundLayers(b *fl.Broadcast, p *fl.Participant) error {
	priced := g.sound() || g.update.exact() // otherwise there is nothing to add
	for i := range g.layers {
		l, part := &g.layers[i], &g.bounded[i]
		var err error
		if part.update, err = g.bound(l, g.delta[l.From:l.To], b.Radius); err != nil {
			return err
		}
		if part.update.Replaced() {
			p.Mishap = g.diverged(b, p)
		}
		part.event = g.laplace.Event(part.update)
		if priced {
			if part.event, err = g.priced(l, part.event, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostRadius is beyond what an update's own length can mean where noise is of floats.
const mostRadius = 1e150

// bound gives a layer's update its radius: its share of the public one, or its own
// length within public limits. One that is not finite becomes zero.
func (u *update) bound(part *layer, delta []float64, radius float64) (mech.Clipped, error) {
	if u.sound() {
		return mech.Clip(delta, radius*part.share)
	}
	return mech.OwnRadius(delta, u.privacy.RadiusFloor, part.most)
}

// settleMost finds the largest radius that paper mode gives a layer.
func (u *update) settleMost() error {
	for i := range u.layers {
		part := &u.layers[i]
		part.most = mostRadius
		if u.sound() || !u.exact() {
			continue
		}
		l, err := u.lattice(part, 0)
		if err != nil {
			return err
		}
		part.most = u.laplace.MostRadius(part.Len(), l)
	}
	return nil
}

// joint is what one release of all layers costs. They are noised independently, so
// two updates with layers d_l apart lose sum epsilon_l*d_l: n/nu if every layer lies
// at its own radius, and at most sqrt(sum epsilon_l^2) per unit of the distance in
// all (Cauchy-Schwarz). Its radius is the distance at which the latter reaches n/nu,
// and its spread the one at which it loses to a switch what the layers lose together.
func joint(parts []bounded) event.MetricLaplace {
	if len(parts) == 1 {
		return parts[0].event
	}
	all := event.MetricLaplace{NoiseMultiplier: parts[0].event.NoiseMultiplier}
	var squares, apart float64
	for _, part := range parts {
		all.Dimension += part.event.Dimension
		all.Slack += part.event.Slack
		squares += part.event.Epsilon() * part.event.Epsilon()
		apart += part.event.Epsilon() * part.event.Spread
	}
	all.Radius = float64(all.Dimension) / (all.NoiseMultiplier * math.Sqrt(squares))
	all.Spread = apart / math.Sqrt(squares)
	return all
}

// pay reserves one release on the run's terms: an event for every layer.
func (u *update) pay(p *fl.Participant, round int, parts []bounded) (bool, error) {
	if p.Purse == nil {
		return true, nil // and nothing is put on the heap
	}
	all := make([]event.Event, len(parts))
	for i, part := range parts {
		all[i] = part.event
	}
	paid, err := p.Pay(round, u.releaseOf(all))
	return paid != nil, err
}

// asPaid holds what a mechanism says it drew against what was charged for it.
func asPaid(drawn, paid *event.MetricLaplace) error {
	if drawn.Dimension != paid.Dimension || drawn.NoiseMultiplier != paid.NoiseMultiplier || drawn.Radius != paid.Radius {
		return fmt.Errorf("%w: noise of %+v for %+v", mech.ErrUnpaid, *drawn, *paid)
	}
	return nil
}

// release writes centre + update + noise to out, layer by layer.
func (g *updateGuard) release(b *fl.Broadcast, p *fl.Participant, out, centre []float64) error {
	if g.privacy.Noise != "exact" {
		g.noise.Key(&g.update.noise, b.Round, p.ID)
	}
	exact := g.update.exact()
	if exact {
		g.openExact()
	}
	for i := range g.layers {
		l, part := &g.layers[i], g.bounded[i].update
		var err error
		var drawn event.MetricLaplace
		if exact {
			drawn, err = g.releaseExact(b, l, out[l.From:l.To], centre[l.From:l.To], part)
		} else {
			drawn, err = g.laplace.Simulate(out[l.From:l.To], centre[l.From:l.To], part, &g.noise)
		}
		if err == nil {
			err = asPaid(&drawn, &g.bounded[i].event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
