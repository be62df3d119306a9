package repro

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/sim"
)

// lab runs the cells of an experiment and remembers each: a stop loses at most
// the cells under way.
type lab struct {
	ctx     context.Context
	options Options
	seeds   int
	folder  *data.Folder
	cells   string  // folder
	before  float64 // seconds spent on remembered cells

	mu          sync.Mutex
	done, total int
}

// cell is one run of a simulation, boiled down.
type cell struct {
	Seconds    float64       `json:"seconds"`
	Validation event.Number  `json:"validation"`
	Accuracy   *event.Number `json:"accuracy"`
	Honest     *event.Number `json:"honest"`
	Worst      *event.Number `json:"worst"`
	Median     event.Number  `json:"median_epsilon"`
	Max        event.Number  `json:"max_epsilon"`
	AnyUpdate  *event.Number `json:"any_update"`
	Switch     *event.Number `json:"switch"`
	Rounds     int           `json:"rounds"`
	// Budgets is how many clients spent so much, in ascending order.
	Budgets []budget `json:"budgets"`
}

type budget struct {
	Epsilon event.Number `json:"epsilon"`
	Clients int          `json:"clients"`
}

// checks are those of a run file.
func checks() []func(config.Run) config.Faults { return sim.Checks() }

// grid runs every configuration with every seed and returns the cells by
// configuration, in seed order.
func (l *lab) grid(runs []config.Run) ([][]cell, error) {
	out := make([][]cell, len(runs))
	var jobs []func() error
	for i, run := range runs {
		run, err := l.resolve(run)
		if err != nil {
			return nil, err
		}
		out[i] = make([]cell, l.seeds)
		for s := range l.seeds {
			jobs = append(jobs, func() error {
				one := run
				one.Seed = uint64(s + 1)
				one.Run.Workers = 1 // cells are what is spread over the cores
				return l.remember(one, &out[i][s], func() (any, error) { return l.simulate(one) })
			})
		}
	}
	return out, l.all(jobs)
}

// finish makes one run in memory, to its end. The caller closes it.
func (l *lab) finish(run config.Run) (*sim.Simulation, error) {
	s, err := sim.New(run, l.folder)
	if err != nil {
		return nil, err
	}
	for {
		more, err := s.Step()
		if err == nil {
			err = l.ctx.Err()
		}
		if err != nil {
			s.Close()
			return nil, err
		}
		if !more {
			return s, nil
		}
	}
}

// simulate boils one run down.
func (l *lab) simulate(run config.Run) (cell, error) {
	s, err := l.finish(run)
	if err != nil {
		return cell{}, err
	}
	defer s.Close()
	res, err := s.Result()
	if err != nil {
		return cell{}, err
	}
	p := res.Privacy
	return cell{
		Validation: res.Metrics.ValidationLoss, Accuracy: res.Metrics.Accuracy, Honest: res.Metrics.HonestLoss, Worst: res.Metrics.WorstDistance, Rounds: res.Rounds,
		Median: p.MedianEpsilon, Max: p.MaxEpsilon, AnyUpdate: p.EpsilonAnyUpdate, Switch: p.EpsilonSwitch,
		Budgets: countBudgets(res.History.Budgets),
	}, nil
}

func countBudgets(all []event.Number) []budget {
	slices.Sort(all)
	var out []budget
	for _, e := range all {
		if n := len(out); n > 0 && out[n-1].Epsilon == e {
			out[n-1].Clients++
			continue
		}
		out = append(out, budget{e, 1})
	}
	return out
}

// remember fills into from the cell's file, or computes and writes it. The key is
// everything that the result depends on.
func (l *lab) remember(key any, into any, compute func() (any, error)) error {
	text, err := json.Marshal(struct {
		Version string
		Key     any
	}{l.options.Version, key})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	path := filepath.Join(l.cells, hex.EncodeToString(sum[:12])+".json")
	stored, err := os.ReadFile(path)
	if err == nil && json.Unmarshal(stored, into) == nil {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	value, err := compute()
	if err != nil {
		return err
	}
	if stored, err = json.Marshal(value); err != nil {
		return err
	}
	if err := json.Unmarshal(stored, into); err != nil {
		return err
	}
	return sim.WriteFile(path, append(stored, '\n'))
}

// all does the jobs on every core and stops at the first error.
func (l *lab) all(jobs []func() error) error {
	l.mu.Lock()
	l.total += len(jobs)
	l.mu.Unlock()
	workers := l.options.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan func() error)
	errs := make(chan error, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for job := range next {
				if err := job(); err != nil {
					errs <- err
					return
				}
				l.mu.Lock()
				l.done++
				l.options.Tick(l.done, l.total)
				l.mu.Unlock()
			}
		})
	}
	var first error
feed:
	for _, job := range jobs {
		select {
		case next <- job:
		case first = <-errs:
			break feed
		case <-l.ctx.Done():
			first = l.ctx.Err()
			break feed
		}
	}
	close(next)
	wg.Wait()
	if first == nil {
		select {
		case first = <-errs:
		default:
		}
	}
	if errors.Is(first, context.Canceled) {
		return fmt.Errorf("%w after %d of %d cells; the same command goes on from there", sim.ErrInterrupted, l.done, l.total)
	}
	return first
}
