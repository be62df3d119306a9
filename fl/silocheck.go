package fl

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// checkKind holds the method against the data's family.
func checkKind(c *config.Checker, run config.Run) bool {
	allowed, what := config.GroupMethods, "no client holds out examples of its own"
	if run.Data.OfSilos() {
		allowed, what = config.SiloMethods, "every silo has a privacy target of its own"
	}
	ok := slices.Contains(allowed, run.Algorithm.Kind)
	c.Require(ok, "algorithm.kind", "is %q, but with data.kind %s %s; allowed: %s",
		run.Algorithm.Kind, run.Data.Kind, what, strings.Join(allowed, ", "))
	return ok
}

// checkSilo lists what is wrong with the blocks of a run on silos.
func checkSilo(run config.Run) config.Faults {
	var c config.Checker
	a, p := run.Algorithm, run.Privacy
	checkLambda(&c, a)
	clusters := a.Kind == "ifca" || a.WarmStart > 0
	warm := []string{"mr-mtl", "fedavg", "local", "finetune"}
	c.Require(a.WarmStart == 0 || slices.Contains(warm, a.Kind), "algorithm.warm_start",
		"is %v, but %s has none; allowed: 0, or one of %s", a.WarmStart, a.Kind, strings.Join(warm, ", "))
	c.Require(!clusters || a.Hypotheses > 1, "algorithm.hypotheses", "is %d: one cluster is no choice; allowed: 2 or more", a.Hypotheses)
	c.Require(clusters || a.Hypotheses == 1, "algorithm.hypotheses", "is %d, but %s has one model; allowed: 1 (or set algorithm.warm_start)", a.Hypotheses, a.Kind)
	c.Require(a.Empty != "relocate", "algorithm.empty", "is relocate, which is for vectors that name no cluster; allowed: keep, split")
	c.Require(a.ClientsPerRound == 0, "algorithm.clients_per_round", "is %d, but every silo takes part in every round; allowed: 0", a.ClientsPerRound)
	c.Require(a.Stop.Return == "last" && a.Stop.Patience == 0, "algorithm.stop", "a choice by held-out examples would have to be paid for; allowed: return last, patience 0")
	c.Require(p.Ceiling == nil, "privacy.ceiling", "is set, but a silo's target is its ceiling; set privacy.epsilon")
	c.Require(p.Radius == 0, "privacy.radius", "is %v, but silos clip single examples; set privacy.clip", p.Radius)
	c.Require(p.Epsilon == 0 || p.NoiseMultiplier == 0, "privacy.noise_multiplier",
		"is %v, but the noise follows from privacy.epsilon %v; give one of them", p.NoiseMultiplier, p.Epsilon)
	c.Require(p.NoiseMultiplier == 0 || !clusters, "privacy.noise_multiplier",
		"is %v, but a private choice of clusters takes a share of privacy.epsilon; give that", p.NoiseMultiplier)
	c.Require(p.NoiseMultiplier == 0 || len(p.Silos) == 0, "privacy.silos", "have targets, but privacy.noise_multiplier fixes the noise; give one of them")
	s, _ := data.ShapeOf(run.Data)
	c.Require(s.Classes > 0 || a.Selection.Score != "error", "algorithm.selection.score", "is %q, but the answers are values; allowed: loss", a.Selection.Score)
	checkSiloRelation(&c, run)
	checkMoments(&c, run)
	seen := map[string]bool{}
	for i, s := range p.Silos {
		at := fmt.Sprintf("privacy.silos.%d", i)
		c.Require(s.Name != "", at+".name", "is empty; name a silo")
		c.Require(!seen[s.Name], at+".name", "%q stands twice", s.Name)
		seen[s.Name] = true
	}
	return c.Faults()
}

func checkLambda(c *config.Checker, a config.Algorithm) {
	auto := a.Lambda == config.LambdaAuto
	l := a.Lambda.Value()
	switch a.Kind {
	case "mr-mtl":
		c.Require(auto || l >= 0, "algorithm.lambda", "is %q; allowed: 0 or more, inf, auto", a.Lambda)
		if a.Prox == "server" || auto {
			return
		}
	case "ditto", "mocha":
		c.Require(l >= 0, "algorithm.lambda", "is %q; allowed for %s: 0 or more", a.Lambda, a.Kind)
		c.Require(a.Prox != "server", "algorithm.prox", "is %q; allowed for %s: outside, inside", a.Prox, a.Kind)
	default:
		return
	}
	c.Require(math.IsNaN(l) || l*a.Local.Step < 2, "algorithm.lambda",
		"is %s: with algorithm.local.step %v the regulariser's steps grow without bound; allowed: less than %.4g (or prox: server with mr-mtl)",
		a.Lambda, a.Local.Step, 2/a.Local.Step)
}

// checkSiloRelation is DESIGN's erratum 14: under add-remove nothing public may
// depend on a silo's size.
func checkSiloRelation(c *config.Checker, run config.Run) {
	a, p := run.Algorithm, run.Privacy
	if p.Epsilon == 0 && p.NoiseMultiplier == 0 {
		return
	}
	if a.Kind == "dp-fedavg" {
		c.Require(p.Relation == "add-remove", "privacy.relation", "is %q; allowed for dp-fedavg: add-remove (a silo takes part or not)", p.Relation)
		c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but one silo may weigh no more than another; allowed for dp-fedavg: equal", a.Weights)
		c.Require(len(p.Silos) == 0 && p.RecordsPerPerson == 1, "privacy", "dp-fedavg protects whole silos: targets of single silos and records_per_person have no meaning")
		return
	}
	if a.Mode != "sound" {
		c.Require(p.Relation == "add-remove", "privacy.relation", "is %q, but paper mode accounts for Poisson samples; allowed: add-remove (or algorithm.mode sound)", p.Relation)
		return
	}
	c.Require(run.Data.Standardise != "silo", "data.standardise", "is silo, but under sound accounting a silo's own statistics are not covered; allowed: public, paid, none")
	if p.Relation != "add-remove" {
		return
	}
	c.Require(p.PublicSize > 0, "privacy.public_size", "is missing: under add-remove rate, steps and noise must not follow from a silo's size; declare one (or use relation replace-one)")
	c.Require(run.Data.TrainLimit == 0, "data.train_limit", "is %d, but under add-remove a row less must not let another one in; allowed: 0 (or relation replace-one)", run.Data.TrainLimit)
	c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but under add-remove the number of examples is private; allowed: equal", a.Weights)
}
