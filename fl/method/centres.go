// Package method holds the ways of training together, one file each, registered by name.
package method

import (
	"cmp"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/fl/cluster"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// centres is what most methods share: the server keeps a model for all, or one for every
// cluster of participants, and moves them to the means of what is released.
type centres struct {
	fl.Setup
	n         int
	chooses   int // rounds, from the first one, in which participants choose; 0: one model for all
	federated int // rounds, from the first one, that start from the server's model
	keepsLast bool

	kmeans     *cluster.KMeans // nil: participants name their cluster, or there is one
	means      cluster.Means
	relocation cluster.Relocation
	before     []float64
}

// usualForged is the share of forged releases that robust rules count on.
const usualForged = 0.2

// newCentres makes the server's half of a method, from the rounds in which participants
// choose a cluster (0: there is one model for all) and those that start from the server's
// model. Declares asks for declarations beyond what clusters and weights need.
func newCentres(s fl.Setup, chooses, federated int, declares bool) centres {
	a := s.Run.Algorithm
	c := centres{Setup: s, n: s.Parameters, chooses: chooses, federated: federated}
	c.means = cluster.Means{Models: 1, N: c.n, Declares: declares || a.Weights == "counts", Counts: a.Weights == "counts"}
	if a.Robust != "" {
		c.means.Robust = &cluster.Robust{Rule: a.Robust, Share: cmp.Or(a.RobustShare, usualForged)}
	}
	if chooses > 0 {
		c.means.Models = a.Hypotheses
	}
	if c.means.Models == 1 {
		return c
	}
	if a.Clustering == "k-means" {
		c.kmeans = cluster.NewKMeans(c.means.Models, c.n)
		c.keepsLast = a.Selection.Rule == "nearest" || chooses < a.Rounds
	} else {
		c.means.Declares = true
		c.keepsLast = a.Selection.Rule == "nearest"
	}
	c.relocation.After = math.MaxInt
	if a.Empty == "relocate" {
		c.relocation.After = a.IdleRounds
	}
	return c
}

// warmRounds is how long the run's warm start lasts.
func warmRounds(run config.Run) int { return roundsOf(run.Algorithm.WarmStart, run.Algorithm.Rounds) }

// roundsOf is a share of the rounds: at least one, if it is above 0.
func roundsOf(share float64, rounds int) int {
	if share == 0 {
		return 0
	}
	return max(1, int(share*float64(rounds)))
}

// Outline is that of a method on these centres.
func (c *centres) Outline() fl.Outline {
	return fl.Outline{
		Models: c.means.Models, Passes: 1, Chooses: c.chooses, Sends: c.Run.Algorithm.Rounds, Declares: c.means.Declares,
		Single: c.means.Models > 1 || c.means.Robust != nil,
	}
}

// Tell adds nothing.
func (c *centres) Tell(*fl.State, *fl.Broadcast) {}

// Begin starts every cluster elsewhere: equal models could not be told apart.
func (c *centres) Begin(st *fl.State) {
	k := c.means.Models
	st.Hypotheses, st.Idle = make([]float64, k*c.n), make([]int, k)
	m := c.Model
	if k > 1 {
		m = model.Scattered(m)
	}
	start := rng.NewFamily(c.Run.Seed, "initial hypotheses")
	for j := range k {
		m.Initialise(st.Hypotheses[j*c.n:(j+1)*c.n], start.Stream(0, j))
	}
}

// sent refuses what a server sends instead of models.
func (c *centres) sent(b *fl.Broadcast) error {
	if len(b.Hypotheses) != c.means.Models*c.n {
		return fmt.Errorf("the server sent %d values, not %d models of %d", len(b.Hypotheses), c.means.Models, c.n)
	}
	return nil
}

// cluster is where the participant belongs in the round: it chooses, or keeps its choice.
func (c *centres) cluster(g fl.Guard, b *fl.Broadcast, p *fl.Participant) (int, error) {
	if err := c.sent(b); err != nil {
		return 0, err
	}
	switch {
	case c.means.Models == 1:
		return 0, nil
	case b.Round < c.chooses:
		chosen, err := g.Choose(b, p)
		p.Cluster = chosen
		return chosen, err
	case c.kmeans != nil: // the server never says where a release fell
		p.Cluster = cluster.Nearest(p.Last, b.Hypotheses, p.Cluster)
	}
	return max(0, min(p.Cluster, c.means.Models-1)), nil
}

// centre is one of the server's models.
func (c *centres) centre(b *fl.Broadcast, cluster int) []float64 {
	return b.Hypotheses[cluster*c.n : (cluster+1)*c.n]
}

// Adopt sets dst to the model of the participant's cluster, or, where a server sends
// something else than models, the participant's own. Where everybody goes by what fits
// best, so does this.
func (c *centres) Adopt(dst []float64, b *fl.Broadcast, p *fl.Participant, l model.Learner) {
	if c.sent(b) != nil {
		copy(dst, p.Personal)
		return
	}
	chosen := max(0, min(p.Cluster, c.means.Models-1))
	if c.kmeans != nil && l != nil && c.Run.Algorithm.Selection.Rule == "best" {
		if _, best, err := model.Best(l, c.n, b.Hypotheses, p.Data); err == nil {
			chosen = best
		}
	}
	copy(dst, c.centre(b, chosen))
}

// Respond is a federated round: from the cluster's model, as FedAvg.
func (c *centres) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	chosen, err := c.cluster(g, b, p)
	if err != nil {
		return false, err
	}
	centre := c.centre(b, chosen)
	theta := w.Trained(g, out, c.n)
	copy(theta, centre)
	if err := g.Train(b, p, theta, centre, fl.Pull{}); err != nil {
		return false, err
	}
	copy(p.Personal, theta)
	return c.send(g, b, p, out, theta, centre, chosen)
}

// trainAlone goes on with the participant's own model; what is sent, if there is a place
// for it, says nothing.
func (c *centres) trainAlone(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	if err := c.sent(b); err != nil {
		return false, err
	}
	theta := w.Theta(c.n)
	copy(theta, p.Personal)
	if err := g.Train(b, p, theta, c.centre(b, 0), fl.Pull{}); err != nil {
		return false, err
	}
	copy(p.Personal, theta)
	clear(out)
	return true, nil
}

// send has the guard release a model, and declares what goes with it.
func (c *centres) send(g fl.Guard, b *fl.Broadcast, p *fl.Participant, out, theta, centre []float64, chosen int) (bool, error) {
	released, err := g.Send(b, p, out, theta, centre)
	if err != nil || !released {
		return false, err
	}
	if c.means.Declares {
		p.Declare(out[c.n:], chosen)
	}
	if c.keepsLast {
		p.Last = append(p.Last[:0], out[:c.n]...)
	}
	return true, nil
}

// Aggregate moves every model to the mean of its releases. One without releases stays,
// is moved to where a release lies, or takes over half of another cluster.
func (c *centres) Aggregate(st *fl.State, r fl.Releases) (out fl.Outcome) {
	if len(r.Clients) == 0 { // everybody declined: nothing was learned
		return out
	}
	if c.isMean(r) {
		if err := mech.CheckFinite(r.Vectors[:c.n]); err != nil {
			return fl.Outcome{Err: notFinite(st, err)}
		}
	} else {
		c.before = append(c.before[:0], st.Hypotheses...)
	}
	var sizes []int
	if c.kmeans != nil {
		c.kmeans.Run(r.Vectors, st.Hypotheses)
		out.Assigned, sizes = c.kmeans.Assigned, c.kmeans.Size
	} else {
		c.means.Move(st, r)
		out.Assigned, sizes = c.means.Assigned, c.means.Sizes
	}
	if err := mech.CheckFinite(st.Hypotheses); err != nil {
		copy(st.Hypotheses, c.before)
		out.Err = notFinite(st, err)
		return out
	}
	if c.means.Models == 1 {
		return out
	}
	cluster.Note(st.Idle, sizes)
	out.Relocated = c.relocation.Move(st, r, out.Assigned, c.n)
	if c.kmeans == nil && c.Run.Algorithm.Empty == "split" && st.Round < c.chooses {
		c.means.Split(st, r)
	}
	return out
}

// isMean says that the one release is the mean, to the bit: it can be looked at before
// anything moves, and the model before needs no copy.
func (c *centres) isMean(r fl.Releases) bool {
	if c.means.Models > 1 || len(r.Clients) > 1 {
		return false
	}
	d, ok := c.means.Of(r, 0)
	return ok && d.Weight == 1
}

func notFinite(st *fl.State, err error) error {
	return fmt.Errorf("round %d: the mean of the releases is not finite: %w", st.Round, err)
}
