package protect

import (
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

// Choose picks a model by the exponential mechanism on the participant's own examples;
// by the distance to its last release, which is private already; or, unpaid, the best
// one.
func (g *exampleGuard) Choose(b *fl.Broadcast, p *fl.Participant) (int, error) {
	switch rule, plan := g.cfg.Selection.Rule, &p.Plan; {
	case rule == "nearest":
		return nearestToLast(b, p, g.n), nil
	case p.Blank && (rule == "best" || !plan.Private()):
		return 0, nil
	case rule == "best" || !plan.Private() || plan.Choice == 0:
		_, chosen, err := bestOf(g.learner, g.cfg.Selection, g.n, b.Hypotheses, p.Data)
		return chosen, err
	}
	scores, err := g.scores(b, p)
	if err != nil {
		return 0, err
	}
	selection := mech.Selection{Mechanism: event.Exponential, Epsilon: p.Plan.Choice}
	return g.paid.Choose(selection, scores, mech.Randomness{Exact: g.exact, Keyed: g.choice.Stream(b.Round, p.ID)})
}

// scores are wrong answers, or losses clipped example by example. Under replace-one
// wrong answers count as a rate, with equation B.1's bound.
func (g *exampleGuard) scores(b *fl.Broadcast, p *fl.Participant) (mech.Scores, error) {
	size, models := p.Data.Len(), g.outline.Models
	if p.Blank {
		return mech.ErrorCounts(make([]int64, models))
	}
	centre := func(j int) []float64 { return b.Hypotheses[j*g.n : (j+1)*g.n] }
	own := model.Readable(g.learner, p.Data) // what no model can read speaks for none of them
	if g.cfg.Selection.Score == "error" {
		wrong := make([]int64, models)
		for j := range wrong {
			_, count, err := g.learner.Judge(centre(j), own)
			if err != nil {
				return mech.Scores{}, err
			}
			wrong[j] = int64(count)
		}
		if p.Plan.Terms.Relation == event.ReplaceOne && size > 1 {
			return mech.ErrorRates(wrong, int64(size))
		}
		return mech.ErrorCounts(wrong)
	}
	sums, err := mech.NewLossScores(models, g.cfg.Selection.Bound)
	if err != nil {
		return mech.Scores{}, err
	}
	size = own.Len()
	g.losses = append(g.losses[:0], make([]float64, models*size)...)
	for j := range models {
		if err := g.learner.Losses(g.losses[j*size:(j+1)*size], centre(j), own); err != nil {
			return mech.Scores{}, err
		}
	}
	each := make([]float64, models)
	for i := range size {
		for j := range each {
			each[j] = g.losses[j*size+i]
		}
		if err := sums.Add(each); err != nil {
			return mech.Scores{}, err
		}
	}
	return sums.Scores(), nil
}
