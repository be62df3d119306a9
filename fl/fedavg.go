package fl

// federatedAveraging is one model for all (McMahan et al. 2017), trained with every
// silo's own noise; after a warm start, one for every cluster.
type federatedAveraging struct{ clustered }

func newFedAvg(s *Silo) *federatedAveraging {
	return &federatedAveraging{newClustered(s, s.warmRounds(), s.cfg.Rounds)}
}

func (m *federatedAveraging) respond(w *Worker, b Broadcast, p *Participant, out []float64) error {
	return m.trainCentre(w, b, p, out)
}

func (m *federatedAveraging) adopt(dst []float64, b Broadcast, p *Participant) {
	m.adoptCentre(dst, b, p)
}
