package fl

// localTraining is every silo on its own: the end of the personalisation spectrum
// without federation (paper 002, section 1.4). Nothing is sent. A warm start
// begins it from the model of a cluster (appendix C.2).
type localTraining struct{ clustered }

func newLocal(s *Silo) *localTraining {
	warm := s.warmRounds()
	return &localTraining{newClustered(s, warm, warm)}
}

func (m *localTraining) respond(w *Worker, b Broadcast, p *Participant, out []float64) error {
	if b.Round < m.federated {
		return m.trainCentre(w, b, p, out)
	}
	return m.trainAlone(w, p, out)
}

// trainAlone goes on with the silo's own model; what is sent, if there is a place
// for it, says nothing.
func (c *clustered) trainAlone(w *Worker, p *Participant, out []float64) error {
	copy(w.theta, p.Personal)
	if err := c.descend(w, p, w.theta, pull{}); err != nil {
		return err
	}
	copy(p.Personal, w.theta)
	clear(out)
	return nil
}

func (m *localTraining) aggregate(st *State, r Releases) Outcome {
	if st.Round > m.federated { // already the next one
		return Outcome{}
	}
	return m.clustered.aggregate(st, r)
}

func (m *localTraining) adopt(dst []float64, _ Broadcast, p *Participant) {
	copy(dst, p.Personal[:m.n])
}
