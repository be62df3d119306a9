package sweep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/theory"
)

// errUnpriced says that the runs of a grid have no price that could be added up.
var errUnpriced = errors.New("the runs have no common price")

func unpriced(protects string) error {
	return fmt.Errorf("%w: under privacy.protects %s no noise follows from a target for examples or participants", errUnpriced, protects)
}

// wallet is a participant before the first round of a run: what it will pay if it is
// asked in every round follows from public numbers, and nothing is trained for it.
type wallet struct {
	name string
	plan fl.Plan
	paid fl.Paid
}

// counted are a run's participants, ready to be priced.
type counted struct {
	wallets    []wallet
	notCovered []string // what the data's preparation leaves out
	seen       bool     // others than who trains see every run: updates, and the models between
}

// wallets prepares a run's participants, as the run itself will.
func (o Options) wallets(ctx context.Context, run config.Run) (c counted, err error) {
	if p := run.Privacy.Protects; p == "update" || p == "nothing" { // before data are read for it
		return c, unpriced(p)
	}
	run.Run.Workers = o.workers()
	s, err := sim.NewUntil(ctx, run, o.Folder)
	if err != nil {
		return c, err
	}
	defer s.Close()
	algorithm, participants, notCovered := s.Prepared()
	c.wallets, c.notCovered = make([]wallet, len(participants)), notCovered
	c.seen = len(c.wallets) > 1 && algorithm.Outline().Sends > 0
	for i := range participants {
		if c.wallets[i], err = newWallet(run, algorithm, &participants[i]); err != nil {
			return c, err
		}
	}
	return c, nil
}

// spread does jobs 0..n-1 on every core. An interruption says while what was done.
func (o Options) spread(ctx context.Context, n int, what string, job func(i int) error) error {
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	workers := pool.New(min(o.workers(), max(1, n)))
	defer workers.Close()
	workers.StopBy(&stop)
	errs := make([]error, n)
	workers.Each(n, func(_, i int) { errs[i] = job(i) })
	if ctx.Err() != nil {
		return fmt.Errorf("%w while %s; the same command goes on from there", sim.ErrInterrupted, what)
	}
	for _, err := range errs { // the same is wrong with all of them, more often than not
		if err != nil {
			return err
		}
	}
	return nil
}

// newWallet holds what a participant's plan says against the price that it is told before
// the first round: a protection that prices otherwise is not added up.
func newWallet(run config.Run, a *fl.Algorithm, p *fl.Participant) (wallet, error) {
	w := wallet{name: p.Name, plan: p.Plan}
	if !w.plan.Private() {
		return w, unpriced(run.Privacy.Protects)
	}
	ahead, rounds, err := a.PriceAhead(p, 0)
	if err != nil {
		return w, err
	}
	w.paid.Rounds = rounds
	if run.Algorithm.Selection.Rule == "private" && w.plan.Choice > 0 {
		w.paid.Choices = a.Outline().Chooses
	}
	if w.plan.Moments > 0 {
		w.paid.Moments = 1
	}
	whole, err := w.accounted().Release()
	if err == nil && !reflect.DeepEqual(whole, ahead) {
		err = fmt.Errorf("%w: %s under privacy.protects %s is not priced by its rounds", errUnpriced, run.Algorithm.Kind, run.Privacy.Protects)
	}
	return w, err
}

// accounted are all of its rounds.
func (w wallet) accounted() account.Training {
	t, _ := w.plan.Trainings(w.paid)
	return t
}

// purchase is several runs of one participant: kinds of runs that cost the same, and how
// many there are of each.
type purchase struct {
	kinds []wallet
	times []int64
}

func one(w wallet) purchase { return purchase{[]wallet{w}, []int64{1}} }

// add is one run more.
func (p *purchase) add(w wallet) error {
	mine := w.accounted()
	for i, kind := range p.kinds {
		theirs := kind.accounted()
		if kind.name != w.name || theirs.Terms != mine.Terms || theirs.Trust != mine.Trust || kind.plan.Target != w.plan.Target {
			return fmt.Errorf("%w: the points of the grid differ in whom they protect, in the target or in the terms", errUnpriced)
		}
		if reflect.DeepEqual(theirs, mine) && kind.paid == w.paid {
			p.times[i]++
			return nil
		}
	}
	p.kinds, p.times = append(p.kinds, w), append(p.times, 1)
	return nil
}

// stopping is random stopping: the best of a random number of runs.
type stopping struct {
	theory.Trials
	pivot bool // beside one run that others see, which the trials follow
}

func (s stopping) event(run event.Event) event.Event {
	best := s.Event(run)
	if s.pivot {
		return event.Composed{Parts: []event.Event{run, best}}
	}
	return best
}

// cost is what the runs cost together, all of their releases composed; or, by random
// stopping, what the best of runs like them does. Beside it stands what is proved where
// that is heuristic for its batches alone (nil otherwise).
func (p purchase) cost(by *stopping) (account.Guarantee, *account.Guarantee, error) {
	g, err := p.accounted(by)
	if err != nil {
		return g, nil, err
	}
	var proved []account.Training
	for _, w := range p.kinds {
		if _, t := w.plan.Trainings(w.paid); t != nil {
			proved = append(proved, *t)
		}
	}
	if len(proved) < len(p.kinds) {
		return g, nil, nil
	}
	method := account.MethodRDP
	if by == nil {
		method = p.kinds[0].plan.ProvedBy(p.kinds[0].paid)
	}
	sound, err := p.spend(proved, by, method)
	return g, &sound, err
}

// accounted is cost without what is proved.
func (p purchase) accounted(by *stopping) (account.Guarantee, error) {
	var kinds []account.Training
	for _, w := range p.kinds {
		kinds = append(kinds, w.accounted())
	}
	g, err := p.spend(kinds, by, account.MethodRDP)
	if p.kinds[0].plan.Drawn == event.Shuffle {
		g.Sampling = fl.ShuffledAsPoisson
	}
	return g, err
}

func (p purchase) spend(kinds []account.Training, by *stopping, method account.Method) (account.Guarantee, error) {
	var all event.Release
	var parts []event.Event
	for i, t := range kinds {
		r, err := t.Release()
		if err != nil {
			return account.Guarantee{}, err
		}
		all = r
		parts = append(parts, event.Repeated{Times: p.times[i], Of: r.What})
	}
	all.What = event.Composed{Parts: parts}
	var fixed []float64
	if by != nil {
		all.What, fixed = by.event(all.What), orders(by.Trials)
	}
	_, delta := p.kinds[0].plan.Target.PerRecord()
	if l := p.lattice(); l != nil {
		return account.SpendExact(all, method, delta, *l, fixed...)
	}
	return account.Spend(all, method, delta, fixed...)
}

// lattice is that of the kind with the most coordinates, which costs the most; nil: the
// noise is simulated.
func (p purchase) lattice() *account.Lattice {
	var most *account.Lattice
	for _, w := range p.kinds {
		if l := w.plan.Lattice; l != nil && (most == nil || l.Coordinates > most.Coordinates) {
			most = l
		}
	}
	return most
}
