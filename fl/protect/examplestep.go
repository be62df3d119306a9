package protect

import (
	"fmt"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

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
		g.drawn.Key(&g.batches, b.Round, p.ID)
		g.keyed.Key(&g.noise, b.Round, p.ID)
		g.entropy.Reset(&g.drawn)
	}
	if g.privacy.Noise == fl.NoiseSeeded {
		g.exact.Reset(&g.keyed)
	}
	if p.Plan.Private() {
		return true, g.steps.Open(g.paid, p.Plan.Rule(), g.entropy, mech.Randomness{Exact: g.exact, Keyed: &g.keyed})
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
	pass.Divisor, pass.Count, pass.Blank = plan.Batch, plan.Pass, p.Blank
	pass.Pull.Slope, pass.Pull.Offset = reg.Slope, reg.Offset
	pass.Paid, pass.Sampler = nil, nil
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
	return g.learner.Train(theta, mine, pass)
}

// Send sends the model as it is: every step of it is noised.
func (g *exampleGuard) Send(_ *fl.Broadcast, _ *fl.Participant, out, theta, _ []float64) (bool, error) {
	copy(out, theta)
	return true, nil
}
