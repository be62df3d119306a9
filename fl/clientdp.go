package fl

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
)

// clientLevel is DP-FedAvg (McMahan et al. 2018): whole silos are protected, from
// everybody but the server, which clips their updates and adds the noise. Paper 002,
// appendix G.4, recommends it where silos are small.
type clientLevel struct {
	*Silo
	server  rng.Family
	noise   float64
	entropy *mech.Entropy
}

// newClientLevel finds the server's noise: a round is one release of a sum in which
// every silo has one clipped term.
func newClientLevel(s *Silo, seed uint64) (*clientLevel, error) {
	m := &clientLevel{Silo: s, server: rng.NewFamily(seed, "server noise")}
	plan := m.clientPlan(0)
	if err := s.settleNoise(&plan, 0); err != nil {
		return nil, err
	}
	m.noise = plan.Noise
	return m, nil
}

// clientPlan is the same for every silo: none of its own numbers enter.
func (m *clientLevel) clientPlan(size int) SiloPlan {
	return SiloPlan{
		Target: targetOf(m.privacy, ""), Examples: size, Batch: 1, Steps: 1, Rate: 1, Weight: 1,
		drawn: event.FullBatch, trust: event.TrustServer, epochs: 1,
		terms: account.Terms{Unit: event.UnitClient, Relation: event.AddRemove, Claim: event.ClaimProved},
	}
}

func (m *clientLevel) passes() int             { return 1 }
func (m *clientLevel) choosing(int) bool       { return false }
func (m *clientLevel) tell(*State, *Broadcast) {}

func (m *clientLevel) begin(st *State) {
	st.Hypotheses = make([]float64, m.n)
	m.model.Initialise(st.Hypotheses, m.start.Stream(0, 0))
}

// respond trains without noise and sends the update, clipped.
func (m *clientLevel) respond(w *Worker, b Broadcast, p *Participant, out []float64) error {
	if len(b.Hypotheses) != m.n {
		return fmt.Errorf("the server sent %d values, not a model of %d", len(b.Hypotheses), m.n)
	}
	copy(w.theta, b.Hypotheses)
	if err := m.trainOpenly(w, p, w.theta); err != nil {
		return err
	}
	for i, v := range w.theta {
		out[i] = v - b.Hypotheses[i]
	}
	if p.Plan.private() {
		if _, err := mech.Clip(out[:m.n], m.privacy.UpdateClip); err != nil {
			return err
		}
	}
	tail := out[m.n:]
	tail[tailWeight], tail[tailCluster], tail[tailVariance], tail[tailSteps] = 1, 0, 0, 1
	return nil
}

// trainOpenly is a round's local epochs without noise: it is the update that is
// protected.
func (m *clientLevel) trainOpenly(w *Worker, p *Participant, theta []float64) error {
	local := *p
	local.Plan = m.shuffled(p.Data.Len())
	return m.descend(w, &local, theta, pull{})
}

// aggregate clips every update again, for a participant may not have, sums, adds
// noise and divides by the public number of silos.
func (m *clientLevel) aggregate(st *State, r Releases) Outcome {
	update, err := m.noised(st.Round, r)
	if err != nil {
		return Outcome{Err: fmt.Errorf("round %d: %w", st.Round, err)}
	}
	for i, v := range update {
		st.Hypotheses[i] += v / float64(m.silos)
	}
	return Outcome{Assigned: make([]int, len(r.Clients))}
}

func (m *clientLevel) noised(round int, r Releases) ([]float64, error) {
	length := m.ReleaseLength()
	out := make([]float64, m.n)
	if m.noise == 0 {
		for i := range r.Clients {
			for j, v := range r.Vectors[i*length : i*length+m.n] {
				out[j] += v
			}
		}
		_, err := mech.Norm(out)
		return out, err
	}
	paid, err := m.paid()
	if err != nil {
		return nil, err
	}
	g := mech.Gaussian{Multiplier: m.noise}
	if m.privacy.Noise == "simulated" {
		sum, err := mech.NewSimulatedSum(m.n, m.privacy.UpdateClip)
		if err != nil {
			return nil, err
		}
		if err := m.each(r, sum.Add); err != nil {
			return nil, err
		}
		return out, paid.Simulate(g, out, sum, m.server.Stream(round, 0))
	}
	lattice, err := g.Lattice(m.privacy.UpdateClip)
	if err != nil {
		return nil, err
	}
	sum, err := mech.NewClippedSum(m.n, m.privacy.UpdateClip, lattice)
	if err != nil {
		return nil, err
	}
	if err := m.each(r, sum.Add); err != nil {
		return nil, err
	}
	if m.entropy == nil {
		m.entropy = mech.SystemEntropy()
	}
	if m.privacy.Noise == NoiseSeeded {
		m.entropy.Reset(m.server.Stream(round, 0))
	}
	steps := make([]int64, m.n)
	if err := paid.Release(g, steps, sum, m.entropy); err != nil {
		return nil, err
	}
	lattice.Float(out, steps)
	return out, nil
}

// paid is what every silo is charged for a round, which the server's noise must keep.
func (m *clientLevel) paid() (*mech.Paid, error) {
	plan := m.clientPlan(0)
	plan.Noise = m.noise
	release, err := plan.release(false, false)
	if err != nil {
		return nil, err
	}
	return mech.NewPaid(release)
}

// each clips every update and adds it; one that is not finite counts as zero.
func (m *clientLevel) each(r Releases, add func(mech.Clipped) error) error {
	length := m.ReleaseLength()
	for i := range r.Clients {
		clipped, err := mech.Clip(r.Vectors[i*length:i*length+m.n], m.privacy.UpdateClip)
		if err == nil {
			err = add(clipped)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *clientLevel) adopt(dst []float64, b Broadcast, _ *Participant) { copy(dst, b.Hypotheses) }
