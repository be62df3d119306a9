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
		Keys: slices.Concat(wholeKeys, noiseKeys, targetKeys, []string{"privacy.update_clip"}),
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
	noise   float64
	claim   event.Claim
}

func checkClient(c *config.Checker, run config.Run, o fl.Outline) {
	a, p := run.Algorithm, run.Privacy
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0, "privacy.epsilon", "is 0, so that nobody is protected; allowed under privacy.protects client: more than 0 (or protects nothing)")
	c.Require(p.Epsilon == 0 || p.NoiseMultiplier == 0, "privacy.noise_multiplier", "is %v, but the noise follows from privacy.epsilon %v; give one of them", p.NoiseMultiplier, p.Epsilon)
	c.Require(p.NoiseMultiplier == 0 || p.Runs <= 1, "privacy.runs", sharesNothing, p.Runs, p.NoiseMultiplier)
	c.Require(o.Sends > 0, "privacy.protects", "is client, but %s sends nothing: there is no sum that the server could noise; allowed: example, nothing", a.Kind)
	c.Require(!o.Single, "privacy.protects", "is client, whose noise is on one sum over all participants, but here the server needs their releases one by one (clusters, relations, lambda auto); allowed: update, example, nothing")
	c.Require(p.Ceiling == nil && p.Radius == 0, "privacy.radius", "and ceiling are of metric privacy; under privacy.protects client set update_clip and epsilon")
	c.Require(p.Relation == "add-remove", "privacy.relation", "is %q; allowed under privacy.protects client: add-remove (somebody takes part or not)", p.Relation)
	c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but one participant may weigh no more than another; allowed under privacy.protects client: equal", a.Weights)
	c.Require(len(p.Silos) == 0 && p.RecordsPerPerson == 1, "privacy", "protects whole participants: targets of single ones and records_per_person have no meaning")
	c.Require(a.ClientsPerRound == 0, "algorithm.clients_per_round", "is %d, but what sampling of participants would gain is not accounted for; allowed under privacy.protects client: 0", a.ClientsPerRound)
	c.Require(a.Stop.Return == "last" && a.Stop.Patience == 0, "algorithm.stop", "a choice by held-out examples would have to be paid for; allowed: return last, patience 0")
	c.Require(run.Data.Standardise != "paid", "data.standardise", "is paid, but whole participants are protected, who have no target for single rows to pay from; allowed: silo, public, none")
}

// newClient finds the server's noise: a round is one release of a sum in which every
// participant has one clipped term.
func newClient(s fl.Setup, o fl.Outline) (fl.Protection, error) {
	q, err := newPlain(s, o)
	if err != nil {
		return nil, err
	}
	m := &client{plain: q, privacy: s.Run.Privacy, server: rng.NewFamily(s.Run.Seed, "server noise"), claim: event.ClaimProved}
	if len(s.Run.Data.NotPublic) > 0 {
		m.claim = event.ClaimHeuristic // the run file itself tells of participants
	}
	plan := m.plan()
	if m.privacy.Noise != "simulated" {
		plan.Lattice = &account.Lattice{Coordinates: int64(m.n)}
	}
	if plan.Noise = m.privacy.NoiseMultiplier; plan.Noise == 0 {
		if err := plan.Calibrate(o.Sends, 0); err != nil {
			return nil, err
		}
	}
	m.noise = plan.Noise
	return m, nil
}

// plan is the same for everybody: none of a participant's own numbers enter.
func (m *client) plan() fl.Plan {
	return fl.Plan{
		Target: fl.TargetOf(m.privacy, ""), Batch: 1, Steps: 1, Rate: 1, Weight: 1, Noise: m.noise,
		Drawn: event.FullBatch, Trust: event.TrustServer, Epochs: 1,
		Terms: account.Terms{Unit: event.UnitClient, Relation: event.AddRemove, Claim: m.claim},
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

// Gather clips every update again, for a participant may not have, sums, adds noise and
// divides by the public number of participants: one release stands for all.
func (m *client) Gather(st *fl.State, r fl.Releases) (fl.Releases, error) {
	if st.Round > m.outline.Sends {
		return r, nil
	}
	sum, err := m.noised(st.Round, r)
	if err != nil {
		return r, err
	}
	for i, v := range sum {
		sum[i] = st.Hypotheses[i] + v/float64(m.Participants)
	}
	return fl.Releases{Clients: []int{0}, Vectors: sum, Declined: r.Declined}, nil
}

// noised is the sum of the updates, each clipped (one that is not finite counts as zero),
// with the noise that everybody is charged for.
func (m *client) noised(round int, r fl.Releases) ([]float64, error) {
	plan := m.plan()
	release, err := plan.Release(false, false)
	if err != nil {
		return nil, err
	}
	paid, err := mech.NewPaid(release)
	if err != nil {
		return nil, err
	}
	clip, out := m.privacy.UpdateClip, make([]float64, m.n)
	return out, noisedSum(out, m.privacy.Noise, m.noise, clip, paid, m.server.Stream(round, 0), func(add func(mech.Clipped) error) error {
		for i := range r.Clients {
			clipped, err := mech.Clip(r.Vectors[i*m.n:(i+1)*m.n], clip)
			if err == nil {
				err = add(clipped)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
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
	_, err := mech.Clip(out[:len(theta)], g.m.privacy.UpdateClip)
	return err == nil, err
}
