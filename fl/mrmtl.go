package fl

// meanRegularised is MR-MTL (paper 002, algorithm 1): every silo keeps its own model
// and is drawn to the mean of all; after a warm start to that of its cluster
// (algorithm 2).
type meanRegularised struct {
	clustered
	lambda float64   // NaN: auto
	spread estimator // auto: what the server learns from releases
}

func newMRMTL(s *Silo) *meanRegularised {
	warm := s.warmRounds()
	return &meanRegularised{clustered: newClustered(s, warm, warm), lambda: s.cfg.Lambda.Value()}
}

// drawn says that silos are drawn to the mean after the round. An automatic lambda
// needs it: only then the update is the data's part alone.
func (m *meanRegularised) drawn() bool { return m.cfg.Prox == "server" || m.auto() }

// respond trains the silo's own model and sends it: it is the silo's release, and
// private as every step of it is.
func (m *meanRegularised) respond(w *Worker, b Broadcast, p *Participant, out []float64) error {
	if b.Round < m.federated {
		return m.trainCentre(w, b, p, out)
	}
	cluster, err := m.cluster(w, b, p)
	if err != nil {
		return err
	}
	mean := m.centre(b, cluster)
	copy(w.theta, p.Personal)
	reg := pull{}
	if m.drawn() {
		m.draw(w.theta, mean, b.Memory, m.updateVariance(&p.Plan), float64(p.Plan.Steps), m.size(p.Plan.Weight))
	} else if m.lambda > 0 {
		reg = w.towards(mean, m.lambda)
	}
	if err := m.descend(w, p, w.theta, reg); err != nil {
		return err
	}
	copy(p.Personal, w.theta)
	m.declare(out, w.theta, p, cluster)
	return nil
}

// adopt is the silo's own model, drawn to the last mean if that is how it is drawn.
func (m *meanRegularised) adopt(dst []float64, b Broadcast, p *Participant) {
	copy(dst, p.Personal[:m.n])
	if m.drawn() && len(b.Hypotheses) == m.models*m.n {
		m.draw(dst, m.centre(b, m.lastChoice(p)), b.Memory, m.updateVariance(&p.Plan), float64(p.Plan.Steps), m.size(p.Plan.Weight))
	}
}
