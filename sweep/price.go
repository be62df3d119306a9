package sweep

import (
	"fmt"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/theory"
)

// price is what a silo's tuning costs, as a function of its noise: the pivot's
// rounds, which are sent, and the best of a random number of trials, each of which
// makes as many rounds and tells a noised score (docs/proofs/tuning.md).
type price struct {
	algorithm *fl.Algorithm
	silo      *fl.Participant
	worker    *fl.Worker
	rounds    int64
	epochs    int64
	score     event.Event
	trials    theory.Trials
}

// enquiry is a purse that is never opened: it learns what a round would cost and
// refuses, before any noise is drawn.
type enquiry struct{ round event.Release }

func (e *enquiry) Reserve(_ int, r event.Release) error {
	e.round = r
	return fl.ErrRefused
}

// round is what one round costs at a noise.
func (p price) round(noise float64) (event.Release, error) {
	asked := *p.silo
	var purse enquiry
	asked.Purse, asked.Plan.Noise = &purse, noise
	released, err := p.algorithm.Respond(p.worker, fl.Broadcast{}, &asked, nil)
	if err != nil {
		return event.Release{}, err
	}
	if released {
		return event.Release{}, fmt.Errorf("silo %s released before it had paid", asked.Name)
	}
	return purse.round, nil
}

// bill is everything that the silo releases at a noise.
func (p price) bill(noise float64) (event.Release, error) {
	r, err := p.round(noise)
	if err != nil {
		return r, err
	}
	r.What = p.all(r.What, noise)
	return r, nil
}

func (p price) all(round event.Event, noise float64) event.Event {
	training := event.Repeated{Times: p.rounds, Of: round}
	trial := event.Composed{Parts: []event.Event{training, p.score}}
	return event.Composed{Parts: []event.Event{training, p.trials.Event(trial)}}
}

// orders are those that the price of trials is computed with: all, or for Poisson, whose
// bound asks for every order at every order, a few. Fewer orders never give too small a
// number.
func orders(t theory.Trials) []float64 {
	if !t.Poisson {
		return nil
	}
	return []float64{1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 256}
}

// cost is what a bill comes to at the silo's delta.
func (p price) cost(r event.Release) (account.Guarantee, error) {
	delta := p.silo.Plan.Target.Delta
	if l := p.silo.Plan.Lattice; l != nil {
		return account.SpendExact(r, account.MethodRDP, delta, *l, orders(p.trials)...)
	}
	return account.Spend(r, account.MethodRDP, delta, orders(p.trials)...)
}

// cheaperScore says from which noise on scores leave something for the training, if from
// any.
func (p price) cheaperScore() string {
	const endless = 1e12 // training that costs nothing
	least, err := account.LeastNoise(p.silo.Plan.Target.Epsilon, func(noise float64) (float64, error) {
		p.score = event.Gaussian{Noise: noise}
		r, err := p.bill(endless)
		if err != nil {
			return 0, err
		}
		g, err := p.cost(r)
		return g.Epsilon, err
	})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; scores do with tuning.score.noise above %.4g", least)
}

// settle finds the least noise that keeps the silo's target, and what it costs; and,
// where that number is heuristic for its batches alone, what is proved for the same
// releases.
func (p price) settle() (noise float64, cost account.Guarantee, proved *account.Guarantee, err error) {
	target := p.silo.Plan.Target
	noise, err = account.LeastNoise(target.Epsilon, func(noise float64) (float64, error) {
		r, err := p.bill(noise)
		if err != nil {
			return 0, err
		}
		g, err := p.cost(r)
		return g.Epsilon, err
	})
	if err != nil {
		return 0, cost, nil, fmt.Errorf("silo %s: with a score of %s: %w%s", p.silo.Name, event.Describe(p.score), err, p.cheaperScore())
	}
	r, err := p.bill(noise)
	if err != nil {
		return 0, cost, nil, err
	}
	if cost, err = p.cost(r); err != nil || r.Claim != event.ClaimHeuristic || len(p.silo.Uncovered) > 0 {
		return noise, cost, nil, err
	}
	// A shuffled epoch is one release without amplification (DESIGN, erratum 10).
	plan := p.silo.Plan
	epoch := event.Sampled{Sampling: event.Shuffle, Batch: int64(plan.Batch), Examples: int64(plan.Examples), Of: event.Gaussian{Noise: noise}}
	r.Relation, r.Claim = event.ReplaceOne, event.ClaimProved
	r.What = p.all(event.Repeated{Times: p.epochs, Of: epoch}, noise)
	sound, err := p.cost(r)
	return noise, cost, &sound, err
}
