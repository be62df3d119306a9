package protect

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterProtection(fl.ProtectionKind{
		Name: "example", Words: "single examples, by clipping and noise in every step (DP-SGD)",
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
	fl.Setup
	n       int
	cfg     config.Algorithm
	privacy config.Privacy
	outline fl.Outline
	pass    model.Pass // what every worker's begins as
	moments *moments   // nil: features are scaled by others, or not at all

	noise, batches, choice rng.Family
}

func newExample(s fl.Setup, o fl.Outline) (fl.Protection, error) {
	pass, err := model.NewPass(s.Run.Algorithm.Local, s.Run.Algorithm.Rounds)
	if err != nil {
		return nil, fmt.Errorf("algorithm.local: %w", err)
	}
	e := &example{
		pass:  pass,
		Setup: s, n: s.Parameters, cfg: s.Run.Algorithm, privacy: s.Run.Privacy, outline: o,
		noise:   rng.NewFamily(s.Run.Seed, "noise"),
		batches: rng.NewFamily(s.Run.Seed, "batches"),
		choice:  rng.NewFamily(s.Run.Seed, "cluster choice"),
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
		Target: fl.TargetOf(e.privacy, p.Name), Weight: 1, Drawn: event.Shuffle, Trust: event.TrustLocal, Uncovered: len(p.Uncovered) > 0 || e.unpaidChoice(),
		Epochs: e.outline.Passes * e.cfg.Local.Epochs, StepSize: e.cfg.Local.Step, Clip: e.privacy.Clip,
		Terms: account.Terms{Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimHeuristic},
	}
	if e.moments != nil {
		if err := e.moments.fit(p.Data); err != nil {
			return plan, err
		}
	}
	size := p.Data.Len()
	if e.cfg.Mode == "sound" {
		plan.Terms.Relation = event.Relation(e.privacy.Relation)
		if !plan.Uncovered {
			plan.Terms.Claim = event.ClaimProved
		}
		plan.Drawn = event.WithoutReplacement
		if plan.Terms.Relation == event.AddRemove {
			if e.privacy.PublicSize < 1 {
				return plan, fmt.Errorf("privacy.public_size is missing: under add-remove it stands for the number of examples")
			}
			plan.Drawn, size = event.Poisson, e.privacy.PublicSize
		}
	}
	if p.Data.Len() < 1 {
		return plan, fmt.Errorf("it has no examples")
	}
	settleBatches(&plan, p, e.cfg, e.outline, size)
	return plan, e.settleNoise(&plan)
}

// unpaidChoice says that clusters are chosen by private data and nobody pays for it:
// then nothing is proved.
func (e *example) unpaidChoice() bool {
	return e.outline.Models > 1 && e.cfg.Selection.Rule == "best"
}

// settleNoise takes the run file's noise, or the least that keeps the target.
func (e *example) settleNoise(plan *fl.Plan) error {
	if e.privacy.Noise != "simulated" {
		plan.Lattice = &account.Lattice{Coordinates: int64(e.n)}
		if e.moments != nil {
			plan.Lattice.Coordinates = int64(max(e.n, e.moments.length(plan.Terms.Relation)))
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

// Gather changes nothing.
func (e *example) Gather(_ *fl.State, r fl.Releases) (fl.Releases, error) { return r, nil }

// Bounds are those of any useful parameter.
func (e *example) Bounds() []fl.Bound { return []fl.Bound{{To: e.n, Most: fl.MostAnywhere}} }

// Price is the plan's alone: all rounds are priced at once.
func (e *example) Price(*fl.Broadcast) (event.Release, bool, error) {
	return event.Release{}, false, nil
}

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

// Spend is what the participant's records have lost.
func (e *example) Spend(p *fl.Participant) (account.Guarantee, *account.Guarantee, error) {
	return p.Plan.Spend(p.Paid)
}

// Describe adds nothing.
func (e *example) Describe(*fl.Privacy) {}
