package method

import (
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "mr-mtl", Words: "everybody's own model, drawn to the mean of all; after a warm start to that of its cluster", Common: fl.CommonMean,
		Keys: slices.Concat(stepKeys, warmKeys, lambdaKeys, askedKeys, meanKeys), Settings: personal,
		Check: func(c *config.Checker, run config.Run) {
			checkWarmStart(c, run)
			checkPersonal(c, run)
			checkRobust(c, run)
			checkLambda(c, run)
		},
		New: func(s fl.Setup) (fl.Method, error) {
			warm, lambda := warmRounds(s.Run), s.Run.Algorithm.Lambda
			return &meanRegularised{centres: newCentres(s, warm, warm, lambda == config.LambdaAuto), lambda: lambda.Value()}, nil
		},
	})
}

// meanRegularised is MR-MTL (paper 002, algorithm 1): every participant keeps its own model
// and is pulled to the mean of all; after a warm start to that of its cluster
// (algorithm 2).
type meanRegularised struct {
	centres
	lambda float64   // NaN: auto
	spread estimator // auto: what the server learns from releases
}

func (m *meanRegularised) Outline() fl.Outline {
	o := m.centres.Outline()
	o.Personal, o.Single = true, o.Single || m.auto()
	return o
}

// pullsAfter says that participants are pulled to the mean after the round. An automatic lambda
// needs it: only then the update is the data's part alone.
func (m *meanRegularised) pullsAfter() bool { return m.Run.Algorithm.Prox == "server" || m.auto() }

// Respond trains the participant's own model and sends it.
func (m *meanRegularised) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	if b.Round < m.federated {
		return m.centres.Respond(g, w, b, p, out)
	}
	chosen, err := m.cluster(g, b, p)
	if err != nil {
		return false, err
	}
	mean := m.centre(b, chosen)
	theta := w.Theta(m.n)
	copy(theta, p.Personal)
	reg := fl.Pull{}
	if m.pullsAfter() {
		m.pull(theta, mean, b.Memory, &p.Plan)
	} else if m.lambda > 0 {
		reg = w.Towards(mean, m.lambda)
	}
	if err := g.Train(b, p, theta, mean, reg); err != nil {
		return false, err
	}
	copy(p.Personal, theta)
	return m.send(g, b, p, out, theta, mean, chosen)
}

// Adopt is the participant's own model, pulled to the last mean if participants are pulled
// after a round.
func (m *meanRegularised) Adopt(dst []float64, b *fl.Broadcast, p *fl.Participant, _ model.Learner) {
	copy(dst, p.Personal)
	if m.pullsAfter() && m.sent(b) == nil {
		m.pull(dst, m.centre(b, max(0, min(p.Cluster, m.means.Models-1))), b.Memory, &p.Plan)
	}
}

// pull is pullBy with a participant's own numbers.
func (m *meanRegularised) pull(theta, mean, told []float64, plan *fl.Plan) {
	m.pullBy(theta, mean, told, plan.Variance(), float64(plan.Local), m.size(plan.Weight))
}

func (m *meanRegularised) auto() bool { return m.Run.Algorithm.Lambda == config.LambdaAuto }

// Begin adds the estimate's memory.
func (m *meanRegularised) Begin(st *fl.State) {
	m.centres.Begin(st)
	if m.auto() {
		st.Memory = make([]float64, m.headLength()+m.Participants*m.keptEach())
		for participant := range m.Participants {
			last, _, _, _ := m.kept(st, participant)
			copy(last, st.Hypotheses)
		}
	}
}

// Tell sends the estimate.
func (m *meanRegularised) Tell(st *fl.State, b *fl.Broadcast) {
	if m.auto() {
		b.Memory = append([]float64(nil), st.Memory[:m.toldLength()]...)
	}
}

// Aggregate learns from the round before the means move on.
func (m *meanRegularised) Aggregate(st *fl.State, r fl.Releases) fl.Outcome {
	if m.auto() {
		m.learn(st, r)
	}
	return m.centres.Aggregate(st, r)
}
