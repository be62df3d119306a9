package fl

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// mocha learns how silos relate beside their models (Smith et al. 2017), in the
// primal form of paper 002's code: with W the silos' models, one a row, the penalty is
// lambda/2*tr(W' S W), and S = (W W')^(1/2) scaled to trace 1. The published method
// takes the inverse of S; so do not read more into a pair's relation than its sign.
type mocha struct {
	*Silo
	lambda float64
}

// leastRelation keeps S positive: the smallest eigenvalue of W W' that is used.
const leastRelation = 1e-8

func newMocha(s *Silo) *mocha { return &mocha{s, s.cfg.Lambda.Value()} }

func (m *mocha) passes() int       { return 1 }
func (m *mocha) choosing(int) bool { return false }

// begin keeps W in Memory; Hypotheses hold the mean, for who joins late.
func (m *mocha) begin(st *State) {
	st.Hypotheses = make([]float64, m.n)
	m.model.Initialise(st.Hypotheses, m.start.Stream(0, 0))
	st.Memory = make([]float64, 0, m.silos*m.n)
	for range m.silos {
		st.Memory = append(st.Memory, st.Hypotheses...)
	}
}

// tell sends S*W, a row for every silo, and S's diagonal: all that the penalty's
// gradient needs.
func (m *mocha) tell(st *State, b *Broadcast) {
	b.Memory = make([]float64, m.silos*m.n+m.silos)
	related, diagonal := b.Memory[:m.silos*m.n], b.Memory[m.silos*m.n:]
	m.relate(related, diagonal, st.Memory)
}

// relate computes S*W and the diagonal of S from the smaller of W W' and W' W: both
// have the same eigenvalues above 0.
func (m *mocha) relate(related, diagonal, models []float64) {
	k, n := m.silos, m.n
	w := mat.NewDense(k, n, models)
	var gram mat.Dense
	bySilo := k <= n
	if bySilo {
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
	// Without a decomposition all silos are unrelated: S is the identity over k.
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
			if bySilo {
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

// respond follows the penalty's gradient, lambda*(S W)_k, in which the silo's own
// model moves on while the others' stay.
func (m *mocha) respond(w *Worker, b Broadcast, p *Participant, out []float64) error {
	if len(b.Memory) != m.silos*m.n+m.silos || p.ID >= m.silos {
		return fmt.Errorf("the server sent the relations of %d values, not of %d silos of %d", len(b.Memory), m.silos, m.n)
	}
	reg := pull{slope: m.lambda * b.Memory[m.silos*m.n+p.ID], offset: w.silo.offset}
	related := b.Memory[p.ID*m.n : (p.ID+1)*m.n]
	for i := range reg.offset {
		reg.offset[i] = m.lambda*related[i] - reg.slope*p.Personal[i]
	}
	copy(w.theta, p.Personal)
	if err := m.descend(w, p, w.theta, reg); err != nil {
		return err
	}
	copy(p.Personal, w.theta)
	m.declare(out, w.theta, p, 0)
	return nil
}

func (m *mocha) aggregate(st *State, r Releases) Outcome {
	length := m.ReleaseLength()
	assigned := make([]int, len(r.Clients))
	for i, client := range r.Clients {
		release := r.Vectors[i*length : (i+1)*length]
		if _, ok := m.declared(release, 1); ok && client < m.silos {
			copy(st.Memory[client*m.n:(client+1)*m.n], release)
		} else {
			assigned[i] = -1
		}
	}
	clear(st.Hypotheses)
	for i, v := range st.Memory {
		st.Hypotheses[i%m.n] += v / float64(m.silos)
	}
	return Outcome{Assigned: assigned}
}

func (m *mocha) adopt(dst []float64, _ Broadcast, p *Participant) { copy(dst, p.Personal[:m.n]) }
