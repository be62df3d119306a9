package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep/cells"
	"github.com/coterie-fl/coterie/sweep/inputs"
)

// Options say how a sweep is made.
type Options struct {
	Folder  *data.Folder
	Out     string // folder for finished runs and the result
	Workers int    // 0: one a core
	Version string
	Tick    func(done, total int)
	Say     func(format string, args ...any) // tells people what was found; nil: nobody listens
	Runner  cells.Runner                     // who makes the runs of a grid; nil: this process

	data map[string]data.Fingerprint // that the runs of a grid are made on: see note
}

func (o Options) runner() cells.Runner {
	if o.Runner != nil {
		return o.Runner
	}
	return cells.Here{Workers: o.Workers}
}

// post sends files to where runs are made; nil: they are made here.
func (o Options) post() *inputs.Post {
	if s, ok := o.Runner.(cells.Sender); ok {
		return &inputs.Post{Store: s.Objects()}
	}
	return nil
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Result is a sweep over a grid: what `coterie sweep` prints.
type Result struct {
	Name   string        `json:"name"`
	Tuning string        `json:"tuning"` // not charged, or grid charged
	Metric string        `json:"metric"` // lower is better
	Runs   int           `json:"runs"`   // that were made, of all seeds
	Seeds  int           `json:"seeds"`
	Points []PointResult `json:"points"`
	Best   int           `json:"best"` // index of the lowest mean
	// Shared is how many runs the noise of every run is for; 0: the target is one run's.
	Shared int `json:"shared"`
	// Chosen is what tuning at this price comes to: every seed's own best point. Null where
	// tuning is not charged.
	Chosen *Chosen `json:"chosen"`
	// Prices are what the ways to the best setting cost; empty where runs have no common
	// price, which Says tells.
	Prices []Price `json:"prices"`
	// Growth is how they rise with the number of runs; empty where runs cost differently.
	Growth []Growth `json:"growth"`
	// Privacy is what one run of the best point promises, or, where the grid is charged, what
	// all runs of a seed do together.
	Privacy fl.Privacy `json:"privacy"`
	Says    []string   `json:"says"`
}

// Chosen is what whoever makes one seed's grid and keeps the best of it gets.
type Chosen struct {
	Points []int        `json:"points"` // by seed: index of its best point
	Mean   event.Number `json:"mean"`
	SD     event.Number `json:"sd"`
}

// PointResult is one setting over all seeds.
type PointResult struct {
	Settings map[string]string `json:"settings"`
	Mean     event.Number      `json:"mean"`
	SD       event.Number      `json:"sd"`
	Values   []event.Number    `json:"values"` // in seed order
}

// made is one finished run, boiled down.
type made struct {
	Metric  string       `json:"metric"`
	Value   event.Number `json:"value"`
	Privacy fl.Privacy   `json:"privacy"`
}

// NotCharged is what every free sweep says, and GridCharged what one does whose runs share
// a target.
const (
	NotCharged  = "tuning: not charged"
	GridCharged = "tuning: grid charged"
)

// Run makes every run of the grid; those that an earlier call finished are kept.
func (p *Plan) Run(ctx context.Context, o Options) (Result, error) {
	if err := os.MkdirAll(filepath.Join(o.Out, "cells"), 0o755); err != nil {
		return Result{}, fmt.Errorf("sweep: %w", err)
	}
	o.Folder = o.Folder.Keeping()
	r := Result{Name: p.Name, Tuning: "not charged", Runs: len(p.Points) * p.Seeds, Seeds: p.Seeds}
	points := p.Points
	if p.Charge() == ChargeGrid {
		var err error
		if r.Shared, err = p.share(ctx, o); err != nil {
			return Result{}, err
		}
		r.Tuning, points = "grid charged", p.sharing(r.Shared)
	}
	var err error
	if o.data, err = o.note(ctx, p.all(points)); err != nil {
		return Result{}, err
	}
	if err := p.outline(o, r.Tuning, points); err != nil {
		return Result{}, err
	}
	runs := make([]made, r.Runs)
	book, post := o.book(), o.post()
	err = each(ctx, o, len(runs), func(i int) error {
		return book.Remember(ctx, o.cell(p.seeded(points[i/p.Seeds], i%p.Seeds), post), &runs[i])
	})
	if err != nil {
		return Result{}, err
	}
	r.Metric = runs[0].Metric
	best := math.Inf(1)
	for i, point := range points {
		one := summarise(point, runs[i*p.Seeds:(i+1)*p.Seeds])
		r.Points = append(r.Points, one)
		if float64(one.Mean) < best {
			best, r.Best = float64(one.Mean), i
		}
	}
	r.Privacy = runs[r.Best*p.Seeds].Privacy
	return r, p.charge(ctx, o, points, &r)
}

// seeded is a point's run with one of the seeds.
func (p *Plan) seeded(point Point, seed int) config.Run {
	run := point.Run
	run.Seed += uint64(seed)
	run.Run.Workers = 1 // runs are what is spread over the cores
	return run
}

// all are the runs of all points with all seeds.
func (p *Plan) all(points []Point) (runs []config.Run) {
	for _, point := range points {
		for seed := range p.Seeds {
			runs = append(runs, p.seeded(point, seed))
		}
	}
	return runs
}

// charge adds to a result what its runs cost, and says what is not paid for.
func (p *Plan) charge(ctx context.Context, o Options, points []Point, r *Result) error {
	bills, err := p.prices(ctx, o, points, r.Best)
	if err != nil {
		return err
	}
	r.Prices, r.Growth = bills.prices, bills.growth
	if r.Shared == 0 {
		r.Says = []string{
			NotCharged + ": choosing by these figures tells of the examples that they were measured on, and every run was a release of its own",
			fmt.Sprintf("%d runs were made; the privacy of one is what is printed", r.Runs),
		}
	} else {
		r.Privacy = bills.grid
		r.Chosen = chosen(r.Points, p.Seeds)
		r.Privacy.NotCovered = append(r.Privacy.NotCovered, "the choice itself, where its figures are not of public examples: nobody pays for the figures of held-out ones")
		r.Says = []string{fmt.Sprintf("%s: the noise of every run is for %d runs, and all runs of a seed together keep the target", GridCharged, r.Shared)}
		if p.Seeds > 1 {
			r.Privacy.NotCovered = append(r.Privacy.NotCovered, "all seeds together: each is a whole grid that keeps the target for itself, as often as it is repeated to see how far figures spread")
			r.Says = append(r.Says, fmt.Sprintf("the %d seeds repeat the whole sweep: the price is one seed's, and whoever makes them all on the same people's data pays for each", p.Seeds))
		}
	}
	if bills.why != "" {
		r.Says = append(r.Says, "prices: "+bills.why)
	}
	return nil
}

// chosen is every seed's own best point, and how they fare.
func chosen(points []PointResult, seeds int) *Chosen {
	var c Chosen
	values := make([]float64, seeds)
	for s := range values {
		best := 0
		for i, point := range points {
			held := float64(points[best].Values[s])
			if float64(point.Values[s]) < held || math.IsNaN(held) {
				best = i
			}
		}
		c.Points = append(c.Points, best)
		values[s] = float64(points[best].Values[s])
	}
	c.Mean, c.SD = meanAndSD(values)
	return &c
}

func summarise(point Point, runs []made) PointResult {
	out := PointResult{Settings: settingsOf(point)}
	values := make([]float64, len(runs))
	for i, c := range runs {
		out.Values = append(out.Values, c.Value)
		values[i] = float64(c.Value)
	}
	out.Mean, out.SD = meanAndSD(values)
	return out
}

// meanAndSD is over seeds; one has no deviation.
func meanAndSD(values []float64) (mean, sd event.Number) {
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	middle := sum / float64(len(values))
	for _, v := range values {
		squares += (v - middle) * (v - middle)
	}
	if len(values) > 1 {
		sd = event.Number(math.Sqrt(squares / float64(len(values)-1)))
	}
	return event.Number(middle), sd
}

// each does jobs 0..n-1, as many at the same time as whoever makes them is good for, and
// stops at the first error. A run that failed on a worker stops no other.
func each(ctx context.Context, o Options, n int, job func(i int) error) error {
	var mu sync.Mutex
	var first error
	var failed []error
	next, done := 0, 0
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil && ctx.Err() != nil {
			first = fmt.Errorf("%w after %d of %d runs; the same command goes on from there", sim.ErrInterrupted, done, n)
		}
		next++
		return next - 1, first == nil && next <= n
	}
	var wg sync.WaitGroup
	for range min(o.runner().Width(), n) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				err := job(i)
				mu.Lock()
				switch {
				case err == nil:
					done++
				case errors.Is(err, cells.ErrFailed):
					failed = append(failed, err)
				case first == nil && !errors.Is(err, sim.ErrInterrupted) && ctx.Err() == nil:
					first = err
				}
				o.Tick(done, n)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if first == nil && ctx.Err() != nil {
		first = fmt.Errorf("%w; the same command goes on from there", sim.ErrInterrupted)
	}
	if first == nil && len(failed) > 0 {
		first = fmt.Errorf("%d of %d runs failed; the others are made and kept, and the same command tries those again: %w", len(failed), n, failed[0])
	}
	return first
}

// gridKind is the kind of cells that are runs of a grid.
const gridKind = "grid"

// book is where runs are remembered.
func (o Options) book() cells.Book {
	return cells.Book{Folder: filepath.Join(o.Out, "cells"), Version: o.Version, Runner: o.runner()}
}

// keyOf is all that a run's result depends on. A run's JSON leaves out where it starts from,
// and says where data lie, not what they are.
func (o Options) keyOf(run config.Run) any {
	var parts []any
	if run.Model.Start != "" {
		parts = append(parts, run.Model.Start)
	}
	if key, err := sim.DataKey(run); err == nil { // which note has found before
		if f, ok := o.data[key]; ok {
			parts = append(parts, f)
		}
	}
	if len(parts) == 0 {
		return run
	}
	return append([]any{run}, parts...)
}

// cell is one run of the grid.
func (o Options) cell(run config.Run, post *inputs.Post) cells.Cell {
	return cells.Cell{
		Key: o.keyOf(run), Kind: gridKind, Varies: run.Privacy.Noise == fl.NoiseExact,
		Order: func(ctx context.Context) (cells.Order, error) {
			sent, err := post.Send(ctx, run, o.Folder)
			return cells.Order{Spec: sent, Identity: sent.Identity()}, err
		},
		Make: func(ctx context.Context) (any, error) { return simulate(ctx, run, o.Folder, nil) },
	}
}

// Makers make this package's cells on a worker.
func Makers(cache *inputs.Cache) map[string]cells.Maker {
	of := func(make func(ctx context.Context, cache *inputs.Cache, b cells.Bench, sent inputs.Sent) (any, error)) cells.Maker {
		return func(ctx context.Context, b cells.Bench, spec json.RawMessage) (any, error) {
			var sent inputs.Sent
			if err := json.Unmarshal(spec, &sent); err != nil {
				return nil, err
			}
			b.Tell(fmt.Sprintf("%s, seed %d", sent.Run.Name, sent.Run.Seed))
			return make(ctx, cache, b, sent)
		}
	}
	return map[string]cells.Maker{gridKind: of(makeOne), seedKind: of(makeWhole)}
}

// makeOne makes a run of a grid on a worker.
func makeOne(ctx context.Context, cache *inputs.Cache, b cells.Bench, sent inputs.Sent) (any, error) {
	run, folder, err := cache.Receive(ctx, sent)
	if err != nil {
		return nil, err
	}
	return simulate(ctx, run, folder, b.Keep)
}

// simulate makes one run in memory.
func simulate(ctx context.Context, run config.Run, folder *data.Folder, keep sim.Keeper) (made, error) {
	s, err := sim.Finish(ctx, run, folder, keep)
	if err != nil {
		return made{}, err
	}
	defer s.Close()
	res, err := s.Result()
	if err != nil {
		return made{}, err
	}
	return boilDown(run, res), nil
}

// boilDown is what is compared of a run.
func boilDown(run config.Run, res sim.Result) made {
	if run.Judge.By != "clients" && res.Metrics.Error != nil {
		return made{"error", *res.Metrics.Error, res.Privacy}
	}
	return made{"loss", res.Metrics.Loss, res.Privacy}
}
