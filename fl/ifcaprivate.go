package fl

import (
	"math"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/mech"
)

// privateIFCA is IFCA (Ghosh et al. 2020), or HypCluster, with a private choice of
// the cluster in the first share of the rounds; then clusters are kept (paper 002,
// appendix B.3).
type privateIFCA struct{ clustered }

func newPrivateIFCA(s *Silo) *privateIFCA {
	return &privateIFCA{newClustered(s, roundsOf(s.cfg.Selection.Share, s.cfg.Rounds), s.cfg.Rounds)}
}

func (m *privateIFCA) respond(w *Worker, b Broadcast, p *Participant, out []float64) error {
	return m.trainCentre(w, b, p, out)
}

func (m *privateIFCA) adopt(dst []float64, b Broadcast, p *Participant) {
	m.adoptCentre(dst, b, p)
}

// choose picks a cluster by the exponential mechanism on the silo's own examples;
// without privacy, the best one.
func (c *clustered) choose(w *Worker, b Broadcast, p *Participant) (int, error) {
	plan := &p.Plan
	if !plan.private() || plan.Choice == 0 {
		return c.best(w, b, p)
	}
	scores, err := c.scores(w, b, p)
	if err != nil {
		return 0, err
	}
	selection := mech.Selection{Mechanism: event.Exponential, Epsilon: plan.Choice}
	return w.silo.paid.Choose(selection, scores, mech.Randomness{Exact: w.silo.exact, Keyed: c.choice.Stream(b.Round, p.ID)})
}

// scores are wrong answers, or losses clipped example by example. Under replace-one
// wrong answers count as a rate, with equation B.1's bound.
func (c *clustered) scores(w *Worker, b Broadcast, p *Participant) (mech.Scores, error) {
	size := p.Data.Len()
	if p.Blank {
		return mech.ErrorCounts(make([]int64, c.models))
	}
	if c.cfg.Selection.Score == "error" {
		wrong := make([]int64, c.models)
		for j := range wrong {
			_, count, err := w.silo.learner.Judge(c.centre(b, j), p.Data)
			if err != nil {
				return mech.Scores{}, err
			}
			wrong[j] = int64(count)
		}
		if p.Plan.terms.Relation == event.ReplaceOne && size > 1 {
			return mech.ErrorRates(wrong, int64(size))
		}
		return mech.ErrorCounts(wrong)
	}
	sums, err := mech.NewLossScores(c.models, c.cfg.Selection.Bound)
	if err != nil {
		return mech.Scores{}, err
	}
	w.silo.losses = append(w.silo.losses[:0], make([]float64, (c.models)*size)...)
	for j := range c.models {
		if err := w.silo.learner.Losses(w.silo.losses[j*size:(j+1)*size], c.centre(b, j), p.Data); err != nil {
			return mech.Scores{}, err
		}
	}
	each := make([]float64, c.models)
	for i := range size {
		for j := range each {
			each[j] = w.silo.losses[j*size+i]
		}
		if err := sums.Add(each); err != nil {
			return mech.Scores{}, err
		}
	}
	return sums.Scores(), nil
}

// best is the model with the fewest wrong answers or the least loss, without privacy.
func (c *clustered) best(w *Worker, b Broadcast, p *Participant) (chosen int, err error) {
	least := math.Inf(1)
	if p.Blank {
		return 0, nil
	}
	for j := range c.models {
		loss, wrong, err := w.silo.learner.Judge(c.centre(b, j), p.Data)
		if err != nil {
			return 0, err
		}
		if c.cfg.Selection.Score == "error" {
			loss = float64(wrong)
		}
		if loss < least {
			chosen, least = j, loss
		}
	}
	return chosen, nil
}
