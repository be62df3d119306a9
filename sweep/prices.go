package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// Price is what one way of getting at the best setting costs.
type Price struct {
	Way  string       `json:"way"`
	Runs event.Number `json:"runs"` // that are paid for; of random stopping on average
	// Pivot: random stopping beside one run more that others see, and that the trials follow.
	Pivot bool `json:"pivot"`
	// Privacy is the price at the noise of the runs that were made, for a participant that
	// is asked in every round; Proved as a run's.
	Privacy event.Statement  `json:"privacy"`
	Proved  *event.Statement `json:"proved"`
	// Noise is what would keep the run file's target this way, divided by the clip: the
	// median participant's. Null: there is no target, or no noise keeps it.
	Noise *event.Number `json:"noise"`
}

// The ways. The figures that a choice is made by are taken to be public in all of them:
// none pays for a score.
const (
	WayOne    = "one run"         // as if the setting had been known
	WayGrid   = "the whole grid"  // every run is released: all are composed
	WayRandom = "random stopping" // the best of a secret, random number of runs, and nothing of the others
)

// priced is what one way costs every participant.
type priced struct {
	costs  []account.Guarantee
	proved []*account.Guarantee
}

// counter is a sweep's runs, by participant, as they would be charged.
type counter struct {
	o          Options
	one, all   []purchase // a run of the best point, and a run of every point
	notCovered []string
	seen       bool // some run is, by others than who trains
}

// count adds up what the runs of a seed cost, before they are made or after: nothing of it
// depends on how they end. Best is the point whose run stands for one.
func (p *Plan) count(ctx context.Context, o Options, points []Point, best int, seed uint64) (*counter, error) {
	c := &counter{o: o}
	known := map[string]counted{}
	for i, point := range points {
		run := point.Run
		run.Seed = seed
		key, err := priceKey(run)
		if err != nil {
			return nil, err
		}
		runs, ok := known[key]
		if !ok {
			if runs, err = o.wallets(ctx, run); err != nil {
				return nil, fmt.Errorf("%s: %w", point.Label(), err)
			}
			known[key] = runs
		}
		wallets := runs.wallets
		if i == 0 {
			c.all = make([]purchase, len(wallets))
		}
		if len(wallets) != len(c.all) {
			return nil, fmt.Errorf("%w: %s has %d participants, %s has %d", errUnpriced, points[0].Label(), len(c.all), point.Label(), len(wallets))
		}
		for k, w := range wallets {
			if err := c.all[k].add(w); err != nil {
				return nil, err
			}
		}
		c.seen = c.seen || runs.seen
		if i == best {
			c.notCovered = runs.notCovered
			for _, w := range wallets {
				c.one = append(c.one, one(w))
			}
		}
	}
	return c, nil
}

// priceKey is the same for runs that differ only in keys that no price follows from, so
// that one of them is prepared for all.
func priceKey(run config.Run) (string, error) {
	run.Algorithm.Lambda, run.Algorithm.Local.Step, run.Algorithm.Local.StepDecay = "", 0, 0
	run.Privacy.Run = 0
	run.Privacy.Clip, run.Privacy.UpdateClip, run.Privacy.Clipping.Quantile = 0, 0, 0
	key, err := json.Marshal(run)
	return string(key), err
}

// alike says that all runs cost the same.
func (c *counter) alike() bool {
	for _, p := range c.all {
		if len(p.kinds) > 1 {
			return false
		}
	}
	return true
}

// cost is what runs cost every participant.
func (c *counter) cost(ctx context.Context, runs []purchase, by *stopping) (priced, error) {
	out := priced{make([]account.Guarantee, len(runs)), make([]*account.Guarantee, len(runs))}
	err := c.o.spread(ctx, len(runs), "prices were computed", func(i int) (err error) {
		out.costs[i], out.proved[i], err = runs[i].cost(by)
		return err
	})
	return out, err
}

// keeps says whether nobody's runs cost more than its target.
func (c priced) keeps(runs []purchase) bool {
	for i, g := range c.costs {
		if epsilon, _ := runs[i].kinds[0].plan.Target.PerRecord(); g.Epsilon > epsilon {
			return false
		}
	}
	return true
}

// share is as many runs as the noise of a charged grid's runs must be for: those of one
// seed, or, where the points do not cost the same and the sum of their prices would miss
// the target by a little, a few more.
func (p *Plan) share(ctx context.Context, o Options) (int, error) {
	least := len(p.Points)
	for runs := least; runs <= 2*least; runs++ {
		points := p.sharing(runs)
		kept := true
		for seed := 0; seed < p.Seeds && kept; seed++ {
			c, err := p.count(ctx, o, points, 0, p.Base.Seed+uint64(seed))
			if err != nil {
				return 0, unshared(err)
			}
			costs, err := c.cost(ctx, c.all, nil)
			if err != nil {
				return 0, err
			}
			kept = costs.keeps(c.all)
		}
		if kept {
			return runs, nil
		}
	}
	return 0, fmt.Errorf("%w: the points of the grid differ so much in what a run costs that their runs cannot share a target: noise for %d runs instead of %d does not do; make a sweep of its own for every such setting", config.ErrInvalid, 2*least, least)
}

// unshared says what to do about runs that cannot share a target.
func unshared(err error) error {
	if errors.Is(err, errUnpriced) {
		return fmt.Errorf("%w: a charged grid: %w; leave the tuning block out, or have the points differ in other keys", config.ErrInvalid, err)
	}
	return err
}

// sharing are the points with the noise of so many runs.
func (p *Plan) sharing(runs int) []Point {
	points := make([]Point, len(p.Points))
	for i, point := range p.Points {
		point.Run.Privacy.Runs, point.Run.Privacy.Run = runs, i
		points[i] = point
	}
	return points
}

// bills are what the ways to the best setting cost.
type bills struct {
	prices []Price
	growth []Growth
	grid   fl.Privacy // the statement of all runs
	why    string     // why a price is missing; empty: none is
}

// prices are what the ways to the best setting cost: none where the runs have no common
// price.
func (p *Plan) prices(ctx context.Context, o Options, points []Point, best int) (b bills, err error) {
	c, err := p.count(ctx, o, points, best, p.Base.Seed)
	if errors.Is(err, errUnpriced) {
		return bills{why: err.Error()}, nil
	}
	if err != nil {
		return b, err
	}
	run := points[best].Run
	run.Privacy.Runs, run.Privacy.Run = 0, 0 // what is stated is of all runs that share the target
	state := func(way string, runs float64, bought []purchase, by *stopping) (fl.Privacy, error) {
		costs, err := c.cost(ctx, bought, by)
		if err != nil {
			return fl.Privacy{}, err
		}
		s, err := fl.StateSpends(run, costs.costs, costs.proved, c.notCovered)
		if way == WayGrid {
			cover(&s)
		}
		b.prices = append(b.prices, Price{Way: way, Runs: event.Number(runs), Pivot: by != nil && by.pivot, Privacy: s.Statement, Proved: s.Proved})
		return s, err
	}
	if _, err = state(WayOne, 1, c.one, nil); err != nil {
		return b, err
	}
	if b.grid, err = state(WayGrid, float64(len(points)), c.all, nil); err != nil {
		return b, err
	}
	random := &stopping{p.Trials, c.seen}
	switch {
	case !c.alike():
		b.why = "random stopping has none here: the points of the grid differ in what a run costs"
		return b, nil
	case len(points) == 1:
		random = nil
	case c.seen && run.Privacy.Protects == "client":
		random, b.why = nil, "random stopping has none here: everybody sees the models of every run, and what is seen must be paid for"
	default:
		if _, err = state(WayRandom, p.Trials.Mean, c.one, random); err != nil {
			return b, err
		}
	}
	if b.growth, err = p.growth(c, random); err != nil {
		return b, err
	}
	return b, c.noises(ctx, run, len(points), random, b.prices)
}

// cover says in a statement of all runs that the choice among them is part of it.
func cover(p *fl.Privacy) {
	statements := []*event.Statement{&p.Statement}
	if p.Proved != nil {
		statements = append(statements, p.Proved)
	}
	for _, s := range statements {
		for i, what := range s.NotCovered {
			if what == account.UncoveredTuning {
				s.NotCovered[i] = "tuning beside this grid"
			}
		}
	}
}

// noises adds to every price the noise that would keep the target that way.
func (c *counter) noises(ctx context.Context, run config.Run, points int, random *stopping, list []Price) error {
	if run.Privacy.NoiseMultiplier > 0 {
		return nil // there is no target
	}
	for i := range list {
		run.Privacy.Runs, run.Privacy.Run = 0, 0
		if list[i].Way == WayGrid {
			run.Privacy.Runs = points
		}
		median, err := c.medianNoise(ctx, run, func(w wallet) (float64, error) {
			if list[i].Way == WayRandom {
				return w.leastNoise(*random)
			}
			return w.plan.Noise, nil
		})
		if errors.Is(err, account.ErrUnreachable) {
			continue
		}
		if err != nil {
			return err
		}
		list[i].Noise = median
	}
	return nil
}

// medianNoise is that of a run's participants.
func (c *counter) medianNoise(ctx context.Context, run config.Run, of func(wallet) (float64, error)) (*event.Number, error) {
	runs, err := c.o.wallets(ctx, run)
	if err != nil {
		return nil, err
	}
	noise := make([]float64, len(runs.wallets))
	err = c.o.spread(ctx, len(noise), "prices were computed", func(i int) (err error) {
		noise[i], err = of(runs.wallets[i])
		return err
	})
	return medianOf(noise), err
}

// leastNoise keeps the wallet's target by random stopping.
func (w wallet) leastNoise(by stopping) (float64, error) {
	epsilon, _ := w.plan.Target.PerRecord()
	return account.LeastNoise(epsilon, func(noise float64) (float64, error) {
		w.plan.Noise = noise
		g, err := one(w).accounted(&by)
		return g.Epsilon, err
	})
}
