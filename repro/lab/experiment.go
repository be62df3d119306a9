// Package lab runs experiments: cells that are remembered, expected figures, rows that compare.
package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sweep/cells"
	"github.com/coterie-fl/coterie/sweep/inputs"
)

// The scales of an experiment.
const (
	Smoke = "smoke" // seconds, for tests
	Quick = "quick" // at most two minutes on two cores, five for long tables
	Full  = "full"  // what the paper did, or more
	Grids = "grids" // every cell of tables whose best cells alone are full
)

// Experiment is a table or figure of the papers.
type Experiment struct {
	ID     string                            `json:"id"`
	Title  string                            `json:"title"`
	Paper  string                            `json:"paper"`
	Needs  []string                          `json:"needs"` // folders of real data
	Quick  string                            `json:"quick"` // about how long, on two cores
	Full   string                            `json:"full"`
	Seeds  map[string]int                    `json:"-"` // by scale
	Timed  bool                              `json:"-"` // cells hold times: made twice they differ
	Device bool                              `json:"-"` // has runs that a device may compute
	Launch func(l *Lab) (study.Study, error) `json:"-"`
}

// Options say how an experiment is run.
type Options struct {
	Scale   string
	Seeds   int           // 0: as the scale says
	Set     []string      // path=value, applied to every run
	Out     string        // folder for cells and report
	Data    string        // folder of real data
	Device  string        // run.device of every run: auto, cpu, cuda or cuda:n; empty: cpu
	Workers int           // cells at the same time; 0: one a core
	For     time.Duration // no cell of a long table is begun after it; 0: all are made
	Anew    bool          // committed cells of long tables are made again
	Version string
	CellsOf string // version of an earlier program whose cells in Out are taken as one's own; empty: none
	Tick    func(done, total int)
	Runner  cells.Runner // who makes cells; nil: this process
	Alone   bool         // cells are made in this process, whoever else could
}

// ErrUnknown means that there is no such experiment or scale.
var ErrUnknown = fmt.Errorf("not known")

// New prepares what is left of an experiment after a stop, or all of it.
func New(ctx context.Context, e Experiment, o Options) (l *Lab, err error) {
	seeds, ok := e.Seeds[o.Scale]
	if !ok {
		return nil, fmt.Errorf("scale %q: %w; allowed: %s", o.Scale, ErrUnknown, strings.Join(e.scales(), ", "))
	}
	if o.Seeds <= 0 {
		o.Seeds = seeds
	}
	var why string
	if o.Device, why, err = e.device(o.Device); err != nil {
		return nil, err
	}
	folder := data.NewFolder(o.Data)
	if err := folder.Has(e.Needs...); err != nil {
		return nil, fmt.Errorf("reproduce %s: %w", e.ID, err)
	}
	l = &Lab{Options: o, onProcessor: why, id: e.ID, timed: e.Timed, needs: e.Needs, Context: ctx, Folder: folder, cells: filepath.Join(o.Out, "cells"), began: time.Now()}
	if s, ok := o.Runner.(cells.Sender); ok {
		l.post = &inputs.Post{Store: s.Objects()}
	}
	if err := os.MkdirAll(l.cells, 0o755); err != nil {
		return nil, fmt.Errorf("reproduce %s: %w", e.ID, err)
	}
	return l, nil
}

var errNoDevice = errors.New("it has no run that a device computes")

// deviceNames are what --device may be.
var deviceNames = regexp.MustCompile(`^(cpu|auto|cuda(:[0-9]+)?)?$`)

// device is what the experiment's runs have as run.device; empty: nothing. Auto is the
// processor where no device can help, and why says so.
func (e Experiment) device(asked string) (name, why string, err error) {
	switch {
	case !deviceNames.MatchString(asked):
		return "", "", fmt.Errorf("--device %q: %w; allowed: cpu, cuda, cuda:n, auto", asked, ErrUnknown)
	case asked == "" || asked == "cpu":
		return "", "", nil
	case !e.Device && asked == "auto":
		return "", fmt.Sprintf("the processor, although --device is auto: %v", errNoDevice), nil
	case !e.Device:
		return "", "", fmt.Errorf("reproduce %s, --device %s: %w; allowed: cpu, auto", e.ID, asked, errNoDevice)
	}
	return asked, "", nil
}

// onDevice says that runs ask for a device, or for one if there is any.
func (l *Lab) onDevice() bool { return l.Device != "" }

// scales are those that the experiment has, from the smallest on.
func (e Experiment) scales() (names []string) {
	for _, name := range []string{Smoke, Quick, Full, Grids} {
		if _, ok := e.Seeds[name]; ok {
			names = append(names, name)
		}
	}
	return names
}

// Run makes an experiment, or what is left of it after a stop, and writes its
// report.
func (e Experiment) Run(ctx context.Context, o Options) (study.Study, error) {
	l, err := New(ctx, e, o)
	if err != nil {
		return study.Study{}, err
	}
	began, before := time.Now(), CPUSeconds()
	s, err := e.Launch(l)
	if err != nil {
		return study.Study{}, fmt.Errorf("reproduce %s: %w", e.ID, err)
	}
	s.ID, s.Title, s.Paper, s.Scale, s.Seeds = e.ID, e.Title, e.Paper, l.Scale, l.Seeds
	s.Seconds = time.Since(began).Seconds()
	s.Command = fmt.Sprintf("coterie reproduce %s --scale %s --seeds %d", e.ID, l.Scale, l.Seeds)
	for _, set := range o.Set {
		s.Command += " --set " + set
	}
	if l.onDevice() {
		s.Command += " --device " + l.Device
	}
	s.Devices = l.computedBy()
	if l.before > 0 {
		s.Command += " --cells-of " + l.CellsOf
		s.CellsOf, s.Devices = l.CellsOf, append(s.Devices, fmt.Sprintf("%d cells: an earlier program, %s, whose cells were taken", l.before, l.CellsOf))
	}
	if l.CellsOf != "" && l.before == 0 {
		s.Caveats = append(s.Caveats, fmt.Sprintf("No cell of %s (--cells-of) was in %s: all were made by this program.", l.CellsOf, l.cells))
	}
	if len(o.Set) > 0 {
		s.Caveats = append([]string{
			"Changed by --set: " + strings.Join(o.Set, ", ") + ". Where the text names another value, this one holds; the papers' figures are for theirs.",
		}, s.Caveats...)
	}
	s.Version, s.Kernel, s.CommittedSeconds = o.Version, model.Kernel(), math.Round(10*l.committed)/10
	s.Report, err = filepath.Abs(filepath.Join(o.Out, "report.html"))
	if err != nil {
		return study.Study{}, fmt.Errorf("reproduce %s: %w", e.ID, err)
	}
	if err := study.WritePage(s.Report, s); err != nil {
		return s, err
	}
	_ = os.Remove(filepath.Join(o.Out, cells.StandingFile)) // the report says more
	return s, e.record(s, o.Out, began, CPUSeconds()-before)
}

// cellsOf says that a record is of the cells that a study was made of.
func cellsOf(old study.Record, s study.Study) bool {
	program, before := study.Program(s.Version), study.Program(s.CellsOf)
	return old.Version == program || before != "" && (old.Version == before || old.CellsOf == before)
}

// record leaves what came of the claims in the study's folder. Cells that were there already
// took the processor time of the runs before, as far as these left a record: a run that is
// stopped leaves none.
func (e Experiment) record(s study.Study, folder string, began time.Time, seconds float64) error {
	if old, err := study.ReadRecord(filepath.Join(folder, study.RecordFile)); err == nil && old.ID == s.ID && old.Scale == s.Scale && old.Seeds == s.Seeds && cellsOf(old, s) {
		seconds += old.CPUSeconds
	}
	return study.RecordOf(s, began.UTC().Format(time.DateOnly), math.Round(10*seconds)/10).Write(folder)
}
