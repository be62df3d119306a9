package protect

import (
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/cluster"
	"github.com/coterie-fl/coterie/internal/rng"
)

func init() {
	fl.RegisterProtection(fl.ProtectionKind{
		Name: "update", Sums: true, Words: "every update, by metric privacy: noise in proportion to a radius",
		Keys: slices.Concat(singleKeys, wholeKeys, stopKeys, noiseKeys, []string{
			"privacy.radius", "privacy.radius_decay", "privacy.radius_floor", "privacy.sanitise", "privacy.layer_shares", "privacy.ceiling",
		}),
		Settings: func(run *config.Run) {
			p := &run.Privacy
			p.NoiseMultiplier, p.Epsilon = 5, 0
			if run.Algorithm.Mode == "sound" {
				p.Radius = 0.3
			}
			run.Algorithm.Clustering, run.Algorithm.Weights = "k-means", "equal"
			if run.Algorithm.Selection.Rule == "private" {
				run.Algorithm.Selection.Rule = "best"
			}
		},
		Check: checkUpdate,
		New:   newUpdate,
	})
}

// update is metric privacy of updates: Algorithm 2 of papers 000 and 004. A participant
// trains without noise, holds its model against one of the server's, which is public,
// and noises the difference by the n-dimensional Laplace mechanism: in proportion to the
// update's own length (paper mode) or to a public radius that it is clipped to (sound).
type update struct {
	plain
	privacy config.Privacy
	laplace mech.Laplace
	layers  []layer // what is sanitised apart
	noise   rng.Family
	claim   event.Claim
}

func newUpdate(s fl.Setup, o fl.Outline) (fl.Protection, error) {
	q, err := newPlain(s, o)
	if err != nil {
		return nil, err
	}
	layers, err := newLayers(s.Run.Privacy, s.Model)
	if err != nil {
		return nil, err
	}
	u := &update{
		plain: q, privacy: s.Run.Privacy, laplace: mech.Laplace{Multiplier: s.Run.Privacy.NoiseMultiplier},
		layers: layers, noise: rng.NewFamily(s.Run.Seed, "noise"), claim: event.ClaimHeuristic,
	}
	if u.sound() && len(s.Run.Data.NotPublic) == 0 {
		u.claim = event.ClaimMetric
	}
	return u, u.settleMost()
}

func checkUpdate(c *config.Checker, run config.Run, o fl.Outline) {
	a, p := run.Algorithm, run.Privacy
	checkNoSums(c, run, o)
	c.Require(p.NoiseMultiplier > 0, "privacy.noise_multiplier", "is %v, so that no update is protected; allowed under privacy.protects update: more than 0 (or protects nothing)", p.NoiseMultiplier)
	c.Require(p.Epsilon == 0 && len(p.Silos) == 0, "privacy.epsilon", "is %v, but a release loses n/nu at its radius, whatever epsilon is wished for; set privacy.noise_multiplier, and privacy.ceiling for a bound", p.Epsilon)
	c.Require(o.Sends > 0, "privacy.protects", "is update, but %s sends nothing: there is no update to protect; allowed: example, nothing", a.Kind)
	c.Require(o.Models == 1 || a.Clustering == "k-means", "algorithm.clustering", "is %q: a cluster that is named was chosen by private data, and noise on updates does not pay for that; allowed under privacy.protects update: k-means", a.Clustering)
	c.Require(!o.Declares || a.Weights == "equal", "algorithm.weights", "is %q, but the number of examples is part of what an update tells; allowed under privacy.protects update: equal", a.Weights)
	c.Require(o.Models == 1 || a.Selection.Rule != "private", "algorithm.selection.rule", "is private, which takes a share of a target epsilon for single examples; allowed under privacy.protects update: best, nearest")
	c.Require(run.Data.Standardise != "paid", "data.standardise", "is paid, but a release has no target for single examples to pay from; allowed: silo, public, none")
	if a.Mode == "sound" {
		c.Require(p.Radius > 0, "privacy.radius", "is %v, but sound mode clips to it; allowed: more than 0", p.Radius)
		last := p.Radius * math.Pow(p.RadiusDecay, float64(a.Rounds-1))
		c.Require(p.Radius == 0 || last > 1e-100, "privacy.radius_decay",
			"%v makes the radius of round %d %.3g; allowed: what keeps it above 1e-100", p.RadiusDecay, a.Rounds, last)
	}
}

// sound says that noise is scaled to a public radius.
func (u *update) sound() bool { return u.cfg.Mode == "sound" }

// Announce puts the models on the round's lattice and says how far apart they are.
func (u *update) Announce(b *fl.Broadcast) error {
	b.Radius = u.radius(b.Round)
	if u.exact() {
		if err := u.ontoLattice(b.Hypotheses, b.Radius); err != nil {
			return err
		}
	}
	for i := 0; i < len(b.Hypotheses); i += u.n {
		for j := 0; j < i; j += u.n {
			b.Spread = max(b.Spread, cluster.SquaredDistance(b.Hypotheses[i:i+u.n], b.Hypotheses[j:j+u.n]))
		}
	}
	b.Spread = math.Sqrt(b.Spread)
	return nil
}

// Guard has the memory of one worker.
func (u *update) Guard() (fl.Guard, error) {
	g := &updateGuard{update: u, delta: make([]float64, 0, max(u.n, 32)), bounded: make([]bounded, len(u.layers))}
	return g, u.ready(&g.trainer)
}

// Spend is what the releases lose at their radii.
func (u *update) Spend(p *fl.Participant) (account.Guarantee, *account.Guarantee, error) {
	r := u.releaseOf([]event.Event{event.MetricLaplace{}})
	return account.Guarantee{
		Claim: r.Claim, Unit: r.Unit, Relation: r.Relation, Trust: r.Trust, Epsilon: p.Account.Epsilon(), Sampling: u.cfg.Sampling,
	}, nil, nil
}

// updateGuard trains openly and sends noised updates.
type updateGuard struct {
	trainer
	*update
	delta   []float64
	bounded []bounded // what is sanitised apart
	noise   rng.Stream
	exact   exactScratch
}

func (g *updateGuard) Open(b *fl.Broadcast, p *fl.Participant) (bool, error) {
	g.begin(b, p)
	return true, nil
}

// Send is Algorithm 2: nothing but the sanitised vector leaves, no index, no loss, no
// count.
func (g *updateGuard) Send(b *fl.Broadcast, p *fl.Participant, out, theta, centre []float64) (bool, error) {
	g.delta = g.delta[:0]
	for i, v := range theta {
		g.delta = append(g.delta, v-centre[i])
	}
	if err := g.boundLayers(b, p); err != nil {
		return false, err
	}
	e := joint(g.bounded)
	if c := g.privacy.Ceiling; c != nil && !p.Account.Allows(e, *c) {
		return false, nil
	}
	paid, err := g.pay(p, b.Round, g.bounded)
	if err != nil || !paid {
		return false, err
	}
	p.Account.Add(e) // before any noise is drawn
	if g.sound() {
		p.Switch += e.Switch()
	}
	err = g.release(b, p, out, centre)
	return err == nil, err
}

func (u *update) diverged(b *fl.Broadcast, p *fl.Participant) error {
	return fmt.Errorf("round %d, participant %d: local training left the finite numbers; try a smaller algorithm.local.step than %v",
		b.Round+1, p.ID, u.cfg.Local.Step)
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

// bound gives a layer's update its radius: its share of the public one, or its own
// length within public limits. One that is not finite becomes zero.
func (u *update) bound(part *layer, delta []float64, radius float64) (mech.Clipped, error) {
	if u.sound() {
		return mech.Clip(delta, radius*part.share)
	}
	return mech.OwnRadius(delta, u.privacy.RadiusFloor, part.most)
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
	var squares, switched float64
	for _, part := range parts {
		all.Dimension += part.event.Dimension
		all.Slack += part.event.Slack
		squares += part.event.Epsilon() * part.event.Epsilon()
		switched += part.event.Epsilon() * part.event.Spread
	}
	all.Radius = float64(all.Dimension) / (all.NoiseMultiplier * math.Sqrt(squares))
	all.Spread = switched / math.Sqrt(squares)
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

// asPaid holds what a mechanism says it drew against what was charged for it.
func asPaid(drawn, paid *event.MetricLaplace) error {
	if drawn.Dimension != paid.Dimension || drawn.NoiseMultiplier != paid.NoiseMultiplier || drawn.Radius != paid.Radius {
		return fmt.Errorf("%w: %s was drawn, and %s charged", mech.ErrUnpaid, event.Describe(*drawn), event.Describe(*paid))
	}
	return nil
}

// radius is the public one of a round; paper mode has none.
func (u *update) radius(round int) float64 {
	if !u.sound() {
		return 0
	}
	return u.privacy.Radius * math.Pow(u.privacy.RadiusDecay, float64(round))
}

func (u *update) exact() bool { return u.privacy.Noise != "simulated" }
