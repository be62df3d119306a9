package protect

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// released is how many values a release has, but for what is declared beside it.
func (q *plain) released() int {
	if d := q.outline.Moments; d > 0 {
		return mech.TriangleLength(d)
	}
	return q.n
}

// checkNoSums is for protections that cover updates alone.
func checkNoSums(c *config.Checker, run config.Run, o fl.Outline) {
	c.Require(o.Moments == 0, "privacy.protects", "is %s, but %s releases sums over single examples and no updates; allowed: example, nothing", run.Privacy.Protects, run.Algorithm.Kind)
}

// checkSums lists what stands in the way of one proved release.
func checkSums(c *config.Checker, run config.Run, o fl.Outline) {
	if o.Moments == 0 {
		return
	}
	a, p := run.Algorithm, run.Privacy
	c.Require(a.Mode == "sound", "algorithm.mode", "is paper, but %s has no batches that a paper could account for otherwise; allowed: sound", a.Kind)
	c.Require(p.Clipping == (config.Clipping{}), "privacy.clipping", "moves a clip from step to step, but %s makes one sum; allowed: none", a.Kind)
	c.Require(p.PublicSize == 0, "privacy.public_size", "is %d, but %s makes one sum over all examples, whose noise does not ask how many there are; allowed: 0", p.PublicSize, a.Kind)
}

// settleSum is the plan of one sum over all examples.
func settleSum(plan *fl.Plan, p *fl.Participant) {
	plan.Examples, plan.Drawn, plan.Rate = p.Data.Len(), event.FullBatch, 1
	plan.Batch, plan.Epochs, plan.Steps, plan.Local, plan.Pass = max(1, plan.Examples), 1, 1, 1, 1
}

// SecondMoments releases the sum with the noise that was paid for.
func (g *exampleGuard) SecondMoments(_ *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	plan := &p.Plan
	if !plan.Private() { // without a target nothing is protected
		return true, plainMoments(out, g.learner, g.outline.Moments, p)
	}
	sum, err := mech.NewMomentSum(g.outline.Moments, plan.Clip, plan.Terms.Relation)
	if err != nil {
		return false, err
	}
	if err := eachExample(g.learner, p, sum.Add); err != nil {
		return false, err
	}
	err = g.paid.Moments(mech.Gaussian{Multiplier: plan.Noise}, out, sum, mech.Randomness{Exact: g.exact, Keyed: &g.keyed})
	return err == nil, err
}

// SecondMoments releases the sum as it is.
func (g *openGuard) SecondMoments(_ *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	return true, plainMoments(out, g.learner, g.q.outline.Moments, p)
}

// plainMoments sets out to the sum as it is.
func plainMoments(out []float64, l model.Learner, features int, p *fl.Participant) error {
	sum := mech.NewPlainMoments(features)
	if err := eachExample(l, p, sum.Add); err != nil {
		return err
	}
	return sum.Unprotected(out)
}

// eachExample gives every one of the participant's examples to add; of a blank one none.
func eachExample(l model.Learner, p *fl.Participant, add func(x []float64) error) error {
	reader, ok := l.(model.Reader)
	if !ok {
		return fmt.Errorf("second moments are summed for a projection (model.kind), not for this model")
	}
	mine := p.Data
	if p.Blank { // nothing is read of what may be the very fault
		mine = new(data.Client)
	}
	return reader.Read(mine, add)
}
