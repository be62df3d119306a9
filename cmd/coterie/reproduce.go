package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro"
	"github.com/coterie-fl/coterie/repro/lab"
)

func (a *app) newReproduceCommand() *cobra.Command {
	o := lab.Options{Version: version()}
	var q queueFlags
	cmd := &cobra.Command{
		Use:   "reproduce [ID|all]",
		Short: "The papers' tables and figures, ours beside theirs",
		Long: "Without ID: the list of experiments. With ID: run one, print the paper's figures and ours with their spread over seeds and a verdict, and write a report. " +
			"With all: every one, a folder each, and at the end what agrees with the texts, differs, and cannot be compared, as a table and a picture; with --nats or --listen workers make the cells of all of them.\n" +
			"A stopped experiment goes on where it was when the same command is given again.",
		Example: "  coterie reproduce\n  coterie reproduce synthetic --scale quick --seeds 100\n  coterie reproduce all --scale full --nats nats://10.0.0.1:4222",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listExperiments()
			}
			o.Data = dataFolder(o.Data)
			if o.Out == "" {
				o.Out = filepath.Join("coterie-runs", "reproduce-"+args[0]+"-"+o.Scale)
			}
			for _, e := range repro.List() {
				if took := map[string]string{lab.Quick: e.Quick, lab.Full: e.Full}[o.Scale]; e.ID == args[0] && took != "" {
					a.remark("%s at scale %s takes about %s on two idle cores; it can be stopped and goes on where it was", e.ID, o.Scale, took)
				}
			}
			if o.For > 0 && (q.URL != "" || q.listen != "") {
				return fmt.Errorf("%w: --for is for cells that this process makes; workers make all of them: leave --for out, and stop the command when it has taken long enough", errUsage)
			}
			runner, done, err := a.runner(cmd.Context(), q, o.Out, o.Data, o.Workers)
			if err != nil {
				return err
			}
			defer done()
			o.Runner = runner
			if args[0] == everything {
				return a.reproduceAll(cmd.Context(), o)
			}
			bar := a.progress(args[0], 1)
			o.Tick = func(done, total int) { bar.Of(done, total, "cells") }
			result, err := repro.Run(cmd.Context(), args[0], o)
			bar.Done()
			if errors.Is(err, lab.ErrUnknown) {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if err != nil {
				return err
			}
			if a.output == "json" {
				return a.printJSON(result)
			}
			if err := study.Table(a.stdout, result); err != nil {
				return err
			}
			for _, by := range result.Devices {
				a.remark("computed by  %s", by)
			}
			a.remark("\nreport  %s", result.Report)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Scale, "scale", lab.Quick, "smoke, quick or full; grids (clipping): every cell of the tables")
	flags.IntVar(&o.Seeds, "seeds", 0, "number of seeds, instead of the scale's")
	flags.StringArrayVar(&o.Set, "set", nil, "set a value in every run file, for example --set algorithm.local.step=0.05")
	flags.StringVar(&o.Out, "out", "", "folder for cells and report (default ./coterie-runs/reproduce-ID-SCALE)")
	addDataFolder(flags, &o.Data)
	flags.StringVar(&o.Device, "device", "", "what computes networks, as run.device has it: cpu, cuda or cuda:n, or auto, which falls back to the processor and says so (docs/gpu.md)")
	flags.DurationVar(&o.For, "for", 0, "stop after this time, such as 20m, and keep a checkpoint of what is under way: tables of long studies (clipping) show the cells that are finished, others end as if stopped; the same command goes on; with all: the time of all studies")
	flags.StringVar(&o.CellsOf, "cells-of", "", "take the cells that an earlier program made in the same folder, by its version as coterie version prints it: for a program that changed tables and pages alone; report and record say so")
	flags.BoolVar(&o.Anew, "anew", false, "compute the cells that came with the program (clipping, handwriting, silo-rotated-mnist) again")
	flags.IntVar(&o.Workers, "workers", 0, "cells at the same time in this process, each with its share of the cores (default: one a core; with --nats none)")
	q.add(flags)
	return cmd
}

// papers are what the numbers in the list stand for.
const papers = `paper 000   Galli, Biswas, Jung, Cucinotta, Palamidessi: Group privacy for personalized federated learning (workshop version)
thesis 001  Galli: Sense and Sensitivity (PhD thesis, 2024)
paper 002   Liu: On privacy and personalization in machine learning (MSc thesis, CMU 2023)
paper 003   Galli, Jung, Biswas, Palamidessi, Cucinotta: Advancing personalized federated learning: group privacy, fairness, and beyond (2023)
paper 004   the same as paper 000, conference version (ICISSP 2023)`

func (a *app) listExperiments() error {
	list := repro.List()
	if a.output == "json" {
		return a.printJSON(map[string]any{"experiments": list})
	}
	for _, e := range list {
		needs := "nothing"
		if len(e.Needs) > 0 {
			needs = strings.Join(e.Needs, ", ")
		}
		fmt.Fprintf(a.stdout, "%-20s %s\n%20s %s; needs %s; quick %s, full %s\n", e.ID, e.Title, "", e.Paper, needs, e.Quick, e.Full)
	}
	a.remark("\n%s", papers)
	return nil
}
