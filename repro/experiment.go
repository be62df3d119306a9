package repro

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
)

// The scales of an experiment.
const (
	Smoke = "smoke" // seconds, for tests
	Quick = "quick" // at most two minutes on two cores
	Full  = "full"  // what the paper did, or more
)

// Experiment is a table or figure of the papers.
type Experiment struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Paper  string   `json:"paper"`
	Needs  []string `json:"needs"` // folders of real data
	Quick  string   `json:"quick"` // about how long, on two cores
	Full   string   `json:"full"`
	seeds  map[string]int
	launch func(l *lab) (study.Study, error)
}

// experiments in the order in which they are listed.
var experiments = []Experiment{synthetic, hospital, handwriting, fairness, fairnessHandwriting, inversion, meanEstimation, tuningCost,
	siloTradeoff, siloFinetune, siloOverhead, siloLambda, siloRotatedMNIST, siloSubsample, siloLowPrivacy}

// List is every experiment.
func List() []Experiment { return slices.Clone(experiments) }

// Options say how an experiment is run.
type Options struct {
	Scale   string
	Seeds   int      // 0: as the scale says
	Set     []string // path=value, applied to every run
	Out     string   // folder for cells and report
	Data    string   // folder of real data
	Workers int
	Version string
	Tick    func(done, total int)
}

// ErrUnknown means that there is no such experiment or scale.
var ErrUnknown = fmt.Errorf("not known")

// Run makes an experiment, or what is left of it after a stop, and writes its
// report.
func Run(ctx context.Context, id string, o Options) (study.Study, error) {
	i := slices.IndexFunc(experiments, func(e Experiment) bool { return e.ID == id })
	if i < 0 {
		return study.Study{}, fmt.Errorf("experiment %q: %w; coterie reproduce lists them", id, ErrUnknown)
	}
	e := experiments[i]
	seeds, ok := e.seeds[o.Scale]
	if !ok {
		return study.Study{}, fmt.Errorf("scale %q: %w; allowed: smoke, quick, full", o.Scale, ErrUnknown)
	}
	if o.Seeds > 0 {
		seeds = o.Seeds
	}
	folder := data.NewFolder(o.Data)
	if err := folder.Has(e.Needs...); err != nil {
		return study.Study{}, fmt.Errorf("reproduce %s: %w", id, err)
	}
	l := &lab{ctx: ctx, options: o, seeds: seeds, folder: folder, cells: filepath.Join(o.Out, "cells")}
	if err := os.MkdirAll(l.cells, 0o755); err != nil {
		return study.Study{}, fmt.Errorf("reproduce %s: %w", id, err)
	}
	began := time.Now()
	s, err := e.launch(l)
	if err != nil {
		return study.Study{}, fmt.Errorf("reproduce %s: %w", id, err)
	}
	s.ID, s.Title, s.Paper, s.Scale, s.Seeds = e.ID, e.Title, e.Paper, o.Scale, seeds
	s.Seconds = l.before + time.Since(began).Seconds()
	s.Command = fmt.Sprintf("coterie reproduce %s --scale %s --seeds %d", id, o.Scale, seeds)
	for _, set := range o.Set {
		s.Command += " --set " + set
	}
	if len(o.Set) > 0 {
		s.Caveats = append([]string{
			"Changed by --set: " + strings.Join(o.Set, ", ") + ". Where the text names another value, this one holds; the papers' figures are for theirs.",
		}, s.Caveats...)
	}
	s.Version, s.Kernel = o.Version, model.Kernel()
	s.Report, err = filepath.Abs(filepath.Join(o.Out, "report.html"))
	if err != nil {
		return study.Study{}, fmt.Errorf("reproduce %s: %w", id, err)
	}
	return s, study.WritePage(s.Report, s)
}

// resolve applies the caller's --set to a run and checks it whole.
func (l *lab) resolve(run config.Run) (config.Run, error) {
	text, err := run.Encode()
	if err != nil {
		return run, err
	}
	return config.Resolve(text, l.options.Set, checks()...)
}
