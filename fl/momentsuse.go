package fl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
)

// keeps is how many values a silo keeps: its model, the cluster last chosen, and
// the constants that its features are scaled by, if it pays for them.
func (s *Silo) keeps() int {
	if s.moments == nil {
		return s.n + 1
	}
	return s.n + 1 + 2*len(s.moments.scale)
}

// Moments are the constants that a silo scales its features by, (x - centre)/scale,
// once it has paid for them. Whoever uses its model needs them.
func (s *Silo) Moments(p *Participant) (centre, scale []float64, ok bool) {
	if s.moments == nil || p.Paid.Moments == 0 || len(p.Personal) != s.keeps() {
		return nil, nil, false
	}
	kept := p.Personal[s.n+1:]
	d := len(kept) / 2
	return kept[:d], kept[d:], true
}

// Standardised are a client's rows as the silo scales its own: those that it holds
// out, for example. Without moments that were paid for it is the client itself.
func (s *Silo) Standardised(p *Participant, c *data.Client) *data.Client {
	centre, scale, ok := s.Moments(p)
	if !ok || c.Features != len(scale) {
		return c
	}
	return &data.Client{Rows: c.Rows.Standardised(centre, scale), Group: c.Group}
}

// owesMoments says whether a round pays for the silo's moments: its first one, and
// that one again if it is made again.
func (s *Silo) owesMoments(round int, p *Participant) bool {
	return s.moments != nil && p.Plan.Moments > 0 && (p.Paid.Moments == 0 || p.Paid.Moments == round+1)
}

// standardise has the silo train on scaled rows. In its first round it draws the
// constants, which the round has paid for, and keeps them for all later ones.
func (s *Silo) standardise(round int, p *Participant, paid *mech.Paid) error {
	if s.moments == nil || p.standardised {
		return nil
	}
	if p.Paid.Moments == 0 {
		p.Paid.Moments = round + 1 // before any noise is drawn
		centre, scale, err := s.moments.draw(s, p, paid)
		if err != nil {
			return err
		}
		kept := p.Personal[s.n+1:]
		copy(kept, centre)
		copy(kept[len(centre):], scale)
		if p.Keep != nil {
			if err := p.Keep(p); err != nil {
				return err
			}
		}
	}
	p.Data, p.standardised = s.Standardised(p, p.Data), true
	return nil
}

// checkMoments: moments must be paid for by a silo's own target, on proved terms.
func checkMoments(c *config.Checker, run config.Run) {
	if run.Data.Standardise != string(data.ByPaid) {
		return
	}
	a, p := run.Algorithm, run.Privacy
	c.Require(a.Kind != "dp-fedavg", "data.standardise", "is paid, but dp-fedavg protects whole silos, which have no target to pay from; allowed: silo, public, none")
	c.Require(a.Mode == "sound", "data.standardise", "is paid, but %s accounting leaves a silo's own statistics uncovered anyway; allowed: silo, public, none (or privacy.accounting sound)", a.Mode)
	c.Require(p.NoiseMultiplier == 0, "privacy.noise_multiplier", "is %v, but moments take a share of privacy.epsilon; give that", p.NoiseMultiplier)
	c.Require(a.Mode != "sound" || p.MomentsShare > 0 && p.MomentsShare < 1, "privacy.moments_share", "is %v; allowed: above 0, below 1", p.MomentsShare)
}

// saysMoments tells what features were scaled by.
func saysMoments(run config.Run) string {
	return fmt.Sprintf("features are scaled by every silo's own means and deviations, noised and paid for out of its target (by themselves %v of epsilon); rows count within public ranges, which must not be chosen by looking at them: %s",
		run.Privacy.MomentsShare, rangesOf(run.Data))
}

// rangesOf lists public ranges, features of the same one together.
func rangesOf(d config.Data) string {
	centre, scale := data.PublicRange(d)
	var ranges []string
	var features [][]string
	for j := range min(len(centre), len(scale)) {
		text := fmt.Sprintf("%v to %v", centre[j]-scale[j], centre[j]+scale[j])
		at := slices.Index(ranges, text)
		if at < 0 {
			at = len(ranges)
			ranges, features = append(ranges, text), append(features, nil)
		}
		features[at] = append(features[at], fmt.Sprint(j))
	}
	for i, f := range features {
		ranges[i] += " (features " + strings.Join(f, ", ") + ")"
	}
	return strings.Join(ranges, ", ")
}
