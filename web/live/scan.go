package live

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep"
)

// kind is what a folder holds.
type kind string

const (
	aRun        kind = "run"
	aSweep      kind = "sweep"
	ofSeeds     kind = "seeds"      // of coterie run --seeds: its runs are things, too
	aStudy      kind = "study"      // of coterie reproduce
	aFederation kind = "federation" // what coterie serve leaves
	aLedger     kind = "ledger"
	anIdentity  kind = "identity"
)

// thing is a folder that is shown.
type thing struct {
	id       string // path below the root, with slashes; "." is the root itself
	kind     kind
	finished bool
	changed  time.Time // the last sign of life
}

const (
	scanEvery = 500 * time.Millisecond // however many look
	deepest   = 3                      // folders below the root that things are looked for in
	settled   = 2 * time.Second        // a folder that changed this lately is read again: clocks of disks are coarse
	// quiet is after how long without a sign a run that has no result is taken to have ended.
	quiet = 15 * time.Second
)

// scanner finds what a folder holds. What has not changed is not read again, so that
// thousands of finished runs cost a look at each.
type scanner struct {
	path string
	root *os.Root // what is read is read through it

	mu    sync.Mutex
	last  time.Time
	known map[string]folder
	all   []thing
	fault error
}

// folder is what was found when one was read.
type folder struct {
	modified time.Time
	names    []string
	inside   []string // folders
	seen     bool     // in this scan
}

// things are all that is there now: what lives first, then what changed last.
func (s *scanner) things() ([]thing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() && time.Since(s.last) < scanEvery {
		return s.all, s.fault
	}
	s.last = time.Now()
	var found []thing
	s.fault = s.walk(".", 0, &found)
	if s.fault != nil {
		return s.all, s.fault
	}
	for name, f := range s.known {
		if !f.seen {
			delete(s.known, name)
			continue
		}
		f.seen = false
		s.known[name] = f
	}
	slices.SortFunc(found, func(a, b thing) int {
		if a.alive(s.last) != b.alive(s.last) {
			if a.alive(s.last) {
				return -1
			}
			return 1
		}
		if a.alive(s.last) { // they change all the time: their places do not
			return cmp.Compare(a.id, b.id)
		}
		return cmp.Or(b.changed.Compare(a.changed), cmp.Compare(a.id, b.id))
	})
	s.all = found
	return s.all, nil
}

func (t thing) alive(now time.Time) bool { return !t.finished && now.Sub(t.changed) < quiet }

// walk looks at a folder and at those in it. One that vanishes meanwhile was not there.
func (s *scanner) walk(name string, depth int, found *[]thing) error {
	f, err := s.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && depth > 0, errors.Is(err, fs.ErrPermission) && depth > 0:
		return nil
	case err != nil:
		return fmt.Errorf("look into the folder: %w", err)
	}
	if t, ok := s.classify(name, f); ok {
		*found = append(*found, t)
		return nil
	}
	if depth == deepest {
		return nil
	}
	if runs := seedsOf(f); len(runs) > 1 {
		t := thing{id: name, kind: ofSeeds, changed: f.modified, finished: f.has(seedsFile)}
		for _, one := range runs {
			s.sign(&t, path.Join(one, sim.ProgressFile))
		}
		*found = append(*found, t)
	}
	for _, inside := range f.inside {
		if err := s.walk(path.Join(name, inside), depth+1, found); err != nil {
			return err
		}
	}
	return nil
}

// read is a folder as it is, or as it was when it last changed.
func (s *scanner) read(name string) (folder, error) {
	info, err := os.Lstat(filepath.Join(s.path, name))
	if err != nil {
		return folder{}, err
	}
	if !info.IsDir() {
		return folder{}, fs.ErrNotExist
	}
	f, ok := s.known[name]
	if !ok || !f.modified.Equal(info.ModTime()) || s.last.Sub(f.modified) < settled {
		f = folder{modified: info.ModTime()}
		open, err := s.root.Open(name)
		if err != nil {
			return folder{}, err
		}
		defer open.Close()
		entries, err := open.ReadDir(-1)
		if err != nil {
			return folder{}, err
		}
		for _, e := range entries {
			switch {
			case strings.HasPrefix(e.Name(), "."): // being written
			case e.IsDir():
				f.inside = append(f.inside, e.Name())
			case e.Type().IsRegular():
				f.names = append(f.names, e.Name())
			}
		}
		slices.Sort(f.inside)
	}
	f.seen = true
	s.known[name] = f
	return f, nil
}

func (f folder) has(name string) bool { return slices.Contains(f.names, name) }

// classify says what a folder is, by what is in it.
func (s *scanner) classify(name string, f folder) (thing, bool) {
	t := thing{id: name, changed: f.modified}
	running := f.has(sim.CheckpointFile) || f.has(sim.ProgressFile)
	switch {
	case f.has(sim.RunFile) && (running || f.has(sim.ResultFile) || len(f.names)+len(f.inside) == 1):
		t.kind, t.finished = aRun, f.has(sim.ResultFile)
		if !t.finished {
			s.sign(&t, sim.ProgressFile)
		}
	case f.has(sim.ResultFile):
		t.kind, t.finished = aFederation, true
	// A crew's file is replaced every few seconds, which changes the folder of its thing.
	case f.has(sweep.ResultFile) || f.has(sweep.PlanFile):
		t.kind, t.finished = aSweep, f.has(sweep.ResultFile) && !s.written(name, sweep.PlanFile).After(s.written(name, sweep.ResultFile))
		s.sign(&t, cellsFolder)
	case slices.Contains(f.inside, cellsFolder):
		t.kind, t.finished = aStudy, f.has(sim.ReportFile)
		s.sign(&t, cellsFolder)
	case f.has("ledger.log"):
		t.kind, t.finished = aLedger, true
		s.sign(&t, "ledger.log")
	case f.has("identity.json"):
		t.kind, t.finished = anIdentity, true
	default:
		return t, false
	}
	return t, true
}

// seedsFile is there when all seeds have ended.
const seedsFile = "seeds.json"

// cellsFolder is where sweeps and studies keep what is done.
const cellsFolder = "cells"

// written is when a file was; the zero time: it is not there.
func (s *scanner) written(folder, file string) time.Time {
	info, err := os.Lstat(filepath.Join(s.path, folder, file))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// sign moves a thing's last change to that of a file in it.
func (s *scanner) sign(t *thing, file string) {
	if at := s.written(t.id, file); at.After(t.changed) {
		t.changed = at
	}
}
