package method

import (
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "fedavg", Words: "one model for all; after a warm start one for every cluster",
		Check: func(c *config.Checker, run config.Run) { checkWarmStart(c, run) },
		New: func(s fl.Setup) (fl.Method, error) {
			return &federatedAveraging{newCentres(s, warmRounds(s.Run), s.Run.Algorithm.Rounds, false)}, nil
		},
	})
}

// federatedAveraging is one model for all (McMahan et al. 2017); after a warm start, one
// for every cluster.
type federatedAveraging struct{ centres }

func (m *federatedAveraging) Outline() fl.Outline { return m.outline() }

func (m *federatedAveraging) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	return m.trainCentre(g, w, b, p, out)
}

func (m *federatedAveraging) Adopt(dst []float64, b *fl.Broadcast, p *fl.Participant, l model.Learner) {
	m.adoptCentre(dst, b, p, l)
}
