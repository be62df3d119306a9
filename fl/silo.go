package fl

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Silo is what the methods of paper 002, chapter 1, share: every silo has a privacy
// target for its own examples, finds its noise before training begins, and pays for
// a round before it draws any.
type Silo struct {
	model   model.Model
	n       int // parameters
	silos   int
	cfg     config.Algorithm
	privacy config.Privacy
	method  siloMethod
	moments *moments // nil: features are scaled by others, or not at all

	start, noise, batches, choice rng.Family
}

// siloMethod is what one method adds: both its halves.
type siloMethod interface {
	// passes is how often a silo trains in a round.
	passes() int
	// choosing says whether a silo chooses its cluster in the round.
	choosing(round int) bool
	// begin fills the server's state before the first round.
	begin(st *State)
	// tell adds to a broadcast what the method sends beside the models.
	tell(st *State, b *Broadcast)
	// respond is the silo's half of a round that is paid for; w.theta has room for a
	// model. What it leaves in out[:n] is the release.
	respond(w *Worker, b Broadcast, p *Participant, out []float64) error
	// aggregate is the server's half.
	aggregate(st *State, r Releases) Outcome
	// adopt is Personal's.
	adopt(dst []float64, b Broadcast, p *Participant)
}

// Beside a model, a release holds what the silo declares: its weight, its cluster,
// the variance of the noise in every coordinate and the number of steps. None of it
// comes from an example's content; the cluster is chosen privately and paid for.
const (
	tailWeight = iota
	tailCluster
	tailVariance
	tailSteps
	tailLength
)

// declaration is that part of a release.
type declaration struct {
	weight   float64
	cluster  int
	variance float64
	steps    float64
}

// NewSilo builds a method for silos.
func NewSilo(run config.Run, m model.Model, silos int) (*Silo, error) {
	if silos < 1 {
		return nil, fmt.Errorf("%d silos; at least one is needed", silos)
	}
	if _, ok := m.Learner().(model.SiloLearner); !ok {
		return nil, fmt.Errorf("model.kind: this model cannot clip single examples' gradients, which silos need")
	}
	s := &Silo{
		model: m, n: m.Parameters(), silos: silos, cfg: run.Algorithm, privacy: run.Privacy,
		start:   rng.NewFamily(run.Seed, "initial hypotheses"),
		noise:   rng.NewFamily(run.Seed, "noise"),
		batches: rng.NewFamily(run.Seed, "batches"),
		choice:  rng.NewFamily(run.Seed, "cluster choice"),
	}
	var err error
	if s.moments, err = newMoments(run); err != nil {
		return nil, err
	}
	switch run.Algorithm.Kind {
	case "local":
		s.method = newLocal(s)
	case "fedavg":
		s.method = newFedAvg(s)
	case "finetune":
		s.method = newFinetune(s)
	case "ifca":
		s.method = newPrivateIFCA(s)
	case "mr-mtl":
		s.method = newMRMTL(s)
	case "ditto":
		s.method = newDitto(s)
	case "mocha":
		s.method = newMocha(s)
	case "dp-fedavg":
		method, err := newClientLevel(s, run.Seed)
		if err != nil {
			return nil, err
		}
		s.method = method
	default:
		return nil, fmt.Errorf("algorithm.kind %q does not go with silos; allowed: %v", run.Algorithm.Kind, config.SiloMethods)
	}
	return s, nil
}

// Model is what the methods train.
func (s *Silo) Model() model.Model { return s.model }

// Start is one model, or one for every cluster.
func (s *Silo) Start() *State {
	st := new(State)
	s.method.begin(st)
	return st
}

// ReleaseLength is a model and what goes with it. Silos that train alone send nothing.
func (s *Silo) ReleaseLength() int {
	if s.alone() {
		return 0
	}
	return s.n + tailLength
}

// alone says that nothing is ever sent.
func (s *Silo) alone() bool { return s.cfg.Kind == "local" && s.cfg.WarmStart == 0 }

// Prepare settles the silo's noise, from its size and target. A model that it holds
// already is kept.
func (s *Silo) Prepare(p *Participant) error {
	plan, err := s.plan(p)
	if err != nil {
		return fmt.Errorf("silo %d %s: %w", p.ID, p.Name, err)
	}
	p.Plan = plan
	if p.Personal == nil {
		p.Personal = make([]float64, s.keeps())
		s.model.Initialise(p.Personal[:s.n], s.start.Stream(0, 0))
	}
	if len(p.Personal) != s.keeps() {
		return fmt.Errorf("silo %d %s: it keeps %d values, not %d: they belong to another run", p.ID, p.Name, len(p.Personal), s.keeps())
	}
	return nil
}

// plan follows from public numbers and, where these are public too, the silo's size.
func (s *Silo) plan(p *Participant) (SiloPlan, error) {
	size := p.Data.Len()
	if size < 1 {
		return SiloPlan{}, fmt.Errorf("it has no examples")
	}
	if s.moments != nil {
		if err := s.moments.fit(p.Data); err != nil {
			return SiloPlan{}, err
		}
	}
	choices := 0
	for round := range s.cfg.Rounds {
		if s.method.choosing(round) {
			choices++
		}
	}
	if m, ok := s.method.(*clientLevel); ok {
		plan := m.clientPlan(size)
		plan.Noise = m.noise
		return plan, nil
	}
	plan := s.shuffled(size)
	plan.Target, plan.trust, plan.uncovered = targetOf(s.privacy, p.Name), event.TrustLocal, len(p.Uncovered) > 0
	plan.terms = account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimHeuristic}
	if s.cfg.Mode == "sound" {
		plan.terms.Relation = event.Relation(s.privacy.Relation)
		if !plan.uncovered {
			plan.terms.Claim = event.ClaimProved
		}
		plan.drawn = event.WithoutReplacement
		if plan.terms.Relation == event.AddRemove {
			if s.privacy.PublicSize < 1 {
				return plan, fmt.Errorf("privacy.public_size is missing: under add-remove it stands for the silo's size")
			}
			plan.drawn = event.Poisson
			s.drawFrom(&plan, s.privacy.PublicSize)
		}
	}
	if s.cfg.Weights == "counts" {
		plan.Weight = float64(size)
	}
	return plan, s.settleNoise(&plan, choices)
}

// shuffled is the epochs of a silo of some size, in batches of a random order.
func (s *Silo) shuffled(size int) SiloPlan {
	plan := SiloPlan{Examples: size, Weight: 1, drawn: event.Shuffle, epochs: s.method.passes() * s.cfg.Local.Epochs}
	s.drawFrom(&plan, size)
	return plan
}

// drawFrom settles batches and steps for a public size: the last, smaller batch of
// an epoch is dropped.
func (s *Silo) drawFrom(plan *SiloPlan, size int) {
	plan.Batch = size
	if s.cfg.Local.Batch > 0 {
		plan.Batch = min(s.cfg.Local.Batch, size)
	}
	plan.Rate = float64(plan.Batch) / float64(size)
	plan.Steps = size / plan.Batch * plan.epochs
	plan.pass = plan.Steps / s.method.passes()
}

// Broadcast is the server's models and what the method sends beside them.
func (s *Silo) Broadcast(st *State) (Broadcast, error) {
	b := Broadcast{Round: st.Round, Hypotheses: st.Hypotheses}
	s.method.tell(st, &b)
	return b, nil
}

// Respond pays for the round and trains.
func (s *Silo) Respond(w *Worker, b Broadcast, p *Participant, out []float64) (bool, error) {
	s.ready(w)
	choosing := s.method.choosing(b.Round)
	release, err := p.Plan.release(choosing, s.owesMoments(b.Round, p))
	if err != nil {
		return false, s.located(b, p, err)
	}
	p.Mishap = nil
	paid, err := p.pay(b.Round, release)
	if err != nil || paid == nil {
		return false, err
	}
	if err := s.standardise(b.Round, p, paid); err != nil {
		return false, s.located(b, p, err)
	}
	p.Paid.Rounds++ // before any noise is drawn
	if choosing {
		p.Paid.Choices++
	}
	if err := s.open(w, b, p, paid); err != nil {
		return false, s.located(b, p, err)
	}
	if err := s.method.respond(w, b, p, out); err != nil {
		return false, s.located(b, p, err)
	}
	if _, err := mech.Norm(w.theta); err != nil {
		p.Mishap = s.located(b, p, fmt.Errorf("training left the finite numbers (%w); try a smaller algorithm.local.step than %v", err, s.cfg.Local.Step))
		s.fix(b, p, out)
	}
	return true, nil
}

// fix puts a public vector in the place of a release, and of a silo's own model, that
// left the finite numbers: the server's first model, or no update.
func (s *Silo) fix(b Broadcast, p *Participant, out []float64) {
	copy(p.Personal[:s.n], b.Hypotheses)
	if len(out) < s.n {
		return
	}
	copy(out[:s.n], b.Hypotheses)
	if _, ok := s.method.(*clientLevel); ok {
		clear(out[:s.n])
	}
}

func (s *Silo) located(b Broadcast, p *Participant, err error) error {
	return fmt.Errorf("round %d, silo %d %s: %w", b.Round+1, p.ID, p.Name, err)
}

// Aggregate moves the server's models on.
func (s *Silo) Aggregate(st *State, r Releases) Outcome {
	st.Round++
	return s.method.aggregate(st, r)
}

// Adopt sets dst to the model that a silo uses once the rounds before b are made.
func (s *Silo) Adopt(dst []float64, b Broadcast, p *Participant) { s.method.adopt(dst, b, p) }

// declare writes the model and the silo's public numbers to a release.
func (s *Silo) declare(out, theta []float64, p *Participant, cluster int) {
	copy(out, theta)
	plan := &p.Plan
	tail := out[s.n:]
	tail[tailWeight], tail[tailCluster] = plan.Weight, float64(cluster)
	tail[tailVariance], tail[tailSteps] = s.updateVariance(plan), float64(plan.Steps)
}

// updateVariance is that of the noise in a coordinate of one round's update.
func (s *Silo) updateVariance(plan *SiloPlan) float64 {
	step := s.cfg.Local.Step * plan.Noise * s.privacy.Clip / float64(plan.Batch)
	return float64(plan.Steps) * step * step
}

// declared reads a release's public numbers. A release that declares what cannot be
// is left out: it comes from outside.
func (s *Silo) declared(release []float64, clusters int) (d declaration, ok bool) {
	tail := release[s.n:]
	at := tail[tailCluster]
	d = declaration{weight: tail[tailWeight], variance: tail[tailVariance], steps: tail[tailSteps]}
	ok = d.weight > 0 && d.weight <= math.MaxInt32 && d.steps >= 1 && d.steps <= math.MaxInt32 &&
		d.variance >= 0 && d.variance <= math.MaxFloat64 && at >= 0 && at < float64(clusters) && at == math.Floor(at)
	if ok {
		d.cluster = int(at)
	}
	return d, ok
}
