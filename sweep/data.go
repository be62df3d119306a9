package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/internal/pool"
	"github.com/coterie-fl/coterie/sim"
)

// digests are those of the data of runs, by sim.DataKey: each is read and hashed once.
type digests struct {
	folder *data.Folder
	mu     sync.Mutex
	known  map[string]func() (data.Digest, error)
}

// drawn says that a run's data follow from its run file, so that they cannot change.
func drawn(run config.Run) bool {
	kind, err := data.KindOf(run.Data)
	return err == nil && kind.Drawn()
}

// of is the digest of a run's data. Reading is not waited for once ctx ends.
func (d *digests) of(ctx context.Context, run config.Run) (data.Digest, error) {
	key, err := sim.DataKey(run)
	if err != nil {
		return data.Digest{}, err
	}
	d.mu.Lock()
	once, ok := d.known[key]
	if !ok {
		if d.known == nil {
			d.known = map[string]func() (data.Digest, error){}
		}
		once = sync.OnceValues(func() (data.Digest, error) { return sim.DigestOf(run, d.folder) })
		d.known[key] = once
	}
	d.mu.Unlock()
	return pool.Await(ctx, once, func(data.Digest) {})
}

// notedData is what a sweep's folder says of the data that its cells were made on, by
// sim.DataKey: for their owner alone, as sim.FingerprintFile is.
type notedData struct {
	About string                      `json:"about"`
	Data  map[string]data.Fingerprint `json:"data"`
}

// note finds the fingerprints of the data of runs, by which their cells are told from those of
// other data, and writes them before the first cell is made. Cells on data that were changed
// since are not found again: it says so.
func (o Options) note(ctx context.Context, runs []config.Run) (map[string]data.Fingerprint, error) {
	asked := map[string]config.Run{}
	for _, run := range runs {
		if drawn(run) {
			continue
		}
		key, err := sim.DataKey(run)
		if err != nil {
			return nil, err
		}
		asked[key] = run
	}
	path := filepath.Join(o.Out, sim.FingerprintFile)
	noted, err := readNoted(path)
	if err != nil {
		return nil, err
	}
	if noted == nil && len(asked) > 0 {
		noted = map[string]data.Fingerprint{}
		if made, _ := os.ReadDir(filepath.Join(o.Out, "cells")); len(made) > 0 {
			o.say("%s has runs, but no %s that says which data they were made on (an earlier version made them, or somebody removed it): they are made anew", o.Out, sim.FingerprintFile)
		}
	}
	keys, all := slices.Sorted(maps.Keys(asked)), digests{folder: o.Folder}
	found := make([]data.Digest, len(keys))
	if err := o.spread(ctx, len(keys), "data were read", func(i int) (err error) {
		found[i], err = all.of(ctx, asked[keys[i]])
		return err
	}); err != nil {
		return nil, err
	}
	fresh, changed := false, ""
	for i, key := range keys {
		was, ok := noted[key]
		what := ""
		if ok {
			what = found[i].Changed(was)
		}
		if !ok || what != "" {
			noted[key], fresh = found[i].Fingerprint(), true
		}
		if changed == "" {
			changed = what
		}
	}
	if changed != "" {
		o.say("the data were changed since runs in %s were made (%s): runs on them are made anew", o.Out, changed)
	}
	if fresh {
		err = writeNoted(path, noted)
	}
	return noted, err
}

// readNoted reads the file of a sweep's folder; nil: there is none.
func readNoted(path string) (map[string]data.Fingerprint, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var noted notedData
	if err == nil {
		err = json.Unmarshal(text, &noted)
	}
	if err == nil && noted.Data == nil {
		err = errors.New("it names no data")
	}
	if err != nil {
		return nil, fmt.Errorf("%s, which says which data the runs beside it were made on, cannot be read: %w; remove it to make them anew", path, err)
	}
	return noted.Data, nil
}

func writeNoted(path string, noted map[string]data.Fingerprint) error {
	text, err := json.MarshalIndent(notedData{sim.AboutFingerprints, noted}, "", " ")
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(text, '\n'), 0o600)
}

// say tells whoever waits what was found.
func (o Options) say(format string, args ...any) {
	if o.Say != nil {
		o.Say(format, args...)
	}
}
