package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
)

// Options say how a sweep is made.
type Options struct {
	Folder  *data.Folder
	Out     string // folder for finished runs and the result
	Workers int    // 0: one a core
	Version string
	Tick    func(done, total int)
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
	if err := p.outline(o, r.Tuning, points); err != nil {
		return Result{}, err
	}
	cells := make([]made, r.Runs)
	err := each(ctx, o, len(cells), func(i int) error {
		return o.remember(ctx, p.seeded(points[i/p.Seeds], i%p.Seeds), &cells[i])
	})
	if err != nil {
		return Result{}, err
	}
	r.Metric = cells[0].Metric
	best := math.Inf(1)
	for i, point := range points {
		one := summarise(point, cells[i*p.Seeds:(i+1)*p.Seeds])
		r.Points = append(r.Points, one)
		if float64(one.Mean) < best {
			best, r.Best = float64(one.Mean), i
		}
	}
	r.Privacy = cells[r.Best*p.Seeds].Privacy
	return r, p.charge(ctx, o, points, &r)
}

// seeded is a point's run with one of the seeds.
func (p *Plan) seeded(point Point, seed int) config.Run {
	run := point.Run
	run.Seed += uint64(seed)
	run.Run.Workers = 1 // runs are what is spread over the cores
	return run
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

func summarise(point Point, cells []made) PointResult {
	out := PointResult{Settings: settingsOf(point)}
	values := make([]float64, len(cells))
	for i, c := range cells {
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

// each does jobs 0..n-1 on every core and stops at the first error.
func each(ctx context.Context, o Options, n int, job func(i int) error) error {
	var mu sync.Mutex
	var first error
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
	for range min(o.workers(), n) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				err := job(i)
				mu.Lock()
				if err == nil {
					done++
				} else if first == nil && !errors.Is(err, sim.ErrInterrupted) {
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
	return first
}

// cell is the file of a run's result. Its name is all that the result depends on.
func (o Options) cell(run config.Run) (string, error) {
	key, err := json.Marshal(struct {
		Version string
		Run     config.Run
	}{o.Version, run})
	if err != nil {
		return "", fmt.Errorf("sweep: %w", err)
	}
	sum := sha256.Sum256(key)
	return filepath.Join(o.Out, "cells", hex.EncodeToString(sum[:12])+".json"), nil
}

// remember reads a run's cell, or makes it.
func (o Options) remember(ctx context.Context, run config.Run, into *made) error {
	path, err := o.cell(run)
	if err != nil {
		return err
	}
	stored, err := os.ReadFile(path)
	if err == nil && json.Unmarshal(stored, into) == nil {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if *into, err = simulate(ctx, run, o.Folder); err != nil {
		return err
	}
	text, err := json.Marshal(into)
	if err != nil {
		return err
	}
	return sim.WriteFile(path, append(text, '\n'))
}

// simulate makes one run in memory.
func simulate(ctx context.Context, run config.Run, folder *data.Folder) (made, error) {
	s, err := sim.NewUntil(ctx, run, folder)
	if err != nil {
		return made{}, err
	}
	defer s.Close()
	for more := true; more; {
		if more, err = s.Step(); err != nil {
			return made{}, err
		}
	}
	res, err := s.Result()
	if err != nil {
		return made{}, err
	}
	if run.Judge.By != "clients" && res.Metrics.Error != nil {
		return made{"error", *res.Metrics.Error, res.Privacy}, nil
	}
	return made{"loss", res.Metrics.Loss, res.Privacy}, nil
}
