package protect

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
)

// checkScaling holds what a participant keeps against what it should.
func (e *example) checkScaling(p *fl.Participant) error {
	if e.moments != nil && p.Scaling != nil && len(p.Scaling) != 2*len(e.moments.scale) {
		return fmt.Errorf("it scales its features by %d constants, not %d: they belong to another run", len(p.Scaling), 2*len(e.moments.scale))
	}
	return nil
}

// owesMoments says whether a round pays for the silo's moments: its first one, and
// that one again if it is made again.
func (e *example) owesMoments(round int, p *fl.Participant) bool {
	return e.moments != nil && p.Plan.Moments > 0 && (p.Paid.Moments == 0 || p.Paid.Moments == round+1)
}

// standardise has the silo train on scaled rows. In its first round it draws the
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

// checkMoments: moments must be paid for by a silo's own target, on proved terms.
func checkMoments(c *config.Checker, run config.Run) {
	if run.Data.Standardise != string(data.ByPaid) {
		return
	}
	a, p := run.Algorithm, run.Privacy
	c.Require(a.Mode == "sound", "data.standardise", "is paid, but %s accounting leaves a silo's own statistics uncovered anyway; allowed: silo, public, none (or privacy.accounting sound)", a.Mode)
	c.Require(p.NoiseMultiplier == 0, "privacy.noise_multiplier", "is %v, but moments take a share of privacy.epsilon; give that", p.NoiseMultiplier)
	c.Require(a.Mode != "sound" || p.MomentsShare > 0 && p.MomentsShare < 1, "privacy.moments_share", "is %v; allowed: above 0, below 1", p.MomentsShare)
}
