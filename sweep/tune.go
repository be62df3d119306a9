package sweep

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/internal/rng"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sim"
)

// Tuned is a sweep that every silo paid for: what `coterie sweep` prints. The number
// of anyone's trials is not in it: it must stay secret.
type Tuned struct {
	Name         string       `json:"name"`
	Tuning       string       `json:"tuning"` // charged
	Distribution string       `json:"distribution"`
	MeanTrials   event.Number `json:"mean_trials"`
	Eta          event.Number `json:"eta"`
	Gamma        event.Number `json:"gamma"`
	Metric       string       `json:"metric"` // lower is better; known in simulation only
	Test         event.Number `json:"test"`   // of the tuned models, weighted by test examples
	Pivot        event.Number `json:"pivot"`  // of the pivot's personal models
	Average      event.Number `json:"average"`
	Silos        []TunedSilo  `json:"silos"`
	// Prices are what other ways to the best setting would cost at the same noise, beside
	// this one's.
	Prices []Price `json:"prices"`
	// Privacy is the federation's line: pivot, trials and scores together.
	Privacy fl.Privacy `json:"privacy"`

	Models []model.Tensor[float64] `json:"-"` // every silo's, tuned
}

// TunedSilo is one silo: what it chose, and what all of it cost.
type TunedSilo struct {
	Name     string            `json:"name"`
	Examples int               `json:"examples"`
	Settings map[string]string `json:"settings"` // null: it made no trial and took the public model
	Score    *event.Number     `json:"score"`    // noised sum of clipped losses
	Noise    event.Number      `json:"noise"`
	Epsilon  event.Number      `json:"epsilon"`
	Delta    event.Number      `json:"delta"`
	Claim    event.Claim       `json:"claim"`
	Relation event.Relation    `json:"relation"`
	Proved   *event.Number     `json:"proved_epsilon"` // replace-one; null where epsilon is proved itself, and where nothing is
	Test     event.Number      `json:"test"`
}

// tuner is one charged sweep under way.
type tuner struct {
	plan       *Plan
	federation *data.Federation
	model      model.Model
	pivot      pivot
	benches    []bench
	costs      []account.Guarantee
	proved     []*account.Guarantee
	won        []*trial // nil: no trial
	stop       *atomic.Bool
}

// Tune makes the pivot run, has every silo tune for itself, and charges for all of it.
func (p *Plan) Tune(ctx context.Context, o Options) (Tuned, error) {
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	r, err := p.tune(ctx, o, &stop)
	if ctx.Err() != nil { // whatever was being done was cut
		return Tuned{}, fmt.Errorf("%w: charged tuning starts anew, and in a real federation would pay anew", sim.ErrInterrupted)
	}
	return r, err
}

// tune is Tune; once stop is set, which is when ctx ends, what it returns means nothing.
func (p *Plan) tune(ctx context.Context, o Options, stop *atomic.Bool) (Tuned, error) {
	t, err := newTuner(ctx, p, o, stop)
	if err != nil {
		return Tuned{}, err
	}
	defer t.pivot.Close()
	total := len(t.pivot.Participants)
	if err := t.price(); err != nil {
		return Tuned{}, err
	}
	if err := t.pivot.train(p.Base.Algorithm.Rounds); err != nil {
		return Tuned{}, err
	}
	errs := make([]error, total)
	// A bar by silos, in their order: one by trials would tell how many there are.
	t.pivot.Each(total, func(worker, i int) { errs[i] = t.tune(&t.benches[worker], i) })
	o.Tick(total, total)
	if err := errors.Join(errs...); err != nil {
		return Tuned{}, err
	}
	return t.result()
}

func newTuner(ctx context.Context, p *Plan, o Options, stop *atomic.Bool) (*tuner, error) {
	load := func() (*data.Federation, error) { return o.Folder.Load(p.Base.Data, p.Base.Seed) }
	federation, err := pool.Await(ctx, load, func(*data.Federation) {})
	if err != nil {
		return nil, err
	}
	m, err := model.Of(p.Base, federation.Shape())
	if err != nil {
		return nil, err
	}
	m = model.Stoppable(m, stop.Load)
	t := &tuner{plan: p, federation: federation, model: m, stop: stop}
	algorithm, err := fl.New(p.Base, m, len(federation.Train))
	if err != nil {
		return nil, err
	}
	t.benches = make([]bench, o.workers())
	for i := range t.benches {
		if t.benches[i].learner, err = m.Learner(); err != nil {
			return nil, err
		}
	}
	k := len(federation.Train)
	silos := make([]fl.Participant, k)
	for i := range silos {
		silos[i] = fl.Participant{ID: i, Name: federation.Train[i].Name, Data: &federation.Train[i], Uncovered: federation.NotCovered}
	}
	if t.pivot.Rounds, err = sim.NewRounds(algorithm, silos, o.workers(), stop); err != nil {
		return nil, err
	}
	t.costs, t.proved, t.won = make([]account.Guarantee, k), make([]*account.Guarantee, k), make([]*trial, k)
	return t, nil
}

// price finds every silo's noise before anything is drawn.
func (t *tuner) price() error {
	a := t.plan.Base.Algorithm
	errs := make([]error, len(t.pivot.Participants))
	t.pivot.Each(len(errs), func(worker, i int) {
		silo := &t.pivot.Participants[i]
		bill := price{
			algorithm: t.pivot.Algorithm, silo: silo, worker: &t.benches[worker].worker, rounds: int64(a.Rounds), epochs: int64(a.Local.Epochs),
			score: t.plan.Tuning.Score.event(), trials: t.plan.Trials,
		}
		silo.Plan.Noise, t.costs[i], t.proved[i], errs[i] = bill.settle()
	})
	var faults []error
	for _, err := range errs {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 1 { // the same is wrong with all of them, more often than not
		return fmt.Errorf("%d of %d silos find no noise; the first: %w", len(faults), len(errs), faults[0])
	}
	return errors.Join(faults...)
}

// tune has a silo make a random number of trials and keep the best.
func (t *tuner) tune(b *bench, i int) error {
	src := t.plan.chance(i)
	for range t.plan.Trials.Count(rng.Float64(src)) {
		if t.stop.Load() {
			return sim.ErrInterrupted
		}
		point := int(src.Uint64() % uint64(len(t.plan.Points))) // at most 1e5 points: the bias is below 1e-14
		one, err := b.attempt(t.plan, &t.pivot, t.model, &t.pivot.Participants[i], point, src.Uint64())
		if err != nil {
			return err
		}
		if t.won[i] == nil || one.score < t.won[i].score {
			t.won[i] = &one
		}
	}
	return nil
}

// result judges the models on held-out examples, which only a simulation can.
func (t *tuner) result() (Tuned, error) {
	p := t.plan
	r := Tuned{
		Name: p.Name, Tuning: "charged", Distribution: p.Tuning.Distribution, MeanTrials: event.Number(p.Trials.Mean),
		Eta: event.Number(p.Trials.Eta), Gamma: event.Number(p.Trials.Gamma), Metric: "loss",
	}
	if t.federation.Classes > 0 {
		r.Metric = "error"
	}
	theta := make([]float64, t.model.Parameters())
	var total float64
	for i := range t.pivot.Participants {
		silo := &t.pivot.Participants[i]
		average := t.pivot.end().Hypotheses[:len(theta)]
		t.pivot.Algorithm.Adopt(theta, t.pivot.end(), silo, nil)
		ofPivot, err := t.judge(theta, i)
		if err != nil {
			return Tuned{}, err
		}
		ofAverage, err := t.judge(average, i)
		if err != nil {
			return Tuned{}, err
		}
		r.Pivot, r.Average = r.Pivot+event.Number(ofPivot), r.Average+event.Number(ofAverage)
		line := TunedSilo{
			Name: silo.Name, Examples: silo.Plan.Examples, Noise: event.Number(silo.Plan.Noise),
			Epsilon: event.Number(t.costs[i].Epsilon), Delta: event.Number(t.costs[i].Delta), Claim: t.costs[i].Claim, Relation: t.costs[i].Relation,
		}
		own := average // no trial: the public model
		if won := t.won[i]; won != nil {
			own = won.theta
			score := event.Number(won.score)
			line.Score, line.Settings = &score, map[string]string{}
			for _, s := range p.Points[won.point].Settings {
				line.Settings[s.Path] = s.Value
			}
		}
		if g := t.proved[i]; g != nil {
			proved := event.Number(g.Epsilon)
			line.Proved = &proved
		}
		n := float64(t.federation.Train[i].Held.Len())
		sum, err := t.judge(own, i)
		if err != nil {
			return Tuned{}, err
		}
		line.Test = event.Number(sum / max(1, n)) // 0 for a silo that holds nothing out
		r.Test += event.Number(sum)
		total += n
		r.Silos = append(r.Silos, line)
		r.Models = append(r.Models, model.Tensor[float64]{Name: fmt.Sprintf("silo.%d", i), Shape: []int{len(own)}, Values: own})
	}
	r.Test, r.Pivot, r.Average = r.Test/event.Number(total), r.Pivot/event.Number(total), r.Average/event.Number(total)
	var err error
	if r.Privacy, err = fl.StateSpends(p.Base, t.costs, t.proved, append(t.federation.NotCovered, p.uncovered()...)); err != nil {
		return Tuned{}, err
	}
	r.Prices, err = t.prices(r.Privacy)
	return r, err
}

// judge is a model's figure on a silo's held-out examples, summed over them.
func (t *tuner) judge(theta []float64, silo int) (float64, error) {
	test := t.federation.Train[silo].Held
	loss, wrong, err := t.benches[0].learner.Judge(theta, test)
	if t.federation.Classes > 0 {
		return float64(wrong), err
	}
	return loss * float64(test.Len()), err
}

func (p *Plan) uncovered() []string {
	list := []string{"the time that tuning takes: it tells the number of trials"}
	if p.Tuning.Entropy == "seeded" {
		list = append(list, "the number of trials, from whoever knows the seed: entropy is seeded, for simulation only")
	}
	return list
}
