package trainer

import (
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/model"
)

// Purse pays for releases before noise is drawn; a participant's purse in package
// fl is one.
type Purse interface {
	Reserve(round int, r event.Release) error
}

// Half is the participant's half of a round with one model, protected by the
// participant's own settings: modes update, per-example and attested.
type Half struct {
	trainer  *Trainer
	spec     Spec
	local    config.Local
	release  event.Release
	entropy  *mech.Entropy
	learner  learner
	steps    mech.Steps
	theta    []float64
	sum      *mech.ClippedSum
	noised   []int64
	diverged error // why a model went back as it came, since Failure was called last
}

// NewHalf prepares the half of a trainer whose mode is not method. Local is what
// the plan says about local training.
func NewHalf(t *Trainer, local config.Local) (*Half, error) {
	s := t.spec
	h := &Half{
		trainer: t, spec: s, local: local, entropy: mech.SystemEntropy(), learner: learner{trainer: t},
		theta: make([]float64, t.parameters), noised: make([]int64, t.parameters),
	}
	gaussian := mech.Gaussian{Multiplier: s.Noise}
	switch s.mode() {
	case ModeUpdate:
		h.release = event.Release{
			Unit: event.UnitClient, Relation: event.ReplaceOne, Claim: event.ClaimProved, Trust: event.TrustLocal,
			What: gaussian.Event(),
		}
	case ModePerExample:
		h.release = event.Release{
			Unit: event.UnitExample, Relation: event.AddRemove, Claim: event.ClaimProved, Trust: event.TrustLocal,
			What: event.Repeated{Times: int64(s.Steps), Of: h.rule().Event(event.ClaimProved)},
		}
	case ModeAttested:
		r, err := s.attested()
		if err != nil {
			return nil, fmt.Errorf("trainer.release: %w", err)
		}
		h.release = r
		return h, nil
	default:
		return nil, fmt.Errorf("trainer: in mode %s the plan's method responds; use InPlaceOf", s.mode())
	}
	lattice, err := gaussian.Lattice(s.Clip)
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	if h.sum, err = mech.NewClippedSum(t.parameters, s.Clip, lattice); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	return h, h.release.Validate()
}

// Release is what every response costs: known before any training, so that a
// policy can decline it.
func (h *Half) Release() event.Release { return h.release }

// Enforced says whether the noise is ours; otherwise the guarantee is the word of
// the trainer's author.
func (h *Half) Enforced() bool { return h.spec.mode() != ModeAttested }

// NotCovered is what the release's claim leaves out.
func (h *Half) NotCovered() []string {
	if h.spec.mode() == ModeAttested {
		return []string{"everything: clipping and noise are the trainer's, and nothing here checks them"}
	}
	return NotCovered(h.spec.mode() == ModePerExample)
}

// NotCovered is what no claim about a trainer's releases covers; more of it, if the
// claim is about single examples.
func NotCovered(examples bool) []string {
	list := []string{"the trainer's own network, files and timing"}
	if examples {
		list = append(list,
			"a gradient that depends on other examples than its own (batch statistics, caches): only a few are checked",
			"a trainer that fails on account of a single example: the round's release then says nothing of the others")
	}
	return list
}

// Failure is what went wrong at the trainer since the last call, if anything: for the
// participant's own eyes.
func (h *Half) Failure() error {
	err := errors.Join(h.trainer.Failure(), h.diverged)
	h.diverged = nil
	return err
}

// Respond trains from the round's one model and writes the release to out. The
// purse is asked first; if it refuses, its error is returned, and nothing was
// released. A trainer that crashes, hangs or fails its probe leaves a fixed update, with
// the noise that was paid for: a missing answer would tell of the data. Failure says so.
func (h *Half) Respond(round int, base []float64, purse Purse, out []float64) error {
	n := h.trainer.parameters
	if len(base) != n || len(out) != n {
		return fmt.Errorf("trainer: round %d has %d values, mode %s knows one model of %d", round+1, len(base), h.spec.mode(), n)
	}
	if purse == nil {
		return errors.New("trainer: nobody pays for the release; nothing is released")
	}
	if err := purse.Reserve(round, h.release); err != nil {
		return err
	}
	paid, err := mech.NewPaid(h.release)
	if err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	copy(h.theta, base)
	switch h.spec.mode() {
	case ModeUpdate:
		err = h.update(paid)
	case ModePerExample:
		err = h.perExample(paid)
	default:
		h.attest()
	}
	if err != nil {
		return fmt.Errorf("round %d: %w", round+1, err)
	}
	if err := mech.CheckFinite(h.theta); err != nil {
		h.diverged = fmt.Errorf("trainer: the model of round %d left the finite numbers: %w", round+1, err)
		copy(h.theta, base)
	}
	copy(out, h.theta)
	return nil
}

// update is the Gaussian mechanism on one vector: under replace-one its
// sensitivity is twice the clip, which the accountant applies.
func (h *Half) update(paid *mech.Paid) error {
	delta, err := h.trainer.train(h.local, h.theta)
	if err != nil { // the trainer keeps the reason
		delta = make([]float64, len(h.theta))
	}
	clipped, err := mech.Clip(delta, h.spec.Clip)
	if err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	h.sum.Reset()
	if err := h.sum.Add(clipped); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	if err := paid.Release(mech.Gaussian{Multiplier: h.spec.Noise}, h.noised, h.sum, h.entropy); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	h.addNoised()
	return nil
}

// rule is how steps on single examples are drawn and priced.
func (h *Half) rule() mech.StepRule {
	return mech.StepRule{Clip: h.spec.Clip, Noise: h.spec.Noise, Sampling: event.Poisson, Rate: h.spec.Rate}
}

// perExample takes private steps: every gradient clipped, summed, noised, divided by a
// public number. After a failure all steps are noise alone.
func (h *Half) perExample(paid *mech.Paid) error {
	if err := h.steps.Open(paid, h.rule(), h.entropy, mech.Randomness{Exact: h.entropy}); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	failed := h.trainer.ready() != nil // only now it is known how many examples there are
	h.learner.checked = false          // gradients are looked at in every round
	return h.learner.Train(h.theta, h.trainer.Client(), &model.Pass{
		Step: model.Step{Paid: &h.steps, Divisor: h.spec.Batch}, Count: h.spec.Steps, Blank: failed, StepSize: h.spec.Step,
	})
}

// addNoised adds the noised sum to theta.
func (h *Half) addNoised() {
	step := h.sum.Lattice().Step
	for i, q := range h.noised {
		h.theta[i] += step * float64(q)
	}
}

// attest has the trainer draw its noise while it trains; if it fails, the round's
// model goes back as it came.
func (h *Half) attest() {
	delta, err := h.trainer.train(h.local, h.theta)
	if err != nil {
		return // the trainer keeps the reason
	}
	for i, d := range delta {
		h.theta[i] += d
	}
}
