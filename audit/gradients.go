package audit

import (
	"context"
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// gradientCanaries are examples that consist of a gradient, each along a coordinate of
// its own and far longer than the clip. Those that are in are drawn, clipped and noised
// with a participant's own examples. The attacker that scores them all sees every noised
// step and knows the own examples, and which of them a batch drew: the accountant assumes
// no less. It is the purse of that participant, too.
type gradientCanaries struct {
	in     []bool // by canary
	at     []int  // by canary: its coordinate
	victim *data.Client

	scores  []float64     // by canary: how much likelier its coordinates are if it is in
	still   []float64     // by step: sum of squares of the coordinates of those that are out, in units of the noise
	steps   []canaryRound // by step: as charged
	charged []event.Release
	round   canaryRound
	open    int // steps that were paid for and not seen yet
}

// canaryLength is a canary's gradient in clips: whoever forgets to clip shows.
const canaryLength = 100

// coinCanaries are in by a fair coin each.
func coinCanaries(n int, seed uint64) *gradientCanaries {
	in := make([]bool, n)
	family := rng.NewFamily(seed, "canary coins")
	s := family.Stream(0, 0)
	for i := range in {
		in[i] = s.Below(2) == 1
	}
	return newGradientCanaries(in)
}

func newGradientCanaries(in []bool) *gradientCanaries {
	g := &gradientCanaries{in: in, at: make([]int, len(in)), scores: make([]float64, len(in))}
	for i := range g.at {
		g.at[i] = i
	}
	return g
}

// Reserve notes what a round costs: the purse of a participant that allows everything.
func (g *gradientCanaries) Reserve(_ int, release event.Release) error {
	if err := g.complete(); err != nil {
		return err
	}
	round := canaryRound{rate: 1}
	if err := round.read(release.What, 1); err != nil {
		return fmt.Errorf("gradient canaries: %w", err)
	}
	g.round, g.open = round, round.steps
	g.charged = append(g.charged, release)
	return nil
}

// complete says whether every step that was paid for was made.
func (g *gradientCanaries) complete() error {
	if g.open != 0 {
		return fmt.Errorf("gradient canaries: %w: round %d was charged for %d steps, and %d were made", ErrCanary, len(g.charged), g.round.steps, g.round.steps-g.open)
	}
	return nil
}

// see scores one step's noised sum, in clips.
func (g *gradientCanaries) see(sum []float64, clips float64) {
	squares := 0.0
	for i, at := range g.at {
		z := g.round.places(sum[at] * clips)
		g.scores[i] += g.round.stepRatio(z)
		if !g.in[i] {
			squares += z * z
		}
	}
	g.open--
	g.still = append(g.still, squares/(g.round.noise*g.round.noise))
	g.steps = append(g.steps, canaryRound{steps: 1, rate: g.round.rate, noise: g.round.noise, nodes: g.round.nodes})
}

// stepRatio is how much likelier a coordinate is in one step if its canary is in, as a
// logarithm: ln(1 + q(exp(z/s^2 - 1/(2 s^2)) - 1)).
func (r *canaryRound) stepRatio(z float64) float64 {
	a := (z - 0.5) / (r.noise * r.noise)
	switch {
	case r.rate == 1:
		return a
	case a > 0:
		return a + math.Log(r.rate+(1-r.rate)*math.Exp(-a))
	}
	return math.Log1p(r.rate * math.Expm1(a))
}

// planted are the canaries that are in, for a clip.
func (g *gradientCanaries) planted(clip float64) *model.Planted {
	p := &model.Planted{Length: canaryLength * clip}
	for i, at := range g.at {
		if g.in[i] {
			p.At = append(p.At, at)
		}
	}
	return p
}

// withCanaries is a model whose learners plant the canaries beside the victim's examples
// and look at its noised steps. What they train is not for use.
type withCanaries struct {
	model.Model
	canaries *gradientCanaries
}

func (m withCanaries) Learner() (model.Learner, error) {
	l, err := m.Model.Learner()
	return &plantingLearner{Learner: l, canaries: m.canaries}, err
}

type plantingLearner struct {
	model.Learner
	canaries *gradientCanaries
	seen     []float64
}

func (l *plantingLearner) Train(theta []float64, c *data.Client, p *model.Pass) error {
	if c != l.canaries.victim || p.Paid == nil {
		return l.Learner.Train(theta, c, p)
	}
	if c.People == nil {
		p.Planted = l.canaries.planted(p.Paid.Clip())
	}
	err := p.Descend(l, theta, c)
	p.Planted = nil
	return err
}

func (l *plantingLearner) Gradient(dst, theta []float64, c *data.Client, batch []int, s *model.Step) error {
	if s.Planted == nil && !l.canaries.ofPersons(c) {
		return l.Learner.Gradient(dst, theta, c, batch, s)
	}
	clip := s.Paid.Clip() // before the step moves it
	if err := l.Learner.Gradient(dst, theta, c, batch, s); err != nil {
		return err
	}
	if cap(l.seen) < len(dst) {
		l.seen = make([]float64, len(dst))
	}
	seen := l.seen[:len(dst)]
	clear(seen)
	if len(batch) > 0 && c.People == nil { // of the own examples, without noise: what the attacker knows
		known := model.Step{Clip: clip, Divisor: s.Divisor, Shift: s.Shift}
		if err := l.Learner.Gradient(seen, theta, c, batch, &known); err != nil {
			return err
		}
	}
	for i, v := range dst {
		seen[i] = v - seen[i]
	}
	l.canaries.see(seen, float64(s.Divisor)/clip)
	return nil
}

// playSteps makes the run's rounds as its first participant would, through the shipped
// path, but with nothing to train on and a coordinate for every canary: what is left is
// the mechanism. Meddle may put something between the canaries and the model, for tests.
func (g *gradientCanaries) playSteps(ctx context.Context, run config.Run, name string, meddle func(model.Model) model.Model, tick func(round int)) error {
	run, m, victim, err := g.stage(run, name)
	if err != nil {
		return fmt.Errorf("gradient canaries: %w", err)
	}
	if meddle != nil {
		m = meddle(m)
	}
	algorithm, err := fl.New(run, withCanaries{m, g}, 1)
	if err != nil {
		return fmt.Errorf("gradient canaries: %w", err)
	}
	p := fl.Participant{Name: name, Data: victim, Purse: g}
	if err := algorithm.Prepare(&p); err != nil {
		return fmt.Errorf("gradient canaries: %w", err)
	}
	g.victim = p.Data // people are under their rule now
	st, w, out := algorithm.Start(), new(fl.Worker), make([]float64, algorithm.ReleaseLength())
	for round := range run.Algorithm.Rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		st.Round = round
		b, err := algorithm.Broadcast(st)
		if err != nil {
			return fmt.Errorf("gradient canaries: %w", err)
		}
		released, err := algorithm.Respond(w, b, &p, out)
		if err != nil {
			return fmt.Errorf("gradient canaries: %w", err)
		}
		if !released {
			return fmt.Errorf("gradient canaries: %w: the participant declines round %d although its purse allows everything", fl.ErrRefused, round+1)
		}
		if tick != nil {
			tick(round + 1)
		}
	}
	return g.complete()
}

// stepsOnly is the run with one parameter a canary and no data: what it charges and draws
// follows from its algorithm and privacy blocks alone.
func stepsOnly(run config.Run) config.Run {
	run.Data = config.Data{Kind: "school", Standardise: "none"}
	run.Model = config.Model{Kind: "linear"}
	local := &run.Algorithm.Local
	local.Loss, local.ClassWeights, local.FocalAlpha, local.FocalGamma = "squared-error", nil, 0, 0
	run.Algorithm.ClientsPerRound = 1
	return run
}

// CheckGradients lists what a run file must say so that its steps can be audited.
func CheckGradients(run config.Run) config.Faults {
	var c config.Checker
	a, p := run.Algorithm, run.Privacy
	shape, _ := data.ShapeOf(run.Data)
	if noCanary(&c, shape, run.Data.Kind); len(c.Faults()) > 0 {
		return c.Faults()
	}
	c.Require(p.Protects == "example", "privacy.protects", "is %q; a canary is one example: allowed: example", p.Protects)
	c.Require(a.Mode == "sound", "algorithm.mode", "is %q; allowed: sound, where claims are proved", a.Mode)
	c.Require(p.Relation == string(event.AddRemove), "privacy.relation", "is %q; a canary is there or not, which is add-remove (replace-one would need pairs of canaries, one of each in): allowed: add-remove, with privacy.public_size", p.Relation)
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0, "privacy.epsilon", "is 0 without privacy.noise_multiplier: nothing is claimed that could be audited; give one of them")
	c.Require(run.Data.Standardise != string(data.ByPaid), "data.standardise", "is paid, and what that costs is no gradient step; allowed: public, none")
	c.Require(p.Clipping.Rule == "" || p.Clipping.Rule == "fixed", "privacy.clipping.rule", "is %s, which shares the noise between gradients and clip; the audit knows one noise: allowed: fixed", p.Clipping.Rule)
	return c.Faults()
}
