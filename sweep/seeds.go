package sweep

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep/cells"
	"github.com/coterie-fl/coterie/sweep/inputs"
)

// ParseSeeds reads seeds as a command line has them: 1..100, or 3,5,8.
func ParseSeeds(text string) ([]uint64, error) {
	const want = "want a range such as 1..100, or a list such as 3,5,8"
	var seeds []uint64
	known := map[uint64]bool{}
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "..")
		first, err := strconv.ParseUint(strings.TrimSpace(low), 10, 64)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(strings.TrimSpace(high), 10, 64)
		}
		if err != nil || last < first {
			return nil, fmt.Errorf("%w: --seeds %q: %s", config.ErrInvalid, text, want)
		}
		if last-first >= mostPoints {
			return nil, fmt.Errorf("%w: --seeds %q: more than %d", config.ErrInvalid, text, mostPoints)
		}
		for seed := first; ; seed++ {
			if !known[seed] {
				known[seed] = true
				seeds = append(seeds, seed)
			}
			if seed == last {
				break
			}
		}
	}
	return seeds, nil
}

// Repeated is one run file with many seeds: what `coterie run --seeds` prints.
type Repeated struct {
	Name   string       `json:"name"`
	Metric string       `json:"metric"` // lower is better
	Mean   event.Number `json:"mean"`
	SD     event.Number `json:"sd"` // over seeds
	Runs   []SeedRun    `json:"runs"`
	// Privacy is that of one run. Each seed is a run of its own: whoever makes them all on the
	// same people's data pays for each.
	Privacy fl.Privacy `json:"privacy"`
}

// SeedRun is the run of one seed.
type SeedRun struct {
	Seed        uint64       `json:"seed"`
	Value       event.Number `json:"value"`
	ModelSHA256 string       `json:"model_sha256"`
	Rounds      int          `json:"rounds"`
	Directory   string       `json:"directory"`
}

// SeedsFile holds what came of all seeds, in the folder of a repeated run.
const SeedsFile = "seeds.json"

// SeedFolder is where in the folder of a repeated run one seed's run lies.
func SeedFolder(out string, seed uint64) string {
	return filepath.Join(out, fmt.Sprintf("seed-%d", seed))
}

// Repeat makes a run with every seed, each in a folder of its own. Those that an earlier
// call finished are taken up by load, if they are of this run file and of the data as they are
// now; what a run leaves beside its models is written by leave, the result last.
func Repeat(ctx context.Context, run config.Run, seeds []uint64, o Options, load func(dir string) (sim.Result, error), leave func(dir string, res sim.Result) error) (Repeated, error) {
	if len(run.Judge.Compare) > 0 {
		return Repeated{}, fmt.Errorf("%w: judge.compare is %v, but runs of many seeds are not compared with other methods; leave it out, or make a sweep with algorithm.kind in its grid", config.ErrInvalid, run.Judge.Compare)
	}
	o.Folder = o.Folder.Keeping()
	on := &digests{folder: o.Folder}
	there, err := o.finished(ctx, run, on, load)
	if err != nil {
		return Repeated{}, err
	}
	results, post := make([]sim.Result, len(seeds)), o.post()
	err = each(ctx, o, len(seeds), func(i int) (err error) {
		one := run
		one.Seed = seeds[i]
		one.Run.Workers = 1 // runs are what is spread over the cores
		r := seedRun{run: one, dir: SeedFolder(o.Out, seeds[i]), o: o, post: post}
		finished := false
		if results[i], finished = there[seeds[i]]; finished {
			return nil
		}
		note, err := on.noting(ctx, one)
		if err != nil {
			return err
		}
		if results[i], err = r.make(ctx); err != nil {
			return err
		}
		if err := note(r.dir); err != nil {
			return err
		}
		return leave(r.dir, results[i])
	})
	if err != nil {
		return Repeated{}, err
	}
	r := Repeated{Name: run.Name, Privacy: results[0].Privacy}
	values := make([]float64, len(seeds))
	for i, res := range results {
		m := boilDown(run, res)
		values[i], r.Metric = float64(m.Value), m.Metric
		r.Runs = append(r.Runs, SeedRun{seeds[i], m.Value, res.ModelSHA256, res.Rounds, SeedFolder(o.Out, seeds[i])})
	}
	r.Mean, r.SD = meanAndSD(values)
	return r, nil
}

// seedKind is the kind of cells that are whole runs, with their models.
const seedKind = "run"

// seedRun is the run of one seed, in its folder.
type seedRun struct {
	run  config.Run
	dir  string
	o    Options
	post *inputs.Post
}

// leftBehind is what comes back of a run that was made elsewhere.
type leftBehind struct {
	Result sim.Result        `json:"result"`
	Files  map[string]string `json:"files"` // by name: hash, under which they lie in the store
}

// make makes the run here, or has it made and fetches what it left.
func (r seedRun) make(ctx context.Context) (sim.Result, error) {
	text, err := r.run.Encode()
	if err != nil {
		return sim.Result{}, err
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return sim.Result{}, fmt.Errorf("sweep: %w", err)
	}
	if err := sim.WriteFile(filepath.Join(r.dir, sim.RunFile), text); err != nil {
		return sim.Result{}, err
	}
	began := time.Now()
	made, err := r.o.runner().Make(ctx, r.cell())
	if err != nil {
		return sim.Result{}, err
	}
	var left leftBehind
	if err := json.Unmarshal(made, &left); err != nil {
		return sim.Result{}, fmt.Errorf("seed %d: its result is not understood: %w", r.run.Seed, err)
	}
	for name, hash := range left.Files {
		if err := r.fetch(ctx, name, hash); err != nil {
			return sim.Result{}, err
		}
	}
	res := left.Result
	res.WallSeconds, res.Name, res.Config = time.Since(began).Seconds(), r.run.Name, string(text)
	if res.Data != nil {
		res.Data.Source = cmp.Or(r.run.Data.Source.Path, r.run.Data.Source.Database, res.Data.Source)
	}
	res.ConfigSHA256, err = r.run.Hash()
	return res, errors.Join(err, r.removeCheckpoint())
}

func (r seedRun) removeCheckpoint() error {
	if err := os.Remove(filepath.Join(r.dir, sim.CheckpointFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r seedRun) fetch(ctx context.Context, name, hash string) error {
	store, ok := r.o.Runner.(cells.Sender)
	if !ok || filepath.Base(name) != name {
		return fmt.Errorf("seed %d: it left a file %q that cannot be fetched", r.run.Seed, name)
	}
	var content bytes.Buffer
	if err := store.Objects().Get(ctx, hash, &content); err != nil {
		return fmt.Errorf("seed %d: %s: %w", r.run.Seed, name, err)
	}
	return sim.WriteFile(filepath.Join(r.dir, name), content.Bytes())
}

func (r seedRun) cell() cells.Cell {
	return cells.Cell{
		Kind: seedKind, Varies: r.run.Privacy.Noise == fl.NoiseExact,
		Order: func(ctx context.Context) (cells.Order, error) {
			sent, err := r.post.Send(ctx, r.run, r.o.Folder)
			return cells.Order{Spec: sent, Identity: sent.Identity()}, err
		},
		Make: func(ctx context.Context) (any, error) {
			keep := file{filepath.Join(r.dir, sim.CheckpointFile), time.Duration(r.run.Run.CheckpointSeconds * float64(time.Second))}
			res, err := whole(ctx, r.run, r.o.Folder, keep, r.dir)
			return leftBehind{Result: res}, err
		},
	}
}

// whole makes a run and leaves its models in a folder.
func whole(ctx context.Context, run config.Run, folder *data.Folder, keep sim.Keeper, dir string) (sim.Result, error) {
	s, err := sim.Finish(ctx, run, folder, keep)
	if err != nil {
		return sim.Result{}, err
	}
	defer s.Close()
	return s.LeaveIn(dir)
}

// makeWhole makes a whole run on a worker. What its bytes could tell of the worker's own
// folders is left out: whoever asked for it knows better.
func makeWhole(ctx context.Context, cache *inputs.Cache, b cells.Bench, sent inputs.Sent) (any, error) {
	run, folder, err := cache.Receive(ctx, sent)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(cache.Folder, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	res, err := whole(ctx, run, folder, b.Keep, dir)
	if err != nil {
		return nil, err
	}
	res.Name, res.Config, res.ConfigSHA256 = "", "", ""
	if res.Data != nil && run.Data.Source != (config.Source{}) {
		res.Data.Source = ""
	}
	left := leftBehind{Result: res, Files: map[string]string{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		left.Files[f.Name()] = hex.EncodeToString(sum[:])
		if err := b.Objects.Put(ctx, bytes.NewReader(content), left.Files[f.Name()]); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// file keeps a run's checkpoint in a file.
type file struct {
	path  string
	every time.Duration
}

// Load reads it.
func (f file) Load(string) []byte {
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return nil
	}
	return raw
}

// Save replaces it. What cannot be written is not kept, as if the run had been stopped
// before.
func (f file) Save(_ string, _ int, write func(io.Writer) error) {
	_ = durable.Replace(f.path, 0o600, write)
}

// Every is the run file's.
func (f file) Every() time.Duration { return f.every }
