package method

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "mocha", Words: "everybody's own model, and how they relate is learned beside them", Common: fl.CommonMean,
		Keys: slices.Concat(stepKeys, lambdaKeys),
		Settings: func(run *config.Run) {
			personal(run)
			run.Algorithm.ClientsPerRound = 0
		},
		Check: func(c *config.Checker, run config.Run) {
			checkOneModel(c, run)
			checkPersonal(c, run)
			checkLambda(c, run)
			c.Require(run.Algorithm.ClientsPerRound == 0, "algorithm.clients_per_round", "is %d, but mocha relates the models of all participants in every round; allowed: 0", run.Algorithm.ClientsPerRound)
		},
		New: func(s fl.Setup) (fl.Method, error) {
			return &mocha{s, s.Parameters, s.Run.Algorithm.Lambda.Value()}, nil
		},
	})
}

// mocha learns how participants relate beside their models (Smith et al. 2017), in the
// primal form of paper 002's code: with W the participants' models, one a row, the penalty is
// lambda/2*tr(W' S W), and S = (W W')^(1/2) scaled to trace 1. The published method
// takes the inverse of S; so do not read more into a pair's relation than its sign.
type mocha struct {
	fl.Setup
	n      int
	lambda float64
}

// leastRelation keeps S positive: the smallest eigenvalue of W W' that is used.
const leastRelation = 1e-8

func (m *mocha) Outline() fl.Outline {
	return fl.Outline{Models: 1, Passes: 1, Sends: m.Run.Algorithm.Rounds, Personal: true, Single: true}
}

// Begin keeps W in Memory; Hypotheses hold the mean, for who joins late.
func (m *mocha) Begin(st *fl.State) {
	start := rng.NewFamily(m.Run.Seed, "initial hypotheses")
	st.Hypotheses, st.Idle = make([]float64, m.n), make([]int, 1)
	m.Model.Initialise(st.Hypotheses, start.Stream(0, 0))
	st.Memory = make([]float64, 0, m.Participants*m.n)
	for range m.Participants {
		st.Memory = append(st.Memory, st.Hypotheses...)
	}
}

// Tell sends S*W, a row for every participant, and S's diagonal: all that the penalty's
// gradient needs.
func (m *mocha) Tell(st *fl.State, b *fl.Broadcast) {
	b.Memory = make([]float64, m.Participants*m.n+m.Participants)
	related, diagonal := b.Memory[:m.Participants*m.n], b.Memory[m.Participants*m.n:]
	m.relate(related, diagonal, st.Memory)
}

// relate computes S*W and the diagonal of S from the smaller of W W' and W' W: both
// have the same eigenvalues above 0.
func (m *mocha) relate(related, diagonal, models []float64) {
	k, n := m.Participants, m.n
	w := mat.NewDense(k, n, models)
	var gram mat.Dense
	byParticipant := k <= n
	if byParticipant {
		gram.Mul(w, w.T())
	} else {
		gram.Mul(w.T(), w)
	}
	size := min(k, n)
	symmetric := mat.NewSymDense(size, nil)
	for i := range size {
		for j := i; j < size; j++ {
			symmetric.SetSym(i, j, gram.At(i, j))
		}
	}
	// Without a decomposition all participants are unrelated: S is the identity over k.
	trace, least := 0.0, math.Sqrt(leastRelation)
	var eigen mat.EigenSym
	var vectors mat.Dense
	var values []float64
	if eigen.Factorize(symmetric, true) {
		values = eigen.Values(nil)
		eigen.VectorsTo(&vectors)
	}
	clear(related)
	clear(diagonal)
	unit := make([]float64, k)
	kept := 0
	for i, v := range values {
		if v <= leastRelation {
			continue
		}
		root := math.Sqrt(v)
		for s := range k { // the i-th eigenvector of W W'
			if byParticipant {
				unit[s] = vectors.At(s, i)
				continue
			}
			unit[s] = 0
			for j := range n {
				unit[s] += w.At(s, j) * vectors.At(j, i)
			}
			unit[s] /= root
		}
		kept++
		trace += root
		m.addRelation(related, diagonal, models, unit, root-least)
	}
	trace += float64(k-kept) * least
	for i, v := range models {
		related[i] = (related[i] + least*v) / trace
	}
	for s := range diagonal {
		diagonal[s] = (diagonal[s] + least) / trace
	}
}

// addRelation adds weight*u*u' to S.
func (m *mocha) addRelation(related, diagonal, models, unit []float64, weight float64) {
	along := make([]float64, m.n) // u' W
	for s, u := range unit {
		for j, v := range models[s*m.n : (s+1)*m.n] {
			along[j] += u * v
		}
	}
	for s, u := range unit {
		diagonal[s] += weight * u * u
		row := related[s*m.n : (s+1)*m.n]
		for j, v := range along {
			row[j] += weight * u * v
		}
	}
}

// Respond follows the penalty's gradient, lambda*(S W)_k, in which the participant's own
// model moves on while the others' stay.
func (m *mocha) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	k := m.Participants
	if len(b.Memory) != k*m.n+k || len(b.Hypotheses) != m.n || p.ID >= k {
		return false, fmt.Errorf("the server sent the relations of %d values, not of %d participants of %d", len(b.Memory), k, m.n)
	}
	reg := fl.Pull{Slope: m.lambda * b.Memory[k*m.n+p.ID], Offset: w.Offset(m.n)}
	related := b.Memory[p.ID*m.n : (p.ID+1)*m.n]
	for i := range reg.Offset {
		reg.Offset[i] = m.lambda*related[i] - reg.Slope*p.Personal[i]
	}
	theta := w.Theta(m.n)
	copy(theta, p.Personal)
	if err := g.Train(b, p, theta, b.Hypotheses, reg); err != nil {
		return false, err
	}
	copy(p.Personal, theta)
	return g.Send(b, p, out, theta, b.Hypotheses)
}

// Aggregate takes every model over.
func (m *mocha) Aggregate(st *fl.State, r fl.Releases) fl.Outcome {
	assigned := make([]int, len(r.Clients))
	for i, client := range r.Clients {
		if client >= m.Participants {
			assigned[i] = -1
			continue
		}
		copy(st.Memory[client*m.n:(client+1)*m.n], r.Vectors[i*m.n:(i+1)*m.n])
	}
	clear(st.Hypotheses)
	for i, v := range st.Memory {
		st.Hypotheses[i%m.n] += v / float64(m.Participants)
	}
	return fl.Outcome{Assigned: assigned}
}

// Adopt is the participant's own model.
func (m *mocha) Adopt(dst []float64, _ *fl.Broadcast, p *fl.Participant, _ model.Learner) {
	copy(dst, p.Personal)
}
