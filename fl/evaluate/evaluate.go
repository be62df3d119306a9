// Package evaluate is the release that judges a run's models: what held-out examples say of them, counted, noised and paid for.
package evaluate

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
)

// Evaluation is the round after a run's last one: what a participant counts, what that
// costs, how it is noised. Nothing of it depends on an example.
type Evaluation struct {
	run       config.Run
	algorithm *fl.Algorithm
	loss      model.Loss
	classes   int // 0: values
	bins      int
	bound     float64 // of values
	unit      float64 // what 1 is in the target's own unit
	target    fl.Target
	gaussian  mech.Gaussian
	family    rng.Family
}

// usualBins is what a run file means that does not say.
const usualBins = 10

// New is the run's evaluation, or nil if its file asks for none. It finds the least noise
// that keeps judge.evaluate.epsilon.
func New(run config.Run, shape data.Shape, a *fl.Algorithm) (*Evaluation, error) {
	asked := run.Judge.Evaluate
	if asked.Epsilon == 0 {
		return nil, nil
	}
	if shape.Vocabulary > 0 {
		return nil, fmt.Errorf("judge.evaluate asks for counts, which know classes and values, but no words; remove it")
	}
	if shape.Reconstruct {
		return nil, fmt.Errorf("judge.evaluate asks for counts, which know classes and values, but no examples that are their own targets; remove it")
	}
	loss, err := model.ParseLoss(run.Algorithm.Local.Loss)
	if err != nil {
		return nil, fmt.Errorf("judge.evaluate: %w", err)
	}
	e := &Evaluation{
		run: run, algorithm: a, loss: loss, classes: shape.Classes, bins: asked.Bins, bound: asked.Bound,
		target: target(run), family: rng.NewFamily(fl.DrawSeed(run), "evaluation"),
	}
	if e.bins == 0 {
		e.bins = usualBins
	}
	if e.bound == 0 {
		e.bound = 1
	}
	e.unit = 1
	if unit := data.UnitOf(run.Data); unit[1] > unit[0] {
		e.unit = unit[1] - unit[0]
	}
	epsilon, delta := e.target.PerRecord()
	alone := account.Training{
		Terms: account.Terms{Unit: event.UnitExample, Relation: e.relation(), Claim: event.ClaimProved}, Trust: event.TrustLocal,
		Sampling: event.FullBatch, Steps: 1, Lattice: e.lattice(),
	}
	alone, _, err = alone.WithNoiseFor(account.MethodRDP, epsilon, delta)
	if err != nil {
		return nil, fmt.Errorf("judge.evaluate: noise for epsilon %v at delta %v: %w", epsilon, delta, err)
	}
	e.gaussian.Multiplier = alone.Noise
	return e, nil
}

// target is the strictest that anybody has: everybody's noise is the same, so that the
// server knows what is in a sum.
func target(run config.Run) fl.Target {
	p := run.Privacy
	t := fl.Target{Epsilon: run.Judge.Evaluate.Epsilon, Delta: p.Delta, Records: max(1, p.RecordsPerPerson)}
	for _, own := range p.Silos {
		if own.Delta > 0 {
			t.Delta = min(t.Delta, own.Delta)
		}
		t.Records = max(t.Records, own.RecordsPerPerson)
	}
	return t
}

// relation is the run's.
func (e *Evaluation) relation() event.Relation { return event.Relation(e.run.Privacy.Relation) }

// lattice is what an accountant must know of exact noise.
func (e *Evaluation) lattice() *account.Lattice {
	return &account.Lattice{Coordinates: int64(e.Length())}
}

// Length is how many values a release has: two rows of bins, or the sums of values.
func (e *Evaluation) Length() int {
	if e.classes == 0 {
		return valueSums
	}
	return 2 * e.bins
}

// Bounds are those of a release's values.
func (e *Evaluation) Bounds() []fl.Bound {
	return []fl.Bound{{To: e.Length(), Most: fl.MostAnywhere}}
}

// Price is what the release costs a participant, from public numbers alone. It is proved
// if nothing of the participant's rows came to the model, or to the scale of its rows,
// but by what was paid for: otherwise one training row could move every count.
func (e *Evaluation) Price(p *fl.Participant) event.Release {
	claim, o := event.ClaimProved, e.algorithm.Outline()
	switch byExample := e.run.Privacy.Protects == "example"; {
	case len(p.Uncovered) > 0:
		claim = event.ClaimHeuristic
	case byExample && p.Plan.Private():
		claim = p.Plan.Terms.Claim
	case byExample || o.Personal || o.Models > 1 && e.run.Algorithm.Selection.Rule == "best":
		claim = event.ClaimHeuristic
	}
	return event.Release{
		Unit: event.UnitExample, Relation: e.relation(), Claim: claim, Trust: event.TrustLocal, What: e.gaussian.Event(),
	}
}

// Statement is what one release costs by itself, on the terms that it had.
func (e *Evaluation) Statement(claim event.Claim) (event.Statement, error) {
	r := e.Price(&fl.Participant{})
	r.Claim = claim
	_, delta := e.target.PerRecord()
	g, err := account.SpendExact(r, account.MethodRDP, delta, *e.lattice())
	if err != nil {
		return event.Statement{}, fmt.Errorf("judge.evaluate: %w", err)
	}
	s := g.Statement()
	s.NotCovered = append(s.NotCovered, notCovered(e.run.Privacy.Noise, claim)...)
	return s, nil
}

// notCovered is what an evaluation's number leaves out.
func notCovered(noise string, claim event.Claim) []string {
	list := []string{"who takes part in the evaluation: that follows from policies and budgets"}
	if claim == event.ClaimHeuristic {
		list = append(list, "training rows, as far as they came to the evaluated model, or to the scale of the rows, unpaid: one of them could move every count")
	}
	switch noise {
	case fl.NoiseSeeded:
		list = append(list, "everything, against whoever knows the seed: the noise is exact but repeatable")
	case "simulated":
		list = append(list, "everything, against whoever knows the seed: the noise follows from it, for simulation only")
	}
	return list
}

// deviation is that of the noise in one value of a release.
func (e *Evaluation) deviation() float64 {
	bound, err := mech.PositiveBound(1, e.relation())
	if err != nil {
		return 0 // New has found it
	}
	return e.gaussian.Multiplier * bound
}
