package method

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "local", Words: "everybody alone, nothing is sent", Common: fl.CommonNothing,
		Keys: slices.Concat(stepKeys, warmKeys, askedKeys, weightKeys), Settings: personal,
		Check: func(c *config.Checker, run config.Run) {
			checkWarmStart(c, run)
			checkPersonal(c, run)
			c.Require(run.Judge.By == "own", "judge.by", "is %q, but local trains no common model that others could use; allowed: own", run.Judge.By)
		},
		New: func(s fl.Setup) (fl.Method, error) {
			warm := warmRounds(s.Run)
			return &localTraining{newCentres(s, warm, warm, false)}, nil
		},
	})
}

// localTraining is everybody alone: the end of the personalisation spectrum without
// federation (paper 002, section 1.4). Nothing is sent. A warm start begins it from the
// model of a cluster (appendix C.2).
type localTraining struct{ centres }

func (m *localTraining) Outline() fl.Outline {
	o := m.centres.Outline()
	o.Personal, o.Sends = true, m.federated
	return o
}

func (m *localTraining) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	if b.Round < m.federated {
		return m.centres.Respond(g, w, b, p, out)
	}
	return m.trainAlone(g, w, b, p, out)
}

func (m *localTraining) Aggregate(st *fl.State, r fl.Releases) fl.Outcome {
	if st.Round > m.federated { // already the next one
		return fl.Outcome{}
	}
	return m.centres.Aggregate(st, r)
}

func (m *localTraining) Adopt(dst []float64, _ *fl.Broadcast, p *fl.Participant, _ model.Learner) {
	copy(dst, p.Personal)
}
