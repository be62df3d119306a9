package method

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "finetune", Words: "fedavg for a share of the rounds, then everybody alone from there", Common: fl.CommonGlobal,
		Keys: slices.Concat(stepKeys, warmKeys, askedKeys, meanKeys, []string{"algorithm.federated_share"}), Settings: personal,
		Check: func(c *config.Checker, run config.Run) {
			checkWarmStart(c, run)
			checkPersonal(c, run)
			checkRobust(c, run)
		},
		New: func(s fl.Setup) (fl.Method, error) {
			warm, a := warmRounds(s.Run), s.Run.Algorithm
			return &finetuning{localTraining{newCentres(s, warm, max(warm, roundsOf(a.FederatedShare, a.Rounds)), false)}}, nil
		},
	})
}

// finetuning is FedAvg for a share of the rounds, and then every participant alone from
// there (paper 002, appendix B.3): local training with a long warm start.
type finetuning struct{ localTraining }

func (m *finetuning) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	if b.Round == m.federated { // from the model that all agreed on
		chosen, err := m.cluster(g, b, p)
		if err != nil {
			return false, err
		}
		copy(p.Personal, m.centre(b, chosen))
	}
	return m.localTraining.Respond(g, w, b, p, out)
}

func (m *finetuning) Adopt(dst []float64, b *fl.Broadcast, p *fl.Participant, l model.Learner) {
	if b.Round <= m.federated {
		m.centres.Adopt(dst, b, p, l)
		return
	}
	copy(dst, p.Personal)
}
