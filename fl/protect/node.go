package protect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
)

func init() {
	fl.RegisterProtection(fl.ProtectionKind{
		Name: "node", Sums: true, Words: "persons of a graph of contacts, by clipping and noise in every step",
		Keys: slices.Concat(noiseKeys, targetKeys, []string{
			"algorithm.clients_per_round", "algorithm.sampling", "algorithm.robust", "algorithm.robust_share", "privacy.clip", "privacy.public_size", "privacy.silos", "privacy.nodes",
		}),
		Settings: func(run *config.Run) {
			run.Algorithm.Stop = config.Stop{Return: "last", Every: run.Algorithm.Stop.Every}
			run.Algorithm.Local.Remainder = "drop"
		},
		Check: checkNode,
		New:   newNode,
	})
}

// node protects persons whose examples hold their contacts: chapter 2 of paper 002. A step
// is on everybody, so that its sum moves by as many clips as examples change, and the noise
// goes by that; or on a batch, as the thesis's theorem has it. It trains as example does.
type node struct {
	*example
	nodes config.Nodes
	key   uint64
}

func newNode(s fl.Setup, o fl.Outline) (fl.Protection, error) {
	run := s.Run
	run.Data.Standardise = string(data.Unscaled)
	s.Run = run
	p, err := newExample(s, o)
	if err != nil {
		return nil, err
	}
	family := rng.NewFamily(run.Seed, "contacts")
	return &node{example: p.(*example), nodes: run.Privacy.Nodes, key: family.Stream(0, 0).Uint64()}, nil
}

// thinned contacts are drawn anew in every step, of which usualKeep keeps that share.
const (
	thinned   = "thinned"
	usualKeep = 0.05
)

// nodeRules are the run file's words, the rules of package contacts, and the relation that
// a claim under them is about.
var nodeRules = map[string]struct {
	rule     string
	relation event.Relation
	examples int
}{
	"nominated": {"own-record", event.OwnRecord, 6},
	"home":      {"home-removal", event.Removal, 8},
	"thinned":   {"thinned-removal", event.Removal, 0},
	"pruned":    {"pruned", event.Removal, 6},
	"drawn":     {"authors", event.Removal, 20},
}

// ruleOf is the rule of a run file.
func ruleOf(n config.Nodes, key uint64) (r data.NodeRule, relation event.Relation) {
	known := nodeRules[cmp.Or(n.Contacts, "nominated")]
	r = data.NodeRule{Relation: known.rule, Most: n.Examples, Take: n.Take, Key: key, Longest: true}
	if r.Most == 0 {
		r.Most = known.examples
	}
	if r.Take == 0 {
		r.Take = 20
	}
	if n.Contacts == thinned {
		r.Keep, r.Degree = cmp.Or(n.Keep, usualKeep), n.Degree
	}
	return r, known.relation
}

// Prepare settles which contacts enter whose example, and the noise.
func (n *node) Prepare(p *fl.Participant) error {
	if p.Data.People == nil {
		return fmt.Errorf("privacy.protects node, but the examples are no people with contacts; use data of the kind pandemic, or privacy.protects example")
	}
	rule, relation := ruleOf(n.nodes, n.key)
	people, examples, proved, err := p.Data.People.Under(rule)
	if err != nil {
		return fmt.Errorf("privacy.nodes: %w", err)
	}
	own := *p.Data
	own.People = people
	size := fl.PublicSizeOf(n.privacy, p.Name)
	if n.cfg.Mode != "sound" {
		size = max(1, people.Persons())
	}
	plan := fl.Plan{
		Target: fl.TargetOf(n.privacy, p.Name), Weight: 1, Drawn: event.FullBatch, Trust: n.trust, Uncovered: n.taken || len(p.Uncovered) > 0 || !proved,
		Examples: people.Persons(), Batch: size, Rate: 1, Nodes: examples, Keep: rule.Keep, StepSize: n.cfg.Local.Step, Clip: n.privacy.Clip,
		Clipping: clipRule(n.privacy.Clipping, n.privacy.Clip, n.cfg.Local.StepDecay),
		Terms:    account.Terms{Unit: event.UnitNode, Relation: relation, Claim: event.ClaimHeuristic},
	}
	if !plan.Uncovered {
		plan.Terms.Claim = event.ClaimProved
	}
	if n.cfg.Weights == "counts" { // as declared, in sound mode
		plan.Weight = float64(size)
	}
	each, err := n.settleBatch(&plan, size)
	if err != nil {
		return err
	}
	plan.Pass = max(1, n.cfg.Local.Steps)
	if n.cfg.Local.Steps == 0 {
		plan.Pass = n.cfg.Local.Epochs * each
	}
	plan.Steps = plan.Pass * n.outline.Passes
	plan.Local, plan.Epochs = plan.Steps, plan.Steps
	if err := n.settleNoise(&plan); err != nil {
		return err
	}
	p.Data, p.Plan = &own, plan
	return nil
}

// settleBatch has steps on batches, where the run file asks for them, and says how many make
// an epoch. Sound batches are drawn afresh, from as many places as there are said to be
// persons; the authors shuffle (docs/proofs/node-level.md).
func (n *node) settleBatch(plan *fl.Plan, size int) (each int, err error) {
	batch := n.cfg.Local.Batch
	if batch == 0 || batch >= size {
		return 1, nil
	}
	if plan.Examples > size {
		return 0, fmt.Errorf("privacy.public_size is %d, but there are %d persons: batches are drawn from so many places; declare %d or more, or set algorithm.local.batch 0", size, plan.Examples, plan.Examples)
	}
	plan.Drawn, plan.Batch, plan.Examples, plan.Rate = event.Shuffle, batch, size, float64(batch)/float64(size)
	if n.cfg.Mode == "sound" {
		plan.Drawn = event.WithoutReplacement
	}
	return size / batch, nil
}

// checkNode lists what protection of persons cannot cover.
func checkNode(c *config.Checker, run config.Run, o fl.Outline) {
	a, p := run.Algorithm, run.Privacy
	shape, whole := data.ShapeOf(run.Data)
	c.Require(!whole || shape.Windows > 0, "privacy.protects", "is node, but the examples are no people with contacts, who are in each other's; allowed on such data: the others, such as example")
	_, known := nodeRules[cmp.Or(p.Nodes.Contacts, "nominated")]
	c.Require(known, "privacy.nodes.contacts", "is %q; allowed: nominated, home, thinned, pruned, drawn", p.Nodes.Contacts)
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0 || len(p.Silos) > 0, "privacy.epsilon", "is 0, so that nobody is protected; allowed under privacy.protects node: more than 0 (or protects nothing)")
	c.Require(p.Epsilon == 0 || p.NoiseMultiplier == 0, "privacy.noise_multiplier",
		"is %v, but the noise follows from privacy.epsilon %v; give one of them", p.NoiseMultiplier, p.Epsilon)
	checkRuns(c, p)
	c.Require(p.Ceiling == nil, "privacy.ceiling", "is set, but a participant's target is its ceiling; set privacy.epsilon")
	proved := known && slices.Contains([]string{"nominated", "home", thinned}, cmp.Or(p.Nodes.Contacts, "nominated"))
	c.Require(!known || proved == (a.Mode == "sound"), "privacy.nodes.contacts", "is %s in %s mode; allowed: nominated, home and thinned in sound mode, where something is proved, drawn and pruned in paper mode", p.Nodes.Contacts, a.Mode)
	c.Require(p.Nodes.Contacts != thinned || p.Nodes.Degree > 0, "privacy.nodes.degree", "is missing: the claim rests on a promise of how many contacts nobody has more of; promise what follows from how contacts are reported, 200 say, and not from looking at these")
	c.Require(p.Nodes.Contacts != thinned || a.Local.Batch == 0, "algorithm.local.batch", "is %d, but thinned contacts are priced for steps on everybody; allowed with privacy.nodes.contacts thinned: 0", a.Local.Batch)
	c.Require(p.PublicSize > 0 || a.Mode != "sound", "privacy.public_size", "is missing: what sums are divided by must not follow from who is there; declare how many persons there are")
	c.Require(p.PublicSize < 1 || p.Delta <= 0.1/float64(p.PublicSize) || a.Mode != "sound", "privacy.delta",
		"is %v, with which a person in ten could be given away; allowed in sound mode: at most a tenth of one over privacy.public_size, %.3g", p.Delta, 0.1/float64(max(1, p.PublicSize)))
	checkSilos(c, p)
	for i, s := range p.Silos {
		at, size, delta := fmt.Sprintf("privacy.silos.%d", i), fl.PublicSizeOf(p, s.Name), fl.TargetOf(p, s.Name).Delta
		c.Require(size < 1 || delta <= 0.1/float64(size) || a.Mode != "sound", at+".delta",
			"is %v, with which one of the %d persons of %s in ten could be given away; allowed in sound mode: at most a tenth of one over its size, %.3g", delta, size, s.Name, 0.1/float64(max(1, size)))
		c.Require(s.RecordsPerPerson <= 1, at+".records_per_person", "is %d, but a person is one here already, with all its contacts; allowed: 1", s.RecordsPerPerson)
		c.Require(s.Epsilon == 0 || p.NoiseMultiplier == 0, at+".epsilon", "is a target, but privacy.noise_multiplier fixes the noise; give one of them")
	}
	c.Require(a.Mode != "sound" || run.Data.Inputs == "" || run.Data.Inputs == "pooled", "data.inputs", "is %s, but degree, PageRank and what inputs are scaled by are the population's own: a person less moves everybody's; allowed in sound mode: pooled", run.Data.Inputs)
	c.Require(o.Moments == 0, "algorithm.kind", "is %s, which sums rows, and people have none: their inputs are built of their contacts; allowed: methods that train", a.Kind)
	c.Require(o.Models == 1, "algorithm.hypotheses", "are %d models to choose from, and a choice by persons is not accounted for; allowed: 1", o.Models)
	c.Require(p.Clipping.Rule == "" || p.Clipping.Rule == clipFixed, "privacy.clipping.rule", "is %s, which is learned from single examples; allowed: fixed", p.Clipping.Rule)
	c.Require(p.RecordsPerPerson <= 1, "privacy.records_per_person", "is %d, but a person is one here already, with all its contacts; allowed: 1", p.RecordsPerPerson)
	c.Require(a.Stop.Return == "last" && a.Stop.Patience == 0, "algorithm.stop", "a choice by held-out examples would have to be paid for; allowed: return last, patience 0")
}
