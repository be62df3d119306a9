package protect

import (
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
)

func checkClient(c *config.Checker, run config.Run, o fl.Outline) {
	a, p := run.Algorithm, run.Privacy
	checkNoSums(c, run, o)
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0, "privacy.epsilon", "is 0, so that nobody is protected; allowed under privacy.protects client: more than 0 (or protects nothing)")
	c.Require(p.Epsilon == 0 || p.NoiseMultiplier == 0, "privacy.noise_multiplier", "is %v, but the noise follows from privacy.epsilon %v; give one of them", p.NoiseMultiplier, p.Epsilon)
	checkRuns(c, p)
	c.Require(o.Sends > 0, "privacy.protects", "is client, but %s sends nothing: there is no sum that the server could noise; allowed: example, nothing", a.Kind)
	c.Require(!o.Single, "privacy.protects", "is client, whose noise is on one sum over all participants, but here the server needs their releases one by one (clusters, relations, lambda auto, robust rules, for which the sensitivity of a mean does not hold); allowed: update, example, nothing")
	c.Require(p.Ceiling == nil && p.Radius == 0, "privacy.radius", "and ceiling are of metric privacy; under privacy.protects client set update_clip and epsilon")
	c.Require(p.Relation == "add-remove" || a.Mode == "sound", "privacy.relation", "is %q, which is of sound mode; allowed under privacy.protects client: add-remove (somebody takes part or not), and with algorithm.mode sound replace-one (somebody else takes part)", p.Relation)
	c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but one participant may weigh no more than another; allowed under privacy.protects client: equal", a.Weights)
	c.Require(len(p.Silos) == 0 && p.RecordsPerPerson == 1, "privacy", "protects whole participants: targets of single ones and records_per_person have no meaning")
	c.Require(a.ClientsPerRound == 0, "algorithm.clients_per_round", "is %d, but what sampling of participants would gain is not accounted for; allowed under privacy.protects client: 0", a.ClientsPerRound)
	c.Require(a.Stop.Return == "last" && a.Stop.Patience == 0, "algorithm.stop", "a choice by held-out examples would have to be paid for; allowed: return last, patience 0")
	c.Require(run.Data.Standardise != "paid", "data.standardise", "is paid, but whole participants are protected, who have no target for single rows to pay from; allowed: silo, public, none")
	checkSector(c, p)
	c.Require(p.Clipping.Rule != clipWOSM, "privacy.clipping.rule", "is adam-wosm, whose moments are of single noised steps, and here participants' steps have no noise; allowed under privacy.protects client: fixed, quantile, online (algorithm.server_momentum is a first moment at the server)")
	checkClipping(c, p, p.UpdateClip, "privacy.update_clip")
}

// leastAngle is the smallest angle of a sector, in degrees: mech.NewSector's, rounded up.
const leastAngle = 0.06

func checkSector(c *config.Checker, p config.Privacy) {
	s := p.Sector
	if s.Angle == 0 {
		c.Require(s == config.Sector{}, "privacy.sector.angle", "is 0, so that there is no sector; allowed beside lower or axis: %v to 180 (180: any direction)", leastAngle)
		return
	}
	c.Require(s.Angle >= leastAngle, "privacy.sector.angle", "is %v; allowed: %v to 180 degrees, or 0 for no sector (in a narrower one rounding would be felt)", s.Angle, leastAngle)
	c.Require(p.Relation == "replace-one", "privacy.sector", "needs the relation replace-one: somebody who leaves moves the sum by as much as a ball lets them; allowed with privacy.relation %q: no sector", p.Relation)
	c.Require(p.Recentre == "", "privacy.recentre", "is %q, but updates are brought into a sector, whose axis is around 0; allowed with privacy.sector: none", p.Recentre)
	c.Require(clipRule(p.Clipping, p.UpdateClip, 0).Signal == mech.SignalNone, "privacy.clipping.rule", "is %q, but a sector's noise goes by its angle, too, and the rule knows lengths alone; allowed with privacy.sector: fixed", p.Clipping.Rule)
}
