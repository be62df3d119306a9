package sweep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/sim"
)

// finished are the results that earlier calls left in the folder of a repeated run, by seed.
// All of them are held against what is asked, those of other seeds, too: whoever looks at the
// folder takes it for one run file on one content of the data.
func (o Options) finished(ctx context.Context, run config.Run, on *digests, load func(dir string) (sim.Result, error)) (map[uint64]sim.Result, error) {
	seeds, err := seedsIn(o.Out)
	if err != nil {
		return nil, err
	}
	results := make([]sim.Result, len(seeds))
	if err := o.spread(ctx, len(seeds), "finished seeds were looked at", func(i int) (err error) {
		one, dir := run, SeedFolder(o.Out, seeds[i])
		one.Seed = seeds[i]
		if results[i], err = load(dir); err == nil {
			err = isOf(dir, results[i], one)
		}
		if err == nil && !drawn(one) {
			err = on.sameIn(ctx, dir, one)
		}
		if err != nil {
			err = fmt.Errorf("%w; give another --out, or remove %s to make that seed again", err, dir)
		}
		return err
	}); err != nil {
		return nil, err
	}
	found := map[uint64]sim.Result{}
	for i, seed := range seeds {
		found[seed] = results[i]
	}
	return found, nil
}

// seedsIn are the seeds that have a result in a folder.
func seedsIn(out string) (seeds []uint64, err error) {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for finished seeds: %w", err)
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "seed-")
		seed, err := strconv.ParseUint(digits, 10, 64)
		if !ok || err != nil || SeedFolder(out, seed) != filepath.Join(out, e.Name()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(out, e.Name(), sim.ResultFile)); err == nil {
			seeds = append(seeds, seed)
		}
	}
	return seeds, nil
}

// isOf refuses a result of another run file or seed.
func isOf(dir string, res sim.Result, asked config.Run) error {
	hash, err := asked.Hash()
	switch {
	case err != nil:
		return err
	case res.ConfigSHA256 != hash:
		return fmt.Errorf("%s holds the result of another run file: %s", dir, difference(res, asked, hash))
	case res.Seed != asked.Seed:
		return fmt.Errorf("%s holds the result of seed %d", dir, res.Seed)
	}
	return nil
}

// difference is the first line in which a result's run file is not the one that is asked for.
func difference(res sim.Result, asked config.Run, hash string) string {
	there, err := config.Resolve([]byte(res.Config), nil)
	there.Name, there.Seed, there.Run = asked.Name, asked.Seed, asked.Run // change no result
	mine, wrong := asked.Encode()
	theirs, alsoWrong := there.Encode()
	if err == nil && wrong == nil && alsoWrong == nil {
		want := strings.Split(string(mine), "\n")
		for i, line := range strings.Split(string(theirs), "\n") {
			if i < len(want) && line != want[i] {
				return fmt.Sprintf("it has %q where %q is asked for", strings.TrimSpace(line), strings.TrimSpace(want[i]))
			}
		}
	}
	return fmt.Sprintf("its config_sha256 is %.12s, and that of the one asked for %.12s", res.ConfigSHA256, hash)
}

// sameIn refuses a folder whose run was made on other data than a run would be now.
func (d *digests) sameIn(ctx context.Context, dir string, run config.Run) error {
	digest, err := d.of(ctx, run)
	if err != nil {
		return err
	}
	return sim.SameData(dir, digest)
}

// noting reads the data of a run that is yet to be made, and returns what writes into its
// folder which they were: if they are changed meanwhile, the run is not taken up again.
func (d *digests) noting(ctx context.Context, run config.Run) (note func(dir string) error, err error) {
	if drawn(run) {
		return func(string) error { return nil }, nil
	}
	digest, err := d.of(ctx, run)
	return func(dir string) error { return sim.NoteData(dir, digest) }, err
}
