package fl

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/model"
)

// clustered is what the methods share in which silos train one of the server's
// models: all of them the same one, or each the one of the cluster that it chose.
type clustered struct {
	*Silo
	models    int // of the server
	chooses   int // rounds, from the first one, in which silos choose
	federated int // rounds, from the first one, that start from the server's model

	assigned []int
	weights  []float64
	before   []float64
}

// newClustered: chooses of 0 means one model for all.
func newClustered(s *Silo, chooses, federated int) clustered {
	c := clustered{Silo: s, models: 1, chooses: chooses, federated: federated}
	if chooses > 0 {
		c.models = s.cfg.Hypotheses
	}
	return c
}

// warmRounds is how long the run's warm start lasts.
func (s *Silo) warmRounds() int { return roundsOf(s.cfg.WarmStart, s.cfg.Rounds) }

// roundsOf is a share of the rounds: at least one, if it is above 0.
func roundsOf(share float64, rounds int) int {
	if share == 0 {
		return 0
	}
	return max(1, int(share*float64(rounds)))
}

func (c *clustered) passes() int             { return 1 }
func (c *clustered) choosing(round int) bool { return round < c.chooses }
func (c *clustered) tell(*State, *Broadcast) {}

// begin starts every cluster elsewhere: equal models could not be told apart.
func (c *clustered) begin(st *State) {
	st.Hypotheses = make([]float64, c.models*c.n)
	m := c.model
	if c.models > 1 {
		m = scattered(m)
	}
	for j := range c.models {
		m.Initialise(st.Hypotheses[j*c.n:(j+1)*c.n], c.start.Stream(0, j))
	}
}

// scatter is the spread of clusters' linear models that would start at zero: enough
// to tell them apart, and little where a feature hardly varies and its weight stays
// as it began. (Paper 002's code takes one over the root of the features; on School
// the weights of rare features then ruin the test error.)
const scatter = 0.01

// scattered is the model with a random start.
func scattered(m model.Model) model.Model {
	if l, ok := m.(model.SiloLinear); ok && l.InitSD == 0 {
		l.InitSD = scatter
		return l
	}
	return m
}

// cluster is where the silo belongs in the round: it chooses, or keeps its choice.
func (c *clustered) cluster(w *Worker, b Broadcast, p *Participant) (int, error) {
	if len(b.Hypotheses) != c.models*c.n {
		return 0, fmt.Errorf("the server sent %d values, not %d models of %d", len(b.Hypotheses), c.models, c.n)
	}
	if !c.choosing(b.Round) {
		return c.lastChoice(p), nil
	}
	chosen, err := c.choose(w, b, p)
	if err == nil {
		p.Personal[c.n] = float64(chosen)
	}
	return chosen, err
}

func (c *clustered) lastChoice(p *Participant) int {
	return max(0, min(int(p.Personal[c.n]), c.models-1))
}

// centre is one of the server's models.
func (c *clustered) centre(b Broadcast, cluster int) []float64 {
	return b.Hypotheses[cluster*c.n : (cluster+1)*c.n]
}

// adoptCentre is the model of the silo's cluster, or, where a server sends something
// else than models, the silo's own.
func (c *clustered) adoptCentre(dst []float64, b Broadcast, p *Participant) {
	if len(b.Hypotheses) != c.models*c.n {
		copy(dst, p.Personal[:c.n])
		return
	}
	copy(dst, c.centre(b, c.lastChoice(p)))
}

// trainCentre is a federated round: from the cluster's model, as FedAvg.
func (c *clustered) trainCentre(w *Worker, b Broadcast, p *Participant, out []float64) error {
	cluster, err := c.cluster(w, b, p)
	if err != nil {
		return err
	}
	copy(w.theta, c.centre(b, cluster))
	if err := c.descend(w, p, w.theta, pull{}); err != nil {
		return err
	}
	copy(p.Personal, w.theta)
	c.declare(out, w.theta, p, cluster)
	return nil
}

// aggregate moves every cluster's model to the weighted mean of its silos'. One
// without releases stays, or takes over half of another.
func (c *clustered) aggregate(st *State, r Releases) Outcome {
	length := c.ReleaseLength()
	c.assigned = c.assigned[:0]
	c.weights = append(c.weights[:0], make([]float64, c.models)...)
	c.before = append(c.before[:0], st.Hypotheses...)
	for i := range r.Clients {
		release := r.Vectors[i*length : (i+1)*length]
		d, ok := c.declared(release, c.models)
		if !ok {
			c.assigned = append(c.assigned, -1)
			continue
		}
		c.assigned = append(c.assigned, d.cluster)
		c.weights[d.cluster] += d.weight
	}
	for cluster, total := range c.weights {
		if total > 0 {
			c.setMean(st, r, c.assigned, cluster)
		}
	}
	if _, err := mech.Norm(st.Hypotheses); err != nil {
		copy(st.Hypotheses, c.before)
		return Outcome{Assigned: c.assigned, Err: fmt.Errorf("round %d: the mean of the releases is not finite: %w", st.Round, err)}
	}
	c.splitEmpty(st, r)
	return Outcome{Assigned: slices.Clip(c.assigned)}
}

// setMean moves a cluster's model to the weighted mean of its releases.
func (c *clustered) setMean(st *State, r Releases, of []int, cluster int) {
	length, total := c.ReleaseLength(), 0.0
	mean := st.Hypotheses[cluster*c.n : (cluster+1)*c.n]
	clear(mean)
	for i, j := range of {
		if j != cluster {
			continue
		}
		release := r.Vectors[i*length : (i+1)*length]
		d, _ := c.declared(release, c.models)
		total += d.weight
		for k, v := range release[:c.n] {
			mean[k] += d.weight * v
		}
	}
	for k := range mean {
		mean[k] /= total
	}
}
