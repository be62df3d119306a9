package method

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "ditto", Words: "a common model, and beside it everybody's own, drawn to the common one", Common: fl.CommonGlobal,
		Keys: slices.Concat(stepKeys, lambdaKeys, askedKeys, meanKeys), Settings: personal,
		Check: func(c *config.Checker, run config.Run) {
			checkOneModel(c, run)
			checkPersonal(c, run)
			checkRobust(c, run)
			checkLambda(c, run)
		},
		New: func(s fl.Setup) (fl.Method, error) {
			return &ditto{centres: newCentres(s, 0, s.Run.Algorithm.Rounds, false), lambda: s.Run.Algorithm.Lambda.Value()}, nil
		},
	})
}

// ditto trains the common model and, beside it, every participant's own, which is drawn
// to the common one (Li et al. 2021; paper 002, appendix B.3). The two take a pass over
// the data each, and both are charged.
type ditto struct {
	centres
	lambda float64
}

func (m *ditto) Outline() fl.Outline {
	o := m.centres.Outline()
	o.Personal, o.Passes = true, 2
	return o
}

func (m *ditto) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	chosen, err := m.cluster(g, b, p)
	if err != nil {
		return false, err
	}
	common := m.centre(b, chosen)
	theta := w.Theta(m.n)
	copy(theta, common)
	if err := g.Train(b, p, theta, common, fl.Pull{}); err != nil {
		return false, err
	}
	released, err := m.send(g, b, p, out, theta, common, chosen)
	if err != nil || !released {
		return false, err
	}
	reg := fl.Pull{}
	if m.lambda > 0 {
		reg = w.Towards(common, m.lambda)
	}
	copy(theta, p.Personal)
	if err := g.Train(b, p, theta, common, reg); err != nil {
		return false, err
	}
	copy(p.Personal, theta)
	return true, nil
}

func (m *ditto) Adopt(dst []float64, _ *fl.Broadcast, p *fl.Participant, _ model.Learner) {
	copy(dst, p.Personal)
}
