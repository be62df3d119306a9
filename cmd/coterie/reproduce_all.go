package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep/cells"
)

// everything is the ID that stands for all experiments.
const everything = "all"

// summary is what came of all experiments.
type summary struct {
	Records []study.Record `json:"records"`
	Skipped []skipped      `json:"skipped"`
	Table   string         `json:"table"`
	Picture string         `json:"picture"`
}

// skipped is an experiment that could not be made, and why.
type skipped struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// abreast is how many experiments run at the same time where workers make their cells:
// while one waits for the last of a stage, there are cells of another.
const abreast = 3

// reproduceAll makes every experiment that has the scale and whose data are there, a folder
// each, and tells at the end what came of the texts' claims. One that fails stops no other:
// the command fails at its end. Options.For is the time of all of them.
func (a *app) reproduceAll(ctx context.Context, o lab.Options) error {
	out, failed, err := a.makeAll(ctx, o)
	if err != nil {
		return err
	}
	if len(out.Records) == 0 {
		return cmp.Or(failed, fmt.Errorf("%w: no experiment has the scale %q, or no data are there", errUsage, o.Scale))
	}
	if err := study.WriteSummary(o.Out, out.Records); err != nil {
		return err
	}
	out.Table, out.Picture = filepath.Join(o.Out, study.SummaryTable), filepath.Join(o.Out, study.SummaryPicture)
	if a.output == "json" {
		return errors.Join(a.printJSON(out), failed)
	}
	if err := study.Summary(a.stdout, out.Records); err != nil {
		return err
	}
	for _, s := range out.Skipped {
		fmt.Fprintf(a.stdout, "not made: %s: %s\n", s.ID, s.Reason)
	}
	a.remark("\ntable    %s\npicture  %s\nreports  %s", out.Table, out.Picture, filepath.Join(o.Out, "*", "report.html"))
	return failed
}

// makeAll makes the experiments; failed is what went wrong with some of them, err what
// ended all.
func (a *app) makeAll(ctx context.Context, o lab.Options) (out summary, failed, err error) {
	out = summary{Records: []study.Record{}, Skipped: []skipped{}}
	list := repro.List()
	why, faults, records := make([]string, len(list)), make([]error, len(list)), make([]study.Record, len(list))
	turns := make(chan struct{}, 1)
	if o.Runner != nil {
		turns = make(chan struct{}, abreast)
	}
	bar, over := a.progress(everything, len(list)), 0
	var mu sync.Mutex // of the bar
	var wait sync.WaitGroup
	began, unfinished := time.Now(), 0
	for i, e := range list {
		if _, ok := e.Seeds[o.Scale]; !ok {
			why[i] = "it has no scale " + o.Scale
			continue
		}
		if err := data.NewFolder(o.Data).Has(e.Needs...); err != nil {
			why[i] = "data not available: " + strings.Join(e.Needs, ", ") + " (docs/data.md)"
			continue
		}
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			one := o
			one.Out = filepath.Join(o.Out, e.ID)
			if o.For > 0 { // what is finished has its table, although nothing is left
				one.For = max(o.For-time.Since(began), 1)
			}
			if !e.Device && o.Device != "" {
				one.Device = "auto" // its page says that no device is of use to it
			}
			one.Tick = func(done, total int) {
				mu.Lock()
				defer mu.Unlock()
				bar.Show(float64(over)/float64(len(list)), fmt.Sprintf("%d studies done; %s: %d of %d cells", over, e.ID, done, total))
			}
			if ctx.Err() != nil {
				faults[i] = ctx.Err()
				return
			}
			var crew func() []cells.Hand
			if queue, ok := o.Runner.(interface{ Crew() []cells.Hand }); ok {
				crew = queue.Crew
			}
			defer attend(one.Out, crew)()
			if _, faults[i] = e.Run(ctx, one); faults[i] == nil {
				records[i], faults[i] = study.ReadRecord(filepath.Join(one.Out, study.RecordFile))
			}
			mu.Lock()
			defer mu.Unlock()
			over++
		})
	}
	wait.Wait()
	bar.Done()
	for i, e := range list {
		switch {
		case faults[i] != nil && ctx.Err() != nil:
			return out, nil, faults[i]
		case errors.Is(faults[i], sim.ErrInterrupted):
			unfinished++
			out.Skipped = append(out.Skipped, skipped{e.ID, faults[i].Error()})
		case faults[i] != nil:
			failed = errors.Join(failed, faults[i])
			out.Skipped = append(out.Skipped, skipped{e.ID, faults[i].Error()})
		case why[i] != "":
			out.Skipped = append(out.Skipped, skipped{e.ID, why[i]})
		default:
			out.Records = append(out.Records, records[i])
		}
	}
	if unfinished > 0 {
		failed = errors.Join(failed, fmt.Errorf("%w: %d of %d studies are not finished; the same command goes on from there", sim.ErrInterrupted, unfinished, len(list)))
	}
	return out, failed, nil
}
