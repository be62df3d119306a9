package protect

import (
	"cmp"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/mech"
)

// The clip rules of the run file (privacy.clipping.rule); empty is fixed.
const (
	clipFixed    = "fixed"
	clipQuantile = "quantile"
	clipOnline   = "online"
	clipWOSM     = "adam-wosm"
)

// Paper 001's settings, and those of Andrew et al. 2021 for what it leaves open.
const (
	onlineRate     = 2.5e-3 // of clip and step
	onlineNoise    = 1.01   // the 1 % rule: nu_g = 1.01 nu
	quantileRate   = 0.2
	quantileTarget = 0.5
	countShare     = 20  // a count's noise is the batch divided by it
	clipRange      = 1e6 // how far a clip may move either way, if the run file says nothing
)

// clippingKeys are what a protection reads that lets the clip move.
var clippingKeys = []string{
	"privacy.clipping.rule", "privacy.clipping.quantile", "privacy.clipping.rate", "privacy.clipping.step_rate",
	"privacy.clipping.gradient_noise", "privacy.clipping.learn", "privacy.clipping.decay", "privacy.clipping.lowest", "privacy.clipping.highest",
}

// clipRule is the run file's rule for a clip that starts somewhere, without the share of
// the noise that a quantile's count needs: that follows from noise and batch.
func clipRule(c config.Clipping, start, stepDecay float64) mech.ClipRule {
	r := mech.ClipRule{
		Decay: c.Decay, StepDecay: stepDecay,
		Lowest: cmp.Or(c.Lowest, start/clipRange), Highest: cmp.Or(c.Highest, start*clipRange),
	}
	switch c.Rule {
	case clipQuantile:
		r.Signal, r.Quantile, r.Rate, r.GradientNoise = mech.SignalCount, cmp.Or(c.Quantile, quantileTarget), cmp.Or(c.Rate, quantileRate), c.GradientNoise
	case clipOnline:
		r.Signal, r.GradientNoise = mech.SignalDirections, cmp.Or(c.GradientNoise, onlineNoise)
		r.Rate, r.StepRate = cmp.Or(c.Rate, onlineRate), cmp.Or(c.StepRate, onlineRate)
		switch c.Learn {
		case "clip":
			r.StepRate = 0
		case "step":
			r.Rate = 0
		case "nothing":
			r.Rate, r.StepRate = 0, 0
		case "random":
			r.Random = true
		}
	}
	return r
}

// settleSplit gives a quantile's count its usual noise, a twentieth of the batch, out of
// what a step, or a round of updates, is charged for. Of names what a batch is of.
func settleSplit(r *mech.ClipRule, noise float64, batch int, of string) error {
	if r.Signal != mech.SignalCount || r.GradientNoise > 0 || noise == 0 {
		return nil
	}
	// A count is of halves: its noise relative to its bound is twice as large.
	gradient, err := account.SplitJointNoise(noise, 2*float64(batch)/countShare)
	if err != nil {
		return fmt.Errorf("privacy.clipping: %d %s leave a count the noise %v, but there is %v in all; set gradient_noise (1.1, say), or take more than %.0f of them: %w",
			batch, of, 2*float64(batch)/countShare, noise, noise*countShare/2, err)
	}
	r.GradientNoise = gradient / noise
	return nil
}

// checkClipping lists what is wrong with a rule for a clip that starts somewhere.
func checkClipping(c *config.Checker, p config.Privacy, start float64, key string) {
	r := p.Clipping
	c.Require(r.GradientNoise == 0 || r.GradientNoise > 1, "privacy.clipping.gradient_noise",
		"is %v: all noise would be on the gradients, and none pays for what the clip is learned from; allowed: above 1 (1.01, say), or 0", r.GradientNoise)
	c.Require(r.Quantile == 0 || r.Quantile < 1, "privacy.clipping.quantile", "is %v: no clip lies above all norms; allowed: below 1", r.Quantile)
	c.Require(r.Lowest == 0 || r.Lowest <= start, "privacy.clipping.lowest", "is %v, above %s, %v, where the clip starts", r.Lowest, key, start)
	c.Require(r.Highest == 0 || r.Highest >= start, "privacy.clipping.highest", "is %v, below %s, %v, where the clip starts", r.Highest, key, start)
}
