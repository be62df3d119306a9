package protect

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterProtection(fl.ProtectionKind{
		Name: "example", Sums: true, Words: "single examples, by clipping and noise in every step (DP-SGD)",
		Keys: slices.Concat(singleKeys, declaredKeys, noiseKeys, targetKeys, clippingKeys, []string{
			"algorithm.selection.epsilon_share", "algorithm.selection.bound",
			"privacy.clip", "privacy.relation", "privacy.public_size", "privacy.records_per_person", "privacy.moments_share", "privacy.silos",
		}),
		Settings: func(run *config.Run) {
			run.Algorithm.Stop = config.Stop{Return: "last", Every: run.Algorithm.Stop.Every}
			run.Algorithm.Local.Remainder = "drop"
			if run.Algorithm.Selection.Rule == "best" {
				run.Algorithm.Selection.Rule, run.Algorithm.Selection.Share = "private", 0.1
			}
		},
		Check: checkExample,
		New:   newExample,
	})
}

// example is example-level privacy as paper 002, chapter 1, has it: every participant
// has a target for its own examples, finds its noise before training begins, and pays
// for a round before it draws any.
type example struct {
	plain
	privacy config.Privacy
	taken   bool     // some of the run file's values were taken from the data
	moments *moments // nil: features are scaled by others, or not at all
	trust   event.Trust

	noise, choice rng.Family
}

func newExample(s fl.Setup, o fl.Outline) (fl.Protection, error) {
	q, err := newPlain(s, o)
	if err != nil {
		return nil, err
	}
	q.pass.Single = false
	if s.Run.Privacy.Clipping.Rule == clipWOSM {
		if q.pass.Optimiser, err = model.WithoutSecondMoment(s.Run.Algorithm.Local); err != nil {
			return nil, fmt.Errorf("algorithm.local: %w", err)
		}
	}
	e := &example{
		plain: q, privacy: s.Run.Privacy, taken: len(s.Run.Data.NotPublic) > 0, trust: event.TrustLocal,
		noise:  rng.NewFamily(s.Run.Seed, "noise"),
		choice: rng.NewFamily(s.Run.Seed, "cluster choice"),
	}
	if fl.IsCentral(s.Run.Algorithm.Kind) {
		e.trust = event.TrustHolder // nobody trains elsewhere: there is no server to hide examples from
	}
	e.moments, err = newMoments(s.Run)
	return e, err
}

// choosing says whether a participant pays for a choice in a round.
func (e *example) choosing(round int) bool {
	return round < e.outline.Chooses && e.cfg.Selection.Rule == "private"
}

// choices are those that are paid for from a round on.
func (e *example) choices(from int) int {
	if e.cfg.Selection.Rule != "private" {
		return 0
	}
	return max(0, e.outline.Chooses-from)
}

// Prepare settles the participant's noise, from its size and target: from public
// numbers and, where these are public too, its size.
func (e *example) Prepare(p *fl.Participant) error {
	plan, err := e.plan(p)
	if err == nil {
		p.Plan = plan
		return e.checkScaling(p)
	}
	return err
}

func (e *example) plan(p *fl.Participant) (fl.Plan, error) {
	plan := fl.Plan{
		Target: fl.TargetOf(e.privacy, p.Name), Weight: 1, Drawn: event.Shuffle, Trust: e.trust, Uncovered: e.taken || len(p.Uncovered) > 0 || e.unpaidChoice(),
		Epochs: e.outline.Passes * e.cfg.Local.Epochs, StepSize: e.cfg.Local.Step, Clip: e.privacy.Clip,
		Clipping: clipRule(e.privacy.Clipping, e.privacy.Clip, e.cfg.Local.StepDecay),
		Terms:    account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimHeuristic},
	}
	if e.moments != nil {
		if err := e.moments.fit(p.Data); err != nil {
			return plan, err
		}
	}
	if e.outline.Moments > 0 {
		settleSum(&plan, p)
		plan.Terms.Relation = event.Relation(e.privacy.Relation)
		if !plan.Uncovered {
			plan.Terms.Claim = event.ClaimProved
		}
		return plan, e.settleNoise(&plan)
	}
	size := p.Data.Len()
	if e.cfg.Mode == "sound" {
		plan.Terms.Relation = event.Relation(e.privacy.Relation)
		if !plan.Uncovered {
			plan.Terms.Claim = event.ClaimProved
		}
		plan.Drawn = event.WithoutReplacement
		if plan.Terms.Relation == event.AddRemove {
			if plan.Drawn, size = event.Poisson, fl.PublicSizeOf(e.privacy, p.Name); size < 1 {
				return plan, fmt.Errorf("privacy.public_size is missing: under add-remove it stands for the number of examples")
			}
		}
	}
	if size < 1 { // a private size may be 0: steps then have batches of nobody, and noise
		return plan, fmt.Errorf("it has no examples")
	}
	settleBatches(&plan, p, e.cfg, e.outline, size)
	if err := e.settleNoise(&plan); err != nil {
		return plan, err
	}
	return plan, settleSplit(&plan.Clipping, plan.Noise, plan.Batch, "examples")
}

// unpaidChoice says that clusters are chosen by private data and nobody pays for it:
// then nothing is proved.
func (e *example) unpaidChoice() bool {
	return e.outline.Models > 1 && e.cfg.Selection.Rule == "best"
}

// settleNoise takes the run file's noise, or the least that keeps the target.
func (e *example) settleNoise(plan *fl.Plan) error {
	if e.privacy.Noise != "simulated" {
		plan.Lattice = &account.Lattice{Coordinates: int64(e.released())}
		if e.moments != nil {
			plan.Lattice.Coordinates = int64(max(e.released(), e.moments.length(plan.Terms.Relation)))
		}
		switch plan.Clipping.Signal {
		case mech.SignalCount:
			plan.Lattice.Coordinates++
		case mech.SignalDirections:
			plan.Lattice.Coordinates += int64(e.n)
		}
	}
	switch {
	case e.privacy.NoiseMultiplier > 0:
		plan.Noise = e.privacy.NoiseMultiplier
	case plan.Target.Epsilon > 0:
		plan.Choice = e.cfg.Selection.EpsilonShare * plan.Target.Epsilon
		if e.moments != nil {
			if err := e.moments.settle(plan); err != nil {
				return err
			}
		}
		return plan.Calibrate(e.cfg.Rounds, e.choices(0))
	}
	return nil
}

// Announce adds nothing.
func (e *example) Announce(*fl.Broadcast) error { return nil }

// Gather changes nothing: what comes is private already.
func (e *example) Gather(_ *fl.State, r fl.Releases) (fl.Releases, error) { return r, nil }

// PriceAhead is what the rounds from one on will cost: the participant's owner can
// decline before anything is trained.
func (e *example) PriceAhead(p *fl.Participant, from int) (event.Release, int, error) {
	rounds := e.cfg.Rounds - from
	if !p.Plan.Private() {
		return bareRelease, rounds, nil
	}
	r, err := p.Plan.Training(rounds, e.choices(from), e.owesMoments(from, p)).Release()
	return r, rounds, err
}

// exampleGuard trains with clipped examples and noise in every step: what comes out of
// it is private, and can be sent and kept as it is.
type exampleGuard struct {
	*example
	learner model.Learner
	pass    model.Pass
	losses  []float64
	keyed   rng.Stream
	drawn   rng.Stream
	exact   *mech.Entropy // of exact noise; nil: noise is simulated
	entropy *mech.Entropy // of batches
	paid    *mech.Paid    // what the round may draw
	steps   mech.Steps    // the round's noised steps, if the participant adds noise
	sampler mech.Sampler  // otherwise
}

// Guard has the memory of one worker.
func (e *example) Guard() (fl.Guard, error) {
	g := &exampleGuard{example: e, pass: e.pass, entropy: mech.SystemEntropy()}
	g.pass.Pull.Inside = e.cfg.Prox == "inside"
	var err error
	if g.learner, err = e.Model.Learner(); err != nil {
		return nil, err
	}
	if e.privacy.Noise != "simulated" {
		g.exact = mech.SystemEntropy()
	}
	return g, nil
}

// Learner is what the guard trains with.
func (g *exampleGuard) Learner() model.Learner { return g.learner }

// Open pays for the round and prepares what it may draw. Exact noise, and with it who is
// in a batch, comes from the system: whoever could guess a batch would see through the
// amplification. In simulation, and so that a run can be repeated byte by byte, both
// follow from the seed.
func (g *exampleGuard) Open(b *fl.Broadcast, p *fl.Participant) (bool, error) {
	release, err := p.Plan.Release(g.choosing(b.Round), g.owesMoments(b.Round, p))
	if err != nil {
		return false, err
	}
	if g.paid, err = p.Pay(b.Round, release); err != nil || g.paid == nil {
		return false, err
	}
	if err := g.standardise(b.Round, p, g.paid); err != nil {
		return false, err
	}
	p.Paid.Rounds++ // before any noise is drawn
	if g.choosing(b.Round) {
		p.Paid.Choices++
	}
	if g.privacy.Noise != "exact" {
		g.drawn.Key(&g.family, b.Round, p.ID)
		g.keyed.Key(&g.noise, b.Round, p.ID)
		g.entropy.Reset(&g.drawn)
	}
	if g.privacy.Noise == fl.NoiseSeeded {
		g.exact.Reset(&g.keyed)
	}
	if !p.Plan.Private() || g.outline.Moments > 0 {
		return true, nil
	}
	if err := g.steps.Open(g.paid, p.Plan.Rule(), g.entropy, mech.Randomness{Exact: g.exact, Keyed: &g.keyed}); err != nil {
		return false, err
	}
	g.steps.Continue(&p.Training.Clip)
	if g.privacy.Noise == "simulated" {
		g.steps.Watch(p.Watch)
	}
	return true, nil
}

// Train makes one pass's steps. A regulariser costs no privacy outside the clip: it
// depends on models that are private already (DESIGN, erratum 12).
func (g *exampleGuard) Train(b *fl.Broadcast, p *fl.Participant, theta, centre []float64, reg fl.Pull) error {
	g.pass.At(b.Round)
	if err := g.descend(p, theta, reg); err != nil {
		return err
	}
	if err := fl.NotFinite(theta, p.Plan.StepSize); err != nil {
		p.Mishap = fmt.Errorf("round %d, participant %d %s: %w", b.Round+1, p.ID, p.Name, err)
		copy(theta, centre)
	}
	return nil
}

func (g *exampleGuard) descend(p *fl.Participant, theta []float64, reg fl.Pull) error {
	plan, pass := &p.Plan, &g.pass
	pass.Divisor, pass.Count, pass.Blank, pass.Begun = plan.Batch, plan.Pass, p.Blank, p.Steps
	pass.Pull.Slope, pass.Pull.Offset = reg.Slope, reg.Offset
	pass.Paid, pass.Sampler, pass.Memory = nil, nil, nil
	if g.outline.Continues {
		pass.Memory = &p.Training
	}
	if plan.Private() {
		pass.Paid = &g.steps
	} else {
		pass.Sampler = &g.sampler
		if err := g.sampler.Open(plan.Drawn, plan.Rate, plan.Batch, g.entropy); err != nil {
			return err
		}
	}
	mine := p.Data
	if p.Blank { // nothing is read of what may be the very fault
		mine = &data.Client{Rows: data.Rows{Features: p.Data.Features}, Pictures: data.Pictures{Images: p.Data.Images}}
	}
	err := g.learner.Train(theta, mine, pass)
	if err == nil && plan.Private() {
		g.steps.Save(&p.Training.Clip)
	}
	return err
}

// SendsAsTrained: every step of a model is noised.
func (g *exampleGuard) SendsAsTrained() {}

// Send sends the model as it is.
func (g *exampleGuard) Send(_ *fl.Broadcast, _ *fl.Participant, out, theta, _ []float64) (bool, error) {
	copy(out, theta)
	return true, nil
}

// owesMoments says whether a round pays for the participant's moments: its first one, and
// that one again if it is made again.
func (e *example) owesMoments(round int, p *fl.Participant) bool {
	return e.moments != nil && p.Plan.Moments > 0 && (p.Paid.Moments == 0 || p.Paid.Moments == round+1)
}

// standardise has the participant train on scaled rows. In its first round it draws the
// constants, which the round has paid for, and keeps them for all later ones.
func (e *example) standardise(round int, p *fl.Participant, paid *mech.Paid) error {
	if e.moments == nil || p.Scaled {
		return nil
	}
	if p.Paid.Moments == 0 {
		p.Paid.Moments = round + 1 // before any noise is drawn
		centre, scale, err := e.moments.draw(e, p, paid)
		if err != nil {
			return err
		}
		p.Scaling = append(append([]float64(nil), centre...), scale...)
		if p.Keep != nil {
			if err := p.Keep(p); err != nil {
				return err
			}
		}
	}
	p.Data, p.Scaled = p.Standardised(p.Data), true
	return nil
}

// checkExample lists what example-level privacy cannot cover.
func checkExample(c *config.Checker, run config.Run, o fl.Outline) {
	a, p := run.Algorithm, run.Privacy
	shape, _ := data.ShapeOf(run.Data)
	c.Require(shape.Windows == 0, "privacy.protects", "is example, but people are in each other's examples, so that one example less leaves much of a person; allowed: node, nothing")
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0 || len(p.Silos) > 0, "privacy.epsilon", "is 0, so that no example is protected; allowed under privacy.protects example: more than 0 (or protects nothing)")
	c.Require(p.Ceiling == nil, "privacy.ceiling", "is set, but a participant's target is its ceiling; set privacy.epsilon")
	c.Require(p.Radius == 0, "privacy.radius", "is %v, but it is single examples that are clipped; set privacy.clip", p.Radius)
	c.Require(p.Epsilon == 0 || p.NoiseMultiplier == 0, "privacy.noise_multiplier",
		"is %v, but the noise follows from privacy.epsilon %v; give one of them", p.NoiseMultiplier, p.Epsilon)
	checkRuns(c, p)
	c.Require(p.NoiseMultiplier == 0 || o.Models == 1 || a.Selection.Rule != "private", "privacy.noise_multiplier",
		"is %v, but a private choice of clusters takes a share of privacy.epsilon; give that", p.NoiseMultiplier)
	c.Require(p.NoiseMultiplier == 0 || len(p.Silos) == 0, "privacy.silos", "have targets, but privacy.noise_multiplier fixes the noise; give one of them")
	c.Require(a.Local.Limit == 0, "algorithm.local.limit", "is %d: which examples it draws is not accounted for; allowed under privacy.protects example: 0 (set algorithm.local.batch)", a.Local.Limit)
	c.Require(a.Stop.Return == "last" && a.Stop.Patience == 0, "algorithm.stop", "a choice by held-out examples would have to be paid for; allowed: return last, patience 0")
	c.Require(a.Local.Loss != "rmse", "algorithm.local.loss", "is rmse, a root over all examples and no sum over them, so that single examples cannot be clipped; allowed: the other losses")
	c.Require(a.Local.Remainder != "keep", "algorithm.local.remainder", "is keep, but every step that is paid for has the same batch size; allowed: drop")
	checkClipping(c, p, p.Clip, "privacy.clip")
	c.Require(p.Sector == (config.Sector{}), "privacy.sector", "is set, but it is for updates of whole participants; allowed: only under privacy.protects client")
	c.Require(p.Clipping.Rule != clipWOSM || a.Local.Optimiser == "sgd", "algorithm.local.optimiser",
		"is %s, but the clip rule adam-wosm is an optimiser itself; allowed: sgd (beta1 is read)", a.Local.Optimiser)
	c.Require((p.Clipping.Rule == "" || p.Clipping.Rule == clipFixed) && p.Clipping.Decay == 0 || a.Lambda != "auto", "algorithm.lambda",
		"is auto, which goes by the noise of a fixed clip, but privacy.clipping moves it; give a number")
	checkSums(c, run, o)
	checkRelation(c, run, o)
	checkMoments(c, run)
	checkSilos(c, p)
}

// checkRelation is DESIGN's erratum 14: under add-remove nothing public may depend on
// the number of a participant's examples.
func checkRelation(c *config.Checker, run config.Run, o fl.Outline) {
	a, p := run.Algorithm, run.Privacy
	if a.Mode != "sound" {
		c.Require(p.Relation == "add-remove", "privacy.relation", "is %q, but paper mode accounts for Poisson samples; allowed: add-remove (or algorithm.mode sound)", p.Relation)
		return
	}
	c.Require(run.Data.Standardise != "silo", "data.standardise", "is silo, but under sound accounting a participant's own statistics are not covered; allowed: public, paid, none")
	if p.Relation != "add-remove" {
		return
	}
	c.Require(p.PublicSize > 0 || o.Moments > 0, "privacy.public_size", "is missing: under add-remove rate, steps and noise must not follow from a participant's number of examples; declare one (or use relation replace-one)")
	c.Require(run.Data.TrainLimit == 0, "data.train_limit", "is %d, but under add-remove a row less must not let another one in; allowed: 0 (or relation replace-one)", run.Data.TrainLimit)
	c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but under add-remove the number of examples is private; allowed: equal", a.Weights)
}

// checkMoments lists why moments cannot be paid for: it must be by a participant's own target, on proved terms.
func checkMoments(c *config.Checker, run config.Run) {
	if run.Data.Standardise != string(data.ByPaid) {
		return
	}
	a, p := run.Algorithm, run.Privacy
	c.Require(a.Mode == "sound", "data.standardise", "is paid, but %s accounting leaves a silo's own statistics uncovered anyway; allowed: silo, public, none (or privacy.accounting sound)", a.Mode)
	c.Require(p.NoiseMultiplier == 0, "privacy.noise_multiplier", "is %v, but moments take a share of privacy.epsilon; give that", p.NoiseMultiplier)
	c.Require(a.Mode != "sound" || p.MomentsShare > 0 && p.MomentsShare < 1, "privacy.moments_share", "is %v; allowed: above 0, below 1", p.MomentsShare)
}
