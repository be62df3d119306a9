package fl

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Group is Algorithm 1 of papers 000 and 004: clients train the hypothesis that
// fits them best and sanitise what they send; the server clusters what it gets.
// Without noise it is IFCA; with one hypothesis, too, it is FedAvg.
type Group struct {
	model   model.Model
	descent model.Descent
	cfg     config.Algorithm
	privacy config.Privacy
	laplace mech.Laplace
	layers  []layer // what is sanitised apart
	start   rng.Family
	noise   rng.Family
	batches rng.Family

	clusters clusters // the server's
	taken    []bool
}

// NewGroup builds the method for a run and its model.
func NewGroup(run config.Run, m model.Model) (*Group, error) {
	descent, err := model.NewDescent(run.Algorithm.Local)
	if err != nil {
		return nil, fmt.Errorf("algorithm.local: %w", err)
	}
	layers, err := newLayers(run.Privacy, m)
	if err != nil {
		return nil, err
	}
	k, n := run.Algorithm.Hypotheses, m.Parameters()
	g := &Group{
		model: m, descent: descent, cfg: run.Algorithm, privacy: run.Privacy,
		laplace: mech.Laplace{Multiplier: run.Privacy.NoiseMultiplier},
		layers:  layers,
		start:   rng.NewFamily(run.Seed, "initial hypotheses"),
		noise:   rng.NewFamily(run.Seed, "noise"),
		batches: rng.NewFamily(run.Seed, "batches"),
		clusters: clusters{
			k: k, n: n, size: make([]int, k), sums: make([]float64, k*n),
		},
	}
	return g, g.settleMost()
}

// Model is what the hypotheses parametrise.
func (g *Group) Model() model.Model { return g.model }

// Start draws the hypotheses as the model says.
func (g *Group) Start() *State {
	k, n := g.clusters.k, g.clusters.n
	s := &State{Hypotheses: make([]float64, k*n), Idle: make([]int, k)}
	for j := range k {
		g.model.Initialise(s.Hypotheses[j*n:(j+1)*n], g.start.Stream(0, j))
	}
	return s
}

// ReleaseLength is that of one hypothesis.
func (g *Group) ReleaseLength() int { return g.clusters.n }

// Prepare has nothing to settle: the noise follows from the update.
func (g *Group) Prepare(*Participant) error { return nil }

// sound says that noise is scaled to a public radius.
func (g *Group) sound() bool { return g.cfg.Mode == "sound" }

// Broadcast is lines 2 and 3 of Algorithm 1.
func (g *Group) Broadcast(s *State) (Broadcast, error) {
	b := Broadcast{Round: s.Round, Hypotheses: s.Hypotheses, Radius: g.radius(s.Round)}
	if g.exact() {
		if err := g.ontoLattice(b.Hypotheses, b.Radius); err != nil {
			return Broadcast{}, fmt.Errorf("round %d: %w", s.Round+1, err)
		}
	}
	n := g.clusters.n
	for i := 0; i < len(b.Hypotheses); i += n {
		for j := 0; j < i; j += n {
			b.Spread = max(b.Spread, squaredDistance(b.Hypotheses[i:i+n], b.Hypotheses[j:j+n]))
		}
	}
	b.Spread = math.Sqrt(b.Spread)
	return b, nil
}

// Respond is lines 5 to 7 of Algorithm 1, and Algorithm 2. Nothing but the
// sanitised vector leaves: no index, no loss, no count.
func (g *Group) Respond(w *Worker, b Broadcast, p *Participant, out []float64) (bool, error) {
	n := g.clusters.n
	if w.learner == nil {
		w.learner = g.model.Learner()
		// Two workers' small vectors must not share a cache line.
		w.theta, w.delta = make([]float64, 0, max(n, 32)), make([]float64, 0, max(n, 32))
	}
	p.Mishap = nil
	base := g.train(w, b, p)
	if g.privacy.NoiseMultiplier == 0 {
		return g.respondBare(w, b, p, out, base)
	}
	w.delta = w.delta[:0]
	for i, v := range w.theta {
		w.delta = append(w.delta, v-base[i])
	}
	if err := g.boundLayers(w, b, p); err != nil {
		return false, err
	}
	e := joint(w.bounded)
	if c := g.privacy.Ceiling; c != nil && !p.Account.Allows(e, *c) {
		return false, nil
	}
	paid, err := g.pay(p, b.Round, w.bounded)
	if err != nil || !paid {
		return false, err
	}
	g.charge(p, e) // before any noise is drawn
	if err := g.release(w, b, p, out, base); err != nil {
		return false, err
	}
	return true, nil
}

// train leaves a trained vector in w.theta and returns the hypothesis that it began
// from. What fails ends in that hypothesis as it came, and a Mishap.
func (g *Group) train(w *Worker, b Broadcast, p *Participant) (base []float64) {
	n, choice := g.clusters.n, 0
	var err error
	if !p.Blank {
		_, choice, err = model.Best(w.learner, n, b.Hypotheses, g.draw(w, b, p))
	}
	base = b.Hypotheses[choice*n : (choice+1)*n]
	w.theta = append(w.theta[:0], base...)
	if !p.Blank && err == nil {
		err = w.learner.Train(g.descent, w.theta, w.mine, &w.batches)
	}
	if err != nil {
		copy(w.theta, base)
		p.Mishap = fmt.Errorf("round %d, client %d: local training failed: %w", b.Round+1, p.ID, err)
	}
	return base
}

// draw is what the client chooses by and trains on in a round: all it has, or a
// limited number of pictures.
func (g *Group) draw(w *Worker, b Broadcast, p *Participant) *data.Client {
	w.mine = p.Data
	limit, all := g.cfg.Local.Limit, p.Data.Len()
	some := limit > 0 && limit < all && p.Data.Images != nil
	if some || (g.descent.Batch > 0 && g.descent.Batch < all) {
		w.batches.Key(&g.batches, b.Round, p.ID)
	}
	if !some {
		return w.mine
	}
	w.index = append(w.index[:0], p.Data.Index...)
	w.batches.Shuffle(w.index)
	w.some = data.Client{Pictures: data.Pictures{Images: p.Data.Images, Index: w.index[:limit]}}
	w.mine = &w.some
	return w.mine
}

func (g *Group) respondBare(w *Worker, b Broadcast, p *Participant, out, base []float64) (bool, error) {
	if g.privacy.Ceiling != nil {
		return false, nil // an unprotected release is above every ceiling
	}
	if _, err := mech.Norm(w.theta); err != nil {
		p.Mishap = g.diverged(b, p, err)
		copy(w.theta, base)
	}
	paid, err := p.pay(b.Round, bareRelease)
	if err != nil || paid == nil {
		return false, err
	}
	p.Account.AddUnprotected()
	copy(out, w.theta)
	return true, nil
}

func (g *Group) charge(p *Participant, e event.MetricLaplace) {
	p.Account.Add(e)
	if g.sound() {
		p.Switch += e.Switch()
	}
}

func (g *Group) diverged(b Broadcast, p *Participant, err error) error {
	return fmt.Errorf("round %d, client %d: local training left the finite numbers (%w); try a smaller algorithm.local.step than %v",
		b.Round+1, p.ID, err, g.cfg.Local.Step)
}

// Aggregate is lines 9 and 10 of Algorithm 1: k-means from the current
// hypotheses, then the mean of every cluster.
func (g *Group) Aggregate(s *State, r Releases) Outcome {
	s.Round++
	c := &g.clusters
	if len(r.Clients) == 0 { // everybody declined: nothing was learned
		return Outcome{}
	}
	c.run(r.Vectors, s.Hypotheses)
	for j, size := range c.size {
		s.Idle[j]++
		if size > 0 {
			s.Idle[j] = 0
		}
	}
	out := Outcome{Assigned: c.assign}
	if g.cfg.Empty == "relocate" {
		out.Relocated = g.relocate(s, r)
	}
	return out
}

// relocate moves hypotheses that were idle for too long to the released vectors
// farthest from their own clusters. Released values only: it costs no privacy.
func (g *Group) relocate(s *State, r Releases) (moved int) {
	c := &g.clusters
	for j := range s.Idle {
		if s.Idle[j] < g.cfg.IdleRounds {
			continue
		}
		if moved == 0 {
			g.taken = append(g.taken[:0], make([]bool, len(r.Clients))...)
		}
		i := c.farthest(r.Vectors, s.Hypotheses, g.taken)
		if i < 0 {
			break
		}
		g.taken[i] = true
		copy(s.Hypotheses[j*c.n:(j+1)*c.n], r.Vectors[i*c.n:(i+1)*c.n])
		s.Idle[j] = 0
		moved++
	}
	return moved
}
