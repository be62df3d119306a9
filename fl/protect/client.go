package protect

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
)

func init() {
	fl.RegisterProtection(fl.ProtectionKind{
		Name: "client", Words: "whole participants, from everybody but the server, which clips updates and noises their sum",
		Keys: slices.Concat(wholeKeys, noiseKeys, targetKeys, clippingKeys, []string{
			"privacy.update_clip", "privacy.relation", "privacy.sector", "privacy.recentre", "algorithm.server_momentum",
		}),
		Settings: func(run *config.Run) {
			a := &run.Algorithm
			a.Weights, a.ClientsPerRound, a.Stop = "equal", 0, config.Stop{Return: "last", Every: a.Stop.Every}
			run.Privacy.Relation = "add-remove"
		},
		Check: checkClient,
		New:   newClient,
	})
}

// client is DP-FedAvg (McMahan et al. 2018): whole participants are protected, from
// everybody but the server, which clips their updates and adds the noise. Paper 002,
// appendix G.4, recommends it where silos are small.
type client struct {
	plain
	privacy config.Privacy
	server  rng.Family
	coins   rng.Family // that move a clip instead of signs
	noise   float64
	split   *mech.Split // nil: the clip is not learned, and all noise is on the updates
	rule    mech.ClipRule
	claim   event.Claim
}

// newClient finds the server's noise: a round is one release of a sum in which every
// participant has one clipped term.
func newClient(s fl.Setup, o fl.Outline) (fl.Protection, error) {
	q, err := newPlain(s, o)
	if err != nil {
		return nil, err
	}
	m := &client{plain: q, privacy: s.Run.Privacy, server: rng.NewFamily(s.Run.Seed, "server noise"), claim: event.ClaimProved}
	m.coins = rng.NewFamily(s.Run.Seed, "coins in the place of learned signs")
	m.rule = clipRule(m.privacy.Clipping, m.privacy.UpdateClip, 0)
	if len(s.Run.Data.NotPublic) > 0 {
		m.claim = event.ClaimHeuristic // the run file itself tells of participants
	}
	plan := m.plan()
	if m.privacy.Noise != "simulated" {
		plan.Lattice = &account.Lattice{Coordinates: int64(m.n + m.rule.Signal.Length(m.n))}
	}
	if plan.Noise = m.privacy.NoiseMultiplier; plan.Noise == 0 {
		if err := plan.Calibrate(o.Sends, 0); err != nil {
			return nil, err
		}
	}
	m.noise = plan.Noise
	if m.rule.Signal == mech.SignalNone {
		return m, nil
	}
	if err := settleSplit(&m.rule, m.noise, m.Participants, "participants"); err != nil {
		return nil, err
	}
	split, err := m.rule.Split(mech.Gaussian{Multiplier: m.noise})
	if err != nil {
		return nil, err
	}
	m.split = &split
	return m, nil
}

// plan is the same for everybody: none of a participant's own numbers enter.
func (m *client) plan() fl.Plan {
	return fl.Plan{
		Target: fl.TargetOf(m.privacy, ""), Batch: 1, Steps: 1, Rate: 1, Weight: 1, Noise: m.noise,
		Drawn: event.FullBatch, Trust: event.TrustServer, Epochs: 1,
		Terms: account.Terms{Unit: event.UnitClient, Relation: event.Relation(m.privacy.Relation), Claim: m.claim},
	}
}

// Prepare keeps the public plan; the steps of local training are counted anew in every
// round, for no number of it is public.
func (m *client) Prepare(p *fl.Participant) error {
	if p.Data.Len() < 1 {
		return fmt.Errorf("it has no examples")
	}
	local := fl.Participant{Data: p.Data}
	if err := m.plain.Prepare(&local); err != nil {
		return err
	}
	p.Plan = m.plan()
	p.Plan.Examples, p.Plan.Local = p.Data.Len(), local.Plan.Local
	return nil
}

func (m *client) PriceAhead(p *fl.Participant, from int) (event.Release, int, error) {
	rounds := max(0, m.outline.Sends-from)
	r, err := p.Plan.Training(max(1, rounds), 0, false).Release()
	return r, rounds, err
}

func (m *client) Guard() (fl.Guard, error) {
	g := &clientGuard{m: m}
	return g, m.ready(&g.trainer)
}

// reach is what participants shorten updates to, beyond which the server needs nothing of
// them: a clip that is learned must see what is longer than it.
func (m *client) reach() float64 {
	switch {
	case m.privacy.Recentre != "":
		return fl.MostAnywhere
	case m.rule.Signal != mech.SignalNone || m.rule.Decay < 0:
		return min(m.rule.Highest, fl.MostAnywhere)
	}
	return m.privacy.UpdateClip
}

// clientGuard trains without noise and sends the update, clipped.
type clientGuard struct {
	trainer
	m *client
}

func (g *clientGuard) Open(b *fl.Broadcast, p *fl.Participant) (bool, error) {
	if b.Round < g.m.outline.Sends {
		release, err := p.Plan.Release(false, false)
		if err != nil {
			return false, err
		}
		paid, err := p.Pay(b.Round, release)
		if err != nil || paid == nil {
			return false, err
		}
		p.Paid.Rounds++
	}
	g.begin(b, p)
	return true, nil
}

// Train is a pass without noise: it is the update that is protected.
func (g *clientGuard) Train(b *fl.Broadcast, p *fl.Participant, theta, centre []float64, reg fl.Pull) error {
	local := *p
	if err := g.q.Prepare(&local); err != nil {
		return err
	}
	err := g.trainer.Train(b, &local, theta, centre, reg)
	p.Mishap = local.Mishap
	g.finite(b, p, theta, centre)
	return err
}

func (g *clientGuard) Send(_ *fl.Broadcast, _ *fl.Participant, out, theta, centre []float64) (bool, error) {
	for i, v := range theta {
		out[i] = v - centre[i]
	}
	_, err := mech.Clip(out[:len(theta)], g.m.reach())
	return err == nil, err
}
