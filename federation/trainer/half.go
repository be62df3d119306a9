package trainer

import (
	"errors"
	"fmt"
	"math"

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
	trainer *Trainer
	spec    Spec
	descent model.Descent
	release event.Release
	entropy *mech.Entropy
	theta   []float64
	sum     *mech.ClippedSum
	noised  []int64
}

// NewHalf prepares the half of a trainer whose mode is not method. Descent is what
// the plan says about local training.
func NewHalf(t *Trainer, d model.Descent) (*Half, error) {
	s := t.spec
	h := &Half{
		trainer: t, spec: s, descent: d, entropy: mech.SystemEntropy(),
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
			What: event.Repeated{Times: int64(s.Steps), Of: event.Sampled{
				Sampling: event.Poisson, Rate: s.Rate, Of: gaussian.Event(),
			}},
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
	switch h.spec.mode() {
	case ModeUpdate:
		return []string{"the trainer's own network, files and timing"}
	case ModePerExample:
		return []string{
			"the trainer's own network, files and timing",
			"a gradient that depends on other examples than its own (batch statistics, caches): only a few are checked",
		}
	}
	return []string{"everything: clipping and noise are the trainer's, and nothing here checks them"}
}

// Respond trains from the round's one model and writes the release to out. The
// purse is asked before any noise is drawn; if it refuses, its error is returned, and
// nothing was released.
func (h *Half) Respond(round int, base []float64, purse Purse, out []float64) error {
	n := h.trainer.parameters
	if len(base) != n || len(out) != n {
		return fmt.Errorf("trainer: round %d has %d values, mode %s knows one model of %d", round+1, len(base), h.spec.mode(), n)
	}
	if purse == nil {
		return errors.New("trainer: nobody pays for the release; nothing is released")
	}
	copy(h.theta, base)
	var err error
	switch h.spec.mode() {
	case ModeUpdate:
		err = h.update(round, purse)
	case ModePerExample:
		err = h.perExample(round, purse)
	default:
		err = h.attest(round, purse)
	}
	if err == nil {
		copy(out, h.theta)
	}
	return err
}

// update is the Gaussian mechanism on one vector: under replace-one its
// sensitivity is twice the clip, which the accountant applies.
func (h *Half) update(round int, purse Purse) error {
	delta, err := h.trainer.train(h.descent, h.theta)
	if err != nil {
		return err
	}
	clipped, err := mech.Clip(delta, h.spec.Clip)
	if err != nil {
		return fmt.Errorf("trainer: the update of round %d: %w", round+1, err)
	}
	h.sum.Reset()
	if err := h.sum.Add(clipped); err != nil {
		return fmt.Errorf("trainer: the update of round %d: %w", round+1, err)
	}
	if err := purse.Reserve(round, h.release); err != nil {
		return err
	}
	return h.addNoised(1, h.terms())
}

// perExample takes private steps: clip every gradient, sum, noise, divide by a
// public number. Without clipping before the sum no example would be protected.
func (h *Half) perExample(round int, purse Purse) error {
	draw, err := newPoisson(h.spec.Rate)
	if err != nil {
		return err
	}
	if err := h.trainer.ready(); err != nil {
		return err // only now it is known how many examples there are
	}
	terms := h.terms()
	var checked bool
	for step := range h.spec.Steps {
		batch := draw.batch(h.trainer.Examples())
		var probe probe
		if !checked && len(batch) > 1 {
			checked, probe = true, draw.probe(len(batch))
		}
		h.sum.Reset()
		err := h.trainer.gradients(h.theta, batch, func(k int, gradient []float64) error {
			probe.see(k, gradient)
			clipped, err := mech.Clip(gradient, h.spec.Clip)
			if err != nil {
				return err
			}
			return h.sum.Add(clipped)
		})
		if err == nil {
			err = probe.alone(h.trainer, h.theta, batch)
		}
		if err == nil && step == 0 { // the first noise of all the steps comes next
			err = purse.Reserve(round, h.release)
		}
		if err == nil {
			err = h.addNoised(-h.spec.Step/float64(h.spec.Batch), terms)
		}
		if err != nil {
			return fmt.Errorf("round %d, step %d: %w", round+1, step+1, err)
		}
	}
	return nil
}

func (h *Half) terms() mech.Terms {
	return mech.Terms{Unit: h.release.Unit, Relation: h.release.Relation, Trust: h.release.Trust}
}

// addNoised releases the sum and adds it to theta, scaled by a public number.
func (h *Half) addNoised(scale float64, terms mech.Terms) error {
	if _, err := (mech.Gaussian{Multiplier: h.spec.Noise}).Release(h.noised, h.sum, terms, h.entropy); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	step := h.sum.Lattice().Step
	for i, q := range h.noised {
		h.theta[i] += scale * step * float64(q)
		if math.IsInf(h.theta[i], 0) {
			return fmt.Errorf("trainer: parameter %d grew beyond float64", i)
		}
	}
	return nil
}

// attest pays first: the trainer draws its noise while it trains.
func (h *Half) attest(round int, purse Purse) error {
	if err := h.trainer.ready(); err != nil {
		return err
	}
	if err := purse.Reserve(round, h.release); err != nil {
		return err
	}
	delta, err := h.trainer.train(h.descent, h.theta)
	if err != nil {
		return err
	}
	for i, d := range delta {
		h.theta[i] += d
	}
	return nil
}
