package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep"
)

// runSeeds makes a run with many seeds.
func (a *app) runSeeds(cmd *cobra.Command, f runFlags, args []string) error {
	if cmd.Flags().Changed("seed") || f.resume != "" {
		return fmt.Errorf("%w: --seeds names all seeds, and the same command goes on with what was stopped: leave --seed and --resume out", errUsage)
	}
	seeds, err := sweep.ParseSeeds(f.seeds)
	if err != nil {
		return err
	}
	slots := f.workers // here: how many runs at the same time
	f.workers = 0
	if cmd.Flags().Changed("workers") {
		if err := cmd.Flags().Set("workers", "0"); err != nil {
			return err
		}
	}
	run, err := resolveRun(cmd, f, args)
	if err != nil {
		return err
	}
	o := sweep.Options{Folder: data.NewFolder(dataFolder(f.data)), Out: f.out, Workers: slots, Version: version()}
	if o.Out == "" {
		hash, err := run.Hash()
		if err != nil {
			return err
		}
		o.Out = filepath.Join("coterie-runs", "seeds-"+run.Name+"-"+hash[:6])
	}
	runner, done, err := a.runner(cmd.Context(), f.queue, o.Out, dataFolder(f.data), slots)
	if err != nil {
		return err
	}
	defer done()
	o.Runner = runner
	bar := a.progress(run.Name, 1)
	o.Tick = func(done, total int) { bar.Of(done, total, "runs") }
	r, err := sweep.Repeat(cmd.Context(), run, seeds, o, report.Load, func(dir string, res sim.Result) error { return report.Leave(dir, res, version()) })
	bar.Done()
	if err != nil {
		return err
	}
	if err := writeSweep(o.Out, sweep.SeedsFile, r); err != nil {
		return err
	}
	if a.output == "json" {
		return a.printJSON(r)
	}
	return a.printSeeds(r, o.Out)
}

func (a *app) printSeeds(r sweep.Repeated, out string) error {
	s := r.Privacy.Statement
	lines := []string{
		fmt.Sprintf("%s  %.5g +- %.3g over %d seeds (mean, standard deviation)", r.Metric, float64(r.Mean), float64(r.SD), len(r.Runs)),
		fmt.Sprintf("one run costs epsilon %s (%s); every seed is a run of its own, and costs as much again", upTo(s.Epsilon, 6), account.InTerms(s)),
		"", fmt.Sprintf("%8s  %-10s %8s  %s", "seed", r.Metric, "rounds", "models' sha256"),
	}
	for _, one := range r.Runs {
		lines = append(lines, fmt.Sprintf("%8d  %-10.5g %8d  %.16s…", one.Seed, float64(one.Value), one.Rounds, one.ModelSHA256))
	}
	if err := a.printLines(lines...); err != nil {
		return err
	}
	a.remark("\nruns    %s\nresult  %s", filepath.Join(out, "seed-…"), filepath.Join(out, sweep.SeedsFile))
	return nil
}
