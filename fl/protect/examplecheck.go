package protect

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/fl"
)

// checkExample lists what example-level privacy cannot cover.
func checkExample(c *config.Checker, run config.Run, o fl.Outline) {
	a, p := run.Algorithm, run.Privacy
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0 || len(p.Silos) > 0, "privacy.epsilon", "is 0, so that no example is protected; allowed under privacy.protects example: more than 0 (or protects nothing)")
	c.Require(p.Ceiling == nil, "privacy.ceiling", "is set, but a participant's target is its ceiling; set privacy.epsilon")
	c.Require(p.Radius == 0, "privacy.radius", "is %v, but it is single examples that are clipped; set privacy.clip", p.Radius)
	c.Require(p.Epsilon == 0 || p.NoiseMultiplier == 0, "privacy.noise_multiplier",
		"is %v, but the noise follows from privacy.epsilon %v; give one of them", p.NoiseMultiplier, p.Epsilon)
	c.Require(p.NoiseMultiplier == 0 || o.Models == 1 || a.Selection.Rule != "private", "privacy.noise_multiplier",
		"is %v, but a private choice of clusters takes a share of privacy.epsilon; give that", p.NoiseMultiplier)
	c.Require(p.NoiseMultiplier == 0 || len(p.Silos) == 0, "privacy.silos", "have targets, but privacy.noise_multiplier fixes the noise; give one of them")
	c.Require(a.Local.Limit == 0, "algorithm.local.limit", "is %d: which examples it draws is not accounted for; allowed under privacy.protects example: 0 (set algorithm.local.batch)", a.Local.Limit)
	c.Require(a.Stop.Return == "last" && a.Stop.Patience == 0, "algorithm.stop", "a choice by held-out examples would have to be paid for; allowed: return last, patience 0")
	s, _ := data.ShapeOf(run.Data)
	c.Require(o.Models == 1 || s.Classes > 0 || a.Selection.Score != "error", "algorithm.selection.score", "is %q, but the answers are values; allowed: loss", a.Selection.Score)
	c.Require(a.Local.Loss != "rmse", "algorithm.local.loss", "is rmse, a root over all examples and no sum over them, so that single examples cannot be clipped; allowed: the other losses")
	c.Require(a.Local.Remainder != "keep", "algorithm.local.remainder", "is keep, but every step that is paid for has the same batch size; allowed: drop")
	checkRelation(c, run)
	checkMoments(c, run)
	seen := map[string]bool{}
	for i, s := range p.Silos {
		at := fmt.Sprintf("privacy.silos.%d", i)
		c.Require(s.Name != "", at+".name", "is empty; name a participant")
		c.Require(!seen[s.Name], at+".name", "%q stands twice", s.Name)
		seen[s.Name] = true
	}
}

// checkRelation is DESIGN's erratum 14: under add-remove nothing public may depend on
// the number of a participant's examples.
func checkRelation(c *config.Checker, run config.Run) {
	a, p := run.Algorithm, run.Privacy
	if a.Mode != "sound" {
		c.Require(p.Relation == "add-remove", "privacy.relation", "is %q, but paper mode accounts for Poisson samples; allowed: add-remove (or algorithm.mode sound)", p.Relation)
		return
	}
	c.Require(run.Data.Standardise != "silo", "data.standardise", "is silo, but under sound accounting a participant's own statistics are not covered; allowed: public, paid, none")
	if p.Relation != "add-remove" {
		return
	}
	c.Require(p.PublicSize > 0, "privacy.public_size", "is missing: under add-remove rate, steps and noise must not follow from a participant's number of examples; declare one (or use relation replace-one)")
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
