package fl

// finetuning is FedAvg for a share of the rounds, and then every silo alone from
// there (paper 002, appendix B.3).
type finetuning struct{ clustered }

func newFinetune(s *Silo) *finetuning {
	warm := s.warmRounds()
	return &finetuning{newClustered(s, warm, max(warm, roundsOf(s.cfg.FederatedShare, s.cfg.Rounds)))}
}

func (m *finetuning) respond(w *Worker, b Broadcast, p *Participant, out []float64) error {
	if b.Round < m.federated {
		return m.trainCentre(w, b, p, out)
	}
	if b.Round == m.federated { // from the model that all agreed on
		cluster, err := m.cluster(w, b, p)
		if err != nil {
			return err
		}
		copy(p.Personal, m.centre(b, cluster))
	}
	return m.trainAlone(w, p, out)
}

func (m *finetuning) aggregate(st *State, r Releases) Outcome {
	if st.Round > m.federated {
		return Outcome{}
	}
	return m.clustered.aggregate(st, r)
}

func (m *finetuning) adopt(dst []float64, b Broadcast, p *Participant) {
	if b.Round <= m.federated {
		m.adoptCentre(dst, b, p)
		return
	}
	copy(dst, p.Personal[:m.n])
}
