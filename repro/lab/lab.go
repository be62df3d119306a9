package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	_ "github.com/coterie-fl/coterie/all" // runs on any data, with any method and protection
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep/cells"
	"github.com/coterie-fl/coterie/sweep/inputs"
)

// Lab runs the cells of an experiment and remembers each: a stop loses at most
// the cells under way.
type Lab struct {
	Options                 // Seeds is how many there are
	Context context.Context // of all runs: whoever calls them off ends it
	Folder  *data.Folder    // real data

	id          string // of the experiment
	timed       bool   // its cells hold times
	needs       []string
	cells       string // folder
	began       time.Time
	onProcessor string // why everything is, although a device was asked for if there is one

	mu          sync.Mutex
	done, total int
	origins     map[string]int // cells by what computed them
	committed   float64        // seconds of cells that came with the program
	before      int            // cells that CellsOf made
	sources     *sources       // of the cell that is being made; nil: this is not its lab
	told        time.Time      // when the standing was written last

	busy   chan struct{} // cores that jobs of All are on; nil: none are
	post   *inputs.Post  // sends files to where cells are made; nil: they are made here
	replay *replay       // that cells are made for, on a worker; nil: this is no worker
	keep   sim.Keeper    // of the cell that is being made; nil: nobody keeps checkpoints
}

// Resolve applies the caller's --set and --device to a run and checks it whole.
func (l *Lab) Resolve(run config.Run) (config.Run, error) {
	text, err := run.Encode()
	if err != nil {
		return run, err
	}
	set := l.Set
	if l.Device != "" {
		set = append(slices.Clone(set), "run.device="+l.Device)
	}
	return config.Resolve(text, set, sim.Checks()...)
}

// Grid runs every configuration with every seed and returns the cells by
// configuration, in seed order.
func Grid[C any](l *Lab, runs []config.Run, simulate func(*Lab, config.Run) (C, error)) ([][]C, error) {
	out := make([][]C, len(runs))
	var jobs []func() error
	for i, run := range runs {
		run, err := l.Resolve(run)
		if err != nil {
			return nil, err
		}
		out[i] = make([]C, l.Seeds)
		for s := range out[i] {
			one := run
			one.Seed = uint64(s + 1)
			one.Run.Workers = 1 // of its key: how many there are changes no result
			jobs = append(jobs, func() error {
				return l.Remember([]any{l.id, one}, &out[i][s], func(l *Lab) (any, error) {
					run := one
					run.Run.Workers = l.Share()
					return simulate(l, run)
				})
			})
		}
	}
	return out, l.All(jobs)
}

// Share is how many cores a cell has: cells are what is spread over them, and if fewer are
// made at a time than there are cores, each has several.
func (l *Lab) Share() int {
	return max(1, runtime.GOMAXPROCS(0)/cmp.Or(l.Workers, runtime.GOMAXPROCS(0)))
}

// Table is a Grid whose cells are found by what their runs are made of.
func Table[K comparable, C any](l *Lab, keys []K, run func(K) config.Run, simulate func(*Lab, config.Run) (C, error)) (map[K][]C, error) {
	runs := make([]config.Run, len(keys))
	for i, key := range keys {
		runs[i] = run(key)
	}
	cells, err := Grid(l, runs, simulate)
	out := make(map[K][]C)
	for i, of := range cells {
		out[keys[i]] = of
	}
	return out, err
}

// Result makes one run in memory and returns what came of it.
func (l *Lab) Result(run config.Run) (sim.Result, error) {
	s, err := l.Finish(run)
	if err != nil {
		return sim.Result{}, err
	}
	defer s.Close()
	return s.Result()
}

// Unprotected makes a run without noise of one with, to compare with: clients choose
// their cluster in the open, too.
func Unprotected(run *config.Run) {
	run.Privacy.Protects, run.Privacy.Epsilon, run.Privacy.NoiseMultiplier = "nothing", 0, 0
	if run.Algorithm.Selection.Rule == "private" {
		run.Algorithm.Selection.Rule = "best"
	}
}

// WithNoise sets the noise of updates; at 0 nothing is protected.
func WithNoise(run *config.Run, nu float64) {
	if run.Privacy.NoiseMultiplier = nu; nu == 0 {
		Unprotected(run)
	}
}

// Remember fills into from the cell's file, or has the cell made and writes it. The key is
// everything that the result depends on. After Options.For no cell is made: what is missing
// then is an interruption. Compute is given a lab that is the cell's own.
func (l *Lab) Remember(key any, into any, compute func(l *Lab) (any, error)) error {
	inTime := func() (any, error) {
		if l.over() {
			return nil, fmt.Errorf("%w: the time of --for is over", sim.ErrInterrupted)
		}
		return l.compute(compute)
	}
	var found cell
	err := l.made(key, inTime, func(c cells.Cell, runner cells.Runner) error {
		if taken, err := l.taken(key, &found); taken || err != nil {
			return err
		}
		return cells.Book{Folder: l.cells, Version: l.Version, Runner: runner}.Remember(l.Context, c, &found)
	}, &found)
	if err != nil {
		return err
	}
	l.noteOrigin(found.Origin)
	return json.Unmarshal(found.Value, into)
}

// taken fills into from the file of a cell that an earlier program made, if the caller takes
// its cells.
func (l *Lab) taken(key any, into *cell) (bool, error) {
	if l.CellsOf == "" {
		return false, nil
	}
	if own, err := (cells.Book{Folder: l.cells, Version: l.Version}).Recall(key, into); own || err != nil {
		return own, err
	}
	found, err := cells.Book{Folder: l.cells, Version: l.CellsOf}.Recall(key, into)
	if found {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.before++
	}
	return found, err
}

// made has a cell taken up by whoever remembers it, or made. On a worker it is one that was
// asked for, or is not made.
func (l *Lab) made(key any, compute func() (any, error), take func(cells.Cell, cells.Runner) error, into any) error {
	if l.replay != nil {
		return l.replay.meet(key, compute, into)
	}
	c := cells.Cell{Key: key, Varies: l.timed || l.onDevice(), Make: func(context.Context) (any, error) { return compute() }}
	busy := l.busy
	if l.post == nil || busy == nil {
		return take(c, cells.Here{})
	}
	c.Kind = experimentKind
	c.Order = func(ctx context.Context) (cells.Order, error) { return l.order(ctx, key) }
	<-busy // whoever waits for others needs no core
	defer func() { busy <- struct{}{} }()
	return take(c, l.Runner)
}

// All does the jobs on every core and stops at the first error.
func (l *Lab) All(jobs []func() error) error {
	l.mu.Lock()
	l.total += len(jobs)
	if l.replay == nil {
		l.tell(0)
	}
	l.mu.Unlock()
	if l.replay != nil {
		return l.replay.all(jobs)
	}
	failed, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	busy := make(chan struct{}, cmp.Or(l.Workers, runtime.GOMAXPROCS(0)))
	if !l.Alone {
		l.busy = busy
		defer func() { l.busy = nil }()
	}
	var wg sync.WaitGroup
	var lost []error
	for _, job := range jobs {
		select {
		case busy <- struct{}{}:
		case <-l.Context.Done():
		}
		if err := l.Context.Err(); err != nil {
			fail(err)
		}
		if failed.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-busy }()
			err := job()
			l.mu.Lock()
			defer l.mu.Unlock()
			switch {
			case errors.Is(err, cells.ErrFailed): // on workers: it stops no other
				lost = append(lost, err)
			case err != nil:
				fail(err)
			default:
				l.done++
				l.Tick(l.done, l.total)
				l.tell(toldEvery)
			}
		})
	}
	l.wait(&wg)
	err := context.Cause(failed)
	l.mu.Lock()
	defer l.mu.Unlock()
	left := err == nil && l.Context.Err() != nil && l.done < l.total
	if left || errors.Is(err, context.Canceled) || errors.Is(err, sim.ErrInterrupted) {
		return fmt.Errorf("%w after %d of %d cells; the same command goes on from there", sim.ErrInterrupted, l.done, l.total)
	}
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%d of %d cells failed; the others are made and kept, and the same command tries those again: %w", len(lost), l.total, lost[0])
	}
	return err
}

// toldEvery is how long whoever looks at the folder waits for news at least.
const toldEvery = 200 * time.Millisecond

// tell writes how far the study is, unless that was done a moment ago. Whoever calls it
// holds the lock. A standing that cannot be written harms nothing: results are elsewhere.
func (l *Lab) tell(least time.Duration) {
	if l.Out == "" || time.Since(l.told) < least && l.done < l.total {
		return
	}
	l.told = time.Now()
	_ = cells.Standing{Done: l.done, Total: l.total}.Write(l.Out)
}

// patience is how long cells under way are waited for once the experiment was called off:
// simulations end within it. What cannot be stopped is left behind, and its cell unwritten
// if the program ends.
const patience = 500 * time.Millisecond

func (l *Lab) wait(wg *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-l.Context.Done():
	}
	select {
	case <-done:
	case <-time.After(patience):
	}
}
