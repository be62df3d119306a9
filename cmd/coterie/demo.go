package main

import (
	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/report/progress"
	"github.com/coterie-fl/coterie/repro"
	"github.com/coterie-fl/coterie/sim"
)

func (a *app) newDemoCommand() *cobra.Command {
	var seed uint64
	var out string
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "First contact: three ways to train together, a table and a report",
		Long:    "Train the papers' synthetic federation with FedAvg, clustered (IFCA) and group-private training, side by side. No network, no data, seconds.",
		Example: "  coterie demo\n  coterie demo --seed 7 --out demo --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				out = defaultDirectory("demo")
			}
			var bar *progress.Bar
			showing := ""
			demo, err := repro.RunDemo(cmd.Context(), out, seed, version(), func(name string, m sim.Moment) {
				if showing != name {
					bar, showing = a.progress(name, 1), name
				}
				show(bar, m, nil)
			})
			if bar != nil {
				bar.Done()
			}
			if err != nil {
				return err
			}
			return a.printDemo(demo)
		},
	}
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed")
	cmd.Flags().StringVar(&out, "out", "", "folder for the runs (default ./coterie-runs/RUN_ID)")
	return cmd
}

func (a *app) printDemo(demo repro.Demo) error {
	if a.output == "json" {
		return a.printJSON(demo)
	}
	a.remark("100 clients of two groups, 10 rows each; y = x·theta + u. Nobody tells the server which group is whose.\n")
	if err := report.Table(a.stdout, append(append([]sim.Summary{}, demo.Runs...), demo.Sound)); err != nil {
		return err
	}
	a.remark("\neps: summed loss of a client's releases against another point at their radius. none: no noise, nothing is promised;")
	a.remark("heuristic: the papers' number, with the update's own length as radius; metric: d-private at a public radius.\n")
	for _, note := range demo.Notes {
		a.remark("- %s", note)
	}
	a.remark("\nreport  %s", demo.Report)
	return nil
}
