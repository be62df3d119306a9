package fl

// ditto trains the common model and, beside it, every silo's own, which is drawn to
// the common one (Li et al. 2021; paper 002, appendix B.3). The two take a pass over
// the data each, and both are charged.
type ditto struct {
	clustered
	lambda float64
}

func newDitto(s *Silo) *ditto {
	return &ditto{clustered: newClustered(s, 0, s.cfg.Rounds), lambda: s.cfg.Lambda.Value()}
}

func (m *ditto) passes() int { return 2 }

func (m *ditto) respond(w *Worker, b Broadcast, p *Participant, out []float64) error {
	cluster, err := m.cluster(w, b, p)
	if err != nil {
		return err
	}
	common := m.centre(b, cluster)
	copy(w.theta, common)
	if err := m.descend(w, p, w.theta, pull{}); err != nil {
		return err
	}
	m.declare(out, w.theta, p, cluster)

	reg := pull{}
	if m.lambda > 0 {
		reg = w.towards(common, m.lambda)
	}
	copy(w.theta, p.Personal)
	if err := m.descend(w, p, w.theta, reg); err != nil {
		return err
	}
	copy(p.Personal, w.theta)
	return nil
}

func (m *ditto) adopt(dst []float64, _ Broadcast, p *Participant) { copy(dst, p.Personal[:m.n]) }
