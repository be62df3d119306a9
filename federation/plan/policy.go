package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
	"github.com/coterie-fl/coterie/model"
)

// Policy is what a participant allows, whatever a server asks. Ceilings hold for
// its dataset, over all runs and federations.
type Policy struct {
	Ceilings []Ceiling `yaml:"ceilings" jsonschema_description:"what all releases together may lose, by unit, relation, claim and trust; what is not named is refused"`
	Methods  []string  `yaml:"methods" jsonschema_description:"values of algorithm.kind that may be run; empty: any"`
	// MinimumNoise and MaximumLeak bound one release: its noise multiplier, and its
	// loss at the radius.
	MinimumNoise      float64 `yaml:"minimum_noise" jsonschema:"minimum=0" jsonschema_description:"least noise multiplier of a plan; 0: any"`
	MaximumLeak       float64 `yaml:"maximum_leak" jsonschema:"minimum=0" jsonschema_description:"most that one release may lose at its radius, parameters divided by noise multiplier; 0: any"`
	MaximumRounds     int     `yaml:"maximum_rounds" jsonschema:"minimum=0" jsonschema_description:"most rounds of a plan; 0: any"`
	MaximumParameters int     `yaml:"maximum_parameters" jsonschema:"minimum=1" jsonschema_description:"most values that all models of a plan may have together: memory that a server may ask for"`
	MaximumMegabytes  int     `yaml:"maximum_megabytes" jsonschema:"minimum=1" jsonschema_description:"most memory that the plan's model may take for the examples that go through it together: of few parameters and large layers a server could make much"`
	MaximumValue      float64 `yaml:"maximum_value" jsonschema:"minimum=0" jsonschema_description:"largest magnitude of a model's value that is trained from; a broadcast beyond it is refused before data is touched; 0: the plan's bound alone"`
	MinimumCohort     int     `yaml:"minimum_cohort" jsonschema:"minimum=0" jsonschema_description:"fewest releases that a round may be aggregated of, by the plan; 0: any"`
	// Degree is the participant's to say, not a server's: whether people keep a promise tells
	// of them.
	Degree int `yaml:"degree" jsonschema:"minimum=0,maximum=100000" jsonschema_description:"contacts that nobody in this participant's data has more of: they are held against it before a server is asked anything, and a plan with privacy.nodes.contacts thinned must promise as many or more; 0: such plans are refused"`
	// Evaluation allows one more release after the last round, if the plan asks for it.
	Evaluation bool `yaml:"evaluation" jsonschema_description:"release noised counts of how the final model does on this participant's held-out examples, once, if the plan asks for it and a ceiling covers it; false: that round is declined"`
}

// Ceiling is one line of a policy; the ledger keeps it.
type Ceiling struct {
	Unit     string  `yaml:"unit" jsonschema:"enum=example,enum=client,enum=node,enum=neighbourhood" jsonschema_description:"what is protected"`
	Relation string  `yaml:"relation" jsonschema:"enum=add-remove,enum=replace-one,enum=metric,enum=own-record,enum=full-removal" jsonschema_description:"which datasets are neighbours"`
	Claim    string  `yaml:"claim" jsonschema:"enum=proved,enum=metric,enum=heuristic,enum=none" jsonschema_description:"how far the number can be trusted; heuristic and none are refused unless named here"`
	Trust    string  `yaml:"trust" jsonschema:"enum=participant,enum=server" jsonschema_description:"who adds the noise: the participant, or the server, which then is sent the update itself and is refused unless named here; empty: participant"`
	Epsilon  float64 `yaml:"epsilon" jsonschema:"minimum=0" jsonschema_description:"most that may be lost in all"`
	Delta    float64 `yaml:"delta" jsonschema:"minimum=0,maximum=1" jsonschema_description:"delta that epsilon goes with, fixed in advance; 0 for the relation metric"`
	Distance float64 `yaml:"distance" jsonschema:"minimum=0" only:".claim=metric" jsonschema_description:"the loss between points this far apart is held to epsilon, too; 0: not bounded"`
	// EpsilonSwitch is what is promised against a server that chooses radius and
	// hypotheses; Epsilon and Distance are not.
	EpsilonSwitch float64 `yaml:"epsilon_switch" jsonschema:"minimum=0" only:".claim=metric" jsonschema_description:"most that any two data sets may lose in all: the sum of epsilon*(2*radius + spread of the hypotheses) over all releases; must be given"`
	Unlimited     bool    `yaml:"unlimited" only:".claim=none" jsonschema_description:"must be true: releases without noise are allowed"`
	Filter        string  `yaml:"filter" jsonschema:"enum=renyi,enum=zcdp" jsonschema_description:"how releases are added up; empty: renyi"`
}

// LoadPolicy reads a policy file.
func LoadPolicy(text []byte) (Policy, error) {
	p := Policy{MaximumParameters: 200_000_000, MaximumMegabytes: 4096, MaximumValue: 1e9}
	err := config.Decode(text, &p, func() config.Faults {
		var c config.Checker
		c.Require(len(p.Ceilings) > 0, "ceilings", "names nothing: without a ceiling nothing may be released")
		for i, one := range p.Ceilings {
			path := fmt.Sprintf("ceilings.%d", i)
			c.Require(one.Unlimited == (one.Claim == string(event.ClaimNone)), path, "unlimited: true belongs to the claim none, and to no other")
			if one.Unit != "" && one.Relation != "" && one.Claim != "" {
				kept, err := one.ledger()
				if err == nil {
					err = kept.Validate()
				}
				c.Require(err == nil, path, "%v", err)
			} else {
				c.Require(false, path, "unit, relation and claim are all needed")
			}
		}
		return c.Faults()
	})
	if err != nil {
		return p, err
	}
	return p, p.Budget().Validate()
}

// Budget is the part of the policy that the ledger keeps.
func (p Policy) Budget() ledger.Policy {
	var out ledger.Policy
	for _, c := range p.Ceilings {
		kept, err := c.ledger()
		if err != nil {
			kept.Trust = event.Trust(c.Trust) // the ledger refuses what it does not know
		}
		out.Ceilings = append(out.Ceilings, kept)
	}
	return out
}

func (c Ceiling) ledger() (ledger.Ceiling, error) {
	out := ledger.Ceiling{
		Unit: event.Unit(c.Unit), Relation: event.Relation(c.Relation), Claim: event.Claim(c.Claim),
		Epsilon: event.Number(c.Epsilon), Delta: event.Number(c.Delta), Distance: event.Number(c.Distance),
		EpsilonSwitch: event.Number(c.EpsilonSwitch), Filter: c.Filter,
	}
	if c.Unlimited {
		out.Epsilon = event.Number(math.Inf(1))
	}
	if c.Trust == "" {
		return out, nil
	}
	var err error
	out.Trust, err = ledger.TrustNamed(c.Trust)
	return out, err
}

// Allows says whether a plan breaks the policy, and how. What it would cost is the
// ledger's business.
func (p Policy) Allows(plan Plan, run config.Run, m model.Model) error {
	parameters := m.Parameters()
	var wrong []string
	add := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	a := run.Algorithm
	add(len(p.Methods) == 0 || slices.Contains(p.Methods, a.Kind), "the method is %s; allowed: %s", a.Kind, strings.Join(p.Methods, ", "))
	add(p.MaximumRounds == 0 || a.Rounds <= p.MaximumRounds, "there are %d rounds; at most %d are allowed", a.Rounds, p.MaximumRounds)
	if k := run.Algorithm.Hypotheses; p.MaximumParameters > 0 {
		add(parameters <= p.MaximumParameters/max(k, 1), "there are %d models of %d values; at most %d values are allowed", k, parameters, p.MaximumParameters)
		// These keep something of every participant, and one of them sends it to all.
		all := a.Kind == "mocha" || a.Lambda == config.LambdaAuto
		add(!all || plan.Participants <= p.MaximumParameters/max(parameters, 1), "there are %d participants with models of %d values; at most %d values are allowed in all", plan.Participants, parameters, p.MaximumParameters)
	}
	if most := p.MaximumMegabytes; most > 0 {
		room := math.Ceil(model.Room(m) / 1e6)
		add(room <= float64(most), "the model's layers take %.0f MB for the examples that go through them together; at most %d MB are allowed (maximum_megabytes)", room, most)
	}
	if n := run.Privacy.Nodes; run.Privacy.Protects == "node" && n.Contacts == "thinned" { // by public numbers alone
		add(p.Degree > 0, "contacts are thinned, and the claim rests on a promise that nobody has more than %d of them; this policy promises nothing (degree)", n.Degree)
		add(n.Degree >= p.Degree, "the plan promises that nobody has more than %d contacts; this policy promises no less than %d (degree)", n.Degree, p.Degree)
	}
	add(plan.Minimum >= p.MinimumCohort, "a round is aggregated of %d releases; at least %d are wanted", plan.Minimum, p.MinimumCohort)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the plan breaks this participant's policy: %s", fl.ErrRefused, strings.Join(wrong, "; "))
}

// AllowsRelease says whether one release breaks the policy: it is asked before the
// ledger is, and so before any noise is drawn.
func (p Policy) AllowsRelease(r event.Release) error {
	noise, leak := protection(r.What)
	switch {
	case noise < p.MinimumNoise:
		return fmt.Errorf("%w: this participant's policy wants a noise multiplier of at least %v (minimum_noise), the release has %v", fl.ErrRefused, p.MinimumNoise, noise)
	case p.MaximumLeak > 0 && leak > p.MaximumLeak:
		remedy := account.FindRemedy(r, account.Cut{}, func(other event.Release) bool {
			_, leak := protection(other.What)
			return leak <= p.MaximumLeak
		})
		text := fmt.Sprintf("this participant's policy lets a release lose at most %v at its radius (maximum_leak), this one loses %s", p.MaximumLeak, account.Upward(leak))
		if do := remedy.String(); do != "" {
			text += "; " + do
		}
		return fmt.Errorf("%w: %s", fl.ErrRefused, text)
	}
	return nil
}

// protection is the least noise multiplier in an event, and what a metric release
// loses at its radius.
func protection(e event.Event) (noise, leak float64) {
	switch e := e.(type) {
	case event.MetricLaplace:
		return e.NoiseMultiplier, e.Leak() + e.Slack
	case event.Gaussian:
		return e.Noise, 0
	case event.Laplace:
		return e.Scale, 0
	case event.DiscreteGaussian:
		return e.Sigma / float64(max(e.Bound, 1)), 0
	case event.NodeGaussian:
		return e.Noise, 0
	case event.NodeSum:
		return e.Noise / float64(2*e.Examples-1), 0
	case event.NodeThinned: // at its worst, where everything is kept
		return e.Noise / float64(2*e.Degree+1), 0
	case event.Sampled:
		return protection(e.Of)
	case event.Repeated:
		noise, leak = protection(e.Of)
		return noise, leak * float64(e.Times)
	case event.Tuning:
		return protection(e.Of)
	case event.Selection:
		return math.Inf(1), 0 // has no noise multiplier; the ledger bounds its epsilon
	case event.Composed:
		noise = math.Inf(1)
		for _, part := range e.Parts {
			n, l := protection(part)
			noise, leak = min(noise, n), leak+l
		}
		return noise, leak
	}
	return 0, math.Inf(1) // unprotected, or unknown
}
