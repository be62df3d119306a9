package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/sweep/cells"
)

// Record is a finished cell as a line of a file: what it is, what came of it, and by which
// program, when and in how long. Cells that take minutes are kept so, and committed, for
// tables that take longer than anyone waits.
type Record[K comparable, V any] struct {
	Key     K      `json:"key"` // everything that the value depends on
	Value   V      `json:"value"`
	Date    string `json:"date"`
	Version string `json:"version"` // of the program: names its commit
	Origin
	Seconds float64 `json:"seconds"`
}

// Fill returns the finished cells among keys: of the committed lines, of the file name in
// the experiment's folder, and what it computes of the others, in the order of keys, as
// long as Options.For lets it: what is under way then goes on with the next command. Every
// cell is a line of the file as soon as it is finished. Compute is given the cell's own lab.
func Fill[K comparable, V any](l *Lab, name string, committed []byte, keys []K, compute func(*Lab, K) (V, error)) (map[K]Record[K, V], error) {
	finished := map[K]Record[K, V]{}
	if !l.Anew {
		if err := readRecords(finished, "the committed "+name, committed); err != nil {
			return nil, err
		}
		counted := map[K]bool{}
		for _, key := range keys {
			if !counted[key] {
				counted[key], l.committed = true, l.committed+finished[key].Seconds
			}
		}
	}
	path := filepath.Join(l.Out, name)
	lines, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := lines[:bytes.LastIndexByte(lines, '\n')+1] // a kill may have cut the last line
	if err := readRecords(finished, path, whole); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := file.Truncate(int64(len(whole))); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, 2); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var jobs []func() error
	asked := map[K]bool{}
	for _, key := range keys {
		if _, ok := finished[key]; ok || asked[key] {
			continue
		}
		asked[key] = true
		jobs = append(jobs, func() error {
			if l.over() {
				return nil
			}
			began := time.Now()
			var found cell
			alone := func() (any, error) {
				return l.compute(func(l *Lab) (any, error) { return compute(l, key) })
			}
			err := l.made(key, alone, func(c cells.Cell, runner cells.Runner) error {
				text, err := runner.Make(l.Context, c)
				if err != nil {
					return err
				}
				return json.Unmarshal(text, &found)
			}, &found)
			if l.outOfTime(err) {
				return nil
			}
			record := Record[K, V]{Key: key, Date: began.UTC().Format(time.DateOnly), Version: l.Version, Origin: found.Origin, Seconds: time.Since(began).Seconds()}
			if err == nil {
				err = json.Unmarshal(found.Value, &record.Value)
			}
			if err != nil {
				return fmt.Errorf("cell %v: %w", key, err)
			}
			line, err := json.Marshal(record)
			if err != nil {
				return fmt.Errorf("cell %v: %w", key, err)
			}
			mu.Lock()
			defer mu.Unlock()
			finished[key] = record
			_, err = file.Write(append(line, '\n'))
			return err
		})
	}
	if err := l.All(jobs); err != nil {
		return nil, err
	}
	for _, r := range finished { // also of other scales: pages show them
		l.noteOrigin(r.Origin)
	}
	return finished, nil
}

// over says whether no further cell may be begun.
func (l *Lab) over() bool { return l.For > 0 && time.Since(l.began) >= l.For }

// readRecords takes up lines; of two with one key the later counts.
func readRecords[K comparable, V any](into map[K]Record[K, V], where string, lines []byte) error {
	number := 0
	for line := range bytes.Lines(lines) {
		number++
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		var r Record[K, V]
		if err := dec.Decode(&r); err != nil {
			return fmt.Errorf("%s, line %d is no finished cell: %w; take the line out to have the cell computed again", where, number, err)
		}
		into[r.Key] = r
	}
	return nil
}

// Progress says how many of the keys are finished, when and by which program they were made.
func Progress[K comparable, V any](finished map[K]Record[K, V], keys []K) string {
	made, n := map[string]int{}, 0
	for _, k := range keys {
		if r, ok := finished[k]; ok {
			n++
			made[r.Date+" by "+r.Version]++
		}
	}
	text := fmt.Sprintf("%d of %d cells of this scale are finished", n, len(keys))
	for _, when := range slices.Sorted(maps.Keys(made)) {
		text += fmt.Sprintf("; %d on %s", made[when], when)
	}
	if n < len(keys) {
		text += "; the same command goes on with the others"
	}
	return text + "."
}
