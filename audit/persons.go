package audit

import (
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// canaryPeople are the examples of persons who are in or out, each along a coordinate of its
// own: of one who is in, S examples pull one way, its own and those that hold it; of one who
// is out, the S-1 others pull the other way. All are far longer than the clip. So the sum
// moves by 2S-1 clips, the most that a person's going can move it
// (docs/proofs/node-relations.md).
type canaryPeople struct {
	in       []bool
	at       []int
	length   float32
	examples []canaryPerson // once it is known how many a person is in
}

// canaryPerson is one example: where it pulls, and which way.
type canaryPerson struct{ at, label int32 }

func (c *canaryPeople) Persons() int   { return len(c.examples) }
func (c *canaryPeople) ID(i int) int64 { return int64(i) }
func (c *canaryPeople) Inputs() int    { return len(c.in) }
func (c *canaryPeople) Windows() int   { return 1 }

// Input is a person's: at a model of zeros its gradient is half its length, along its
// coordinate for the label 0 and against it for the label 1.
func (c *canaryPeople) Input(dst []float32, person, _ int) int {
	clear(dst)
	e := c.examples[person]
	dst[e.at] = c.length
	return int(e.label)
}

// Under makes the examples that the claim under a rule is about: so many hold a person.
func (c *canaryPeople) Under(r data.NodeRule) (data.People, int, bool, error) {
	own := *c
	own.examples = nil
	for i, at := range c.at {
		one, label := r.Most, int32(0)
		if !c.in[i] {
			one, label = r.Most-1, 1
		}
		for range one {
			own.examples = append(own.examples, canaryPerson{int32(at), label})
		}
	}
	return &own, r.Most, true, nil
}

// persons are the canaries of a run that protects persons.
func (g *gradientCanaries) persons(run config.Run) *canaryPeople {
	return &canaryPeople{in: g.in, at: g.at, length: float32(2 * canaryLength * run.Privacy.Clip)}
}

// stepsOfPersons is stepsOnly for persons: their model starts at zero and stays there.
func stepsOfPersons(run config.Run) (config.Run, data.Shape) {
	run.Model = config.Model{Kind: "linear"}
	local := &run.Algorithm.Local
	local.Loss, local.ClassWeights, local.FocalAlpha, local.FocalGamma = "cross-entropy", nil, 0, 0
	local.Step = 1e-12
	run.Algorithm.ClientsPerRound = 1
	return run, data.Shape{Classes: 2, Windows: 1}
}

// CheckMechanism lists what a run file must say so that its noised steps can be audited:
// those on examples, or on persons.
func CheckMechanism(run config.Run) config.Faults {
	a, p := run.Algorithm, run.Privacy
	if p.Protects != "node" {
		return CheckGradients(run)
	}
	var c config.Checker
	c.Require(a.Mode == "sound", "algorithm.mode", "is %q; allowed: sound, where claims are proved", a.Mode)
	c.Require(p.Nodes.Contacts != "thinned", "privacy.nodes.contacts", "is thinned: how many examples hold a person is then drawn in every step, and the audit knows a number that is fixed; allowed: nominated, home")
	c.Require(a.Local.Batch == 0, "algorithm.local.batch", "is %d: how many of a person's examples a batch draws varies, and the audit knows steps on everybody; allowed: 0", a.Local.Batch)
	c.Require(p.Epsilon > 0 || p.NoiseMultiplier > 0, "privacy.epsilon", "is 0 without privacy.noise_multiplier: nothing is claimed that could be audited; give one of them")
	return c.Faults()
}

// personAssumes is what the bounds rest on where persons are protected.
const personAssumes = "all: a person is in as many examples as the claim says, all of which turn round when it goes; that the rule by which contacts enter examples keeps to that number is a theorem, and held by the program's tests, not by this audit"

// moved is what a charge for persons amounts to: noise in units of what one of them moves.
func (r *canaryRound) moved(e event.NodeSum, times int64) error {
	r.nodes = e.Examples
	return r.add(1, e.Noise/r.moves(), times)
}

// moves is by how many clips a canary moves the sum.
func (r *canaryRound) moves() float64 {
	if r.nodes == 0 {
		return 1
	}
	return float64(2*r.nodes - 1)
}

// places is a coordinate's sum, in clips, as the share of what a canary moves it by: 0
// without it, 1 with it.
func (r *canaryRound) places(z float64) float64 {
	if r.nodes == 0 {
		return z
	}
	return (z + float64(r.nodes-1)) / r.moves()
}

// alone is the charge for one such step.
func (r *canaryRound) alone() event.Event {
	if r.nodes > 0 {
		return event.NodeSum{Examples: r.nodes, Noise: r.noise * r.moves()}
	}
	return event.Sampled{Sampling: event.Poisson, Rate: r.rate, Of: event.Gaussian{Noise: r.noise}}
}

// stage is the run without data of its own, its model, and the victim of the canaries.
func (g *gradientCanaries) stage(run config.Run, name string) (config.Run, model.Model, *data.Client, error) {
	shape := data.Shape{}
	victim := &data.Client{Name: name, Rows: data.Rows{Features: len(g.in)}}
	if run.Privacy.Protects == "node" {
		victim.People = g.persons(run)
		run, shape = stepsOfPersons(run)
	} else {
		run = stepsOnly(run)
	}
	shape.Features = len(g.in)
	m, err := model.Of(run, shape)
	return run, m, victim, err
}

// ofPersons says whether a participant's examples are canaries themselves.
func (g *gradientCanaries) ofPersons(c *data.Client) bool { return c == g.victim && c.People != nil }
