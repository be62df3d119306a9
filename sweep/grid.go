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

// Result is a sweep over a grid: what `coterie sweep` prints. Tuning is not charged.
type Result struct {
	Name   string        `json:"name"`
	Tuning string        `json:"tuning"` // not charged
	Metric string        `json:"metric"` // lower is better
	Runs   int           `json:"runs"`
	Points []PointResult `json:"points"`
	Best   int           `json:"best"` // index of the lowest mean
	// Privacy is what one run of the best point promises. All the runs together
	// promise less.
	Privacy fl.Privacy `json:"privacy"`
	Says    []string   `json:"says"`
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

// NotCharged is what every free sweep says.
const NotCharged = "tuning: not charged"

// Run makes every run of the grid; those that an earlier call finished are kept.
func (p *Plan) Run(ctx context.Context, o Options) (Result, error) {
	if err := os.MkdirAll(filepath.Join(o.Out, "cells"), 0o755); err != nil {
		return Result{}, fmt.Errorf("sweep: %w", err)
	}
	o.Folder = o.Folder.Keeping()
	cells := make([]made, len(p.Points)*p.Seeds)
	err := each(ctx, o, len(cells), func(i int) error {
		run := p.Points[i/p.Seeds].Run
		run.Seed += uint64(i % p.Seeds)
		run.Run.Workers = 1 // runs are what is spread over the cores
		return o.remember(ctx, run, &cells[i])
	})
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Name: p.Name, Tuning: "not charged", Runs: len(cells), Metric: cells[0].Metric,
		Says: []string{
			NotCharged + ": choosing by these figures tells of the examples that they were measured on, and every run was a release of its own",
			fmt.Sprintf("%d runs were made; the privacy of one is what is printed", len(cells)),
		},
	}
	best := math.Inf(1)
	for i, point := range p.Points {
		one := summarise(point, cells[i*p.Seeds:(i+1)*p.Seeds])
		r.Points = append(r.Points, one)
		if float64(one.Mean) < best {
			best, r.Best = float64(one.Mean), i
		}
	}
	r.Privacy = cells[r.Best*p.Seeds].Privacy
	return r, nil
}

func summarise(point Point, cells []made) PointResult {
	out := PointResult{Settings: map[string]string{}}
	for _, s := range point.Settings {
		out.Settings[s.Path] = s.Value
	}
	var sum, squares float64
	for _, c := range cells {
		out.Values = append(out.Values, c.Value)
		sum += float64(c.Value)
	}
	mean := sum / float64(len(cells))
	for _, c := range cells {
		squares += (float64(c.Value) - mean) * (float64(c.Value) - mean)
	}
	out.Mean = event.Number(mean)
	if len(cells) > 1 {
		out.SD = event.Number(math.Sqrt(squares / float64(len(cells)-1)))
	}
	return out
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

// remember reads a run's cell, or makes it. The key is all that a result depends on.
func (o Options) remember(ctx context.Context, run config.Run, into *made) error {
	key, err := json.Marshal(struct {
		Version string
		Run     config.Run
	}{o.Version, run})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(key)
	path := filepath.Join(o.Out, "cells", hex.EncodeToString(sum[:12])+".json")
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
	if run.Judge.By == "own" && res.Metrics.Error != nil {
		return made{"error", *res.Metrics.Error, res.Privacy}, nil
	}
	return made{"loss", res.Metrics.Loss, res.Privacy}, nil
}
