package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/tuning"
	"github.com/coterie-fl/coterie/sim"
	"github.com/coterie-fl/coterie/sweep"
)

func (a *app) newSweepCommand() *cobra.Command {
	o := sweep.Options{Version: version()}
	var set []string
	var folder string
	var seeds int
	var q queueFlags
	cmd := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Many runs: grids of settings, and tuning that silos pay for",
		Long: "Make every run of a grid, on this machine, and compare them. Choosing by such figures is not private: the output says \"tuning: not charged\", and what it would cost to pay for it.\n" +
			"With tuning.charge grid the noise of every run is raised so that all runs of the grid together keep the target.\n" +
			"With tuning.charge random every silo tunes for itself by a secret, random number of trials, and its noise is raised so that the target covers all of it.\n" +
			"A stopped grid goes on where it was when the same command is given again.",
		Example: "  coterie sweep examples/sweep/school-grid.yaml\n  coterie sweep examples/sweep/school-grid-charged.yaml\n  coterie sweep examples/sweep/school-charged.yaml --set privacy.epsilon=3",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := sweep.Load(args[0], set)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("seeds") {
				if seeds < 1 {
					return fmt.Errorf("%w: --seeds %d: want at least 1", errUsage, seeds)
				}
				plan.Seeds = seeds
			}
			o.Folder = data.NewFolder(dataFolder(folder))
			if o.Out == "" {
				o.Out = filepath.Join("coterie-runs", "sweep-"+strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0])))
			}
			if plan.Charge() == sweep.ChargeRandom {
				if q.URL != "" || q.listen != "" {
					return fmt.Errorf("%w: tuning.charge random stays in one process: how many trials a silo makes is its secret, and a queue would show it; leave --nats and --listen out, or charge the grid", errUsage)
				}
				return a.sweepCharged(cmd, plan, o)
			}
			again := "coterie sweep " + prose.ShellWord(args[0])
			for _, s := range set {
				again += " --set " + prose.ShellWord(s)
			}
			if cmd.Flags().Changed("seeds") {
				again += fmt.Sprintf(" --seeds %d", seeds)
			}
			runner, done, err := a.runner(cmd.Context(), q, o.Out, dataFolder(folder), o.Workers)
			if err != nil {
				return err
			}
			defer done()
			o.Runner = runner
			return a.sweepGrid(cmd, plan, o, again)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&set, "set", nil, "set a value in every run, for example --set privacy.epsilon=3")
	flags.IntVar(&seeds, "seeds", 0, "number of seeds, instead of the file's")
	flags.StringVar(&o.Out, "out", "", "folder for finished runs and the result (default ./coterie-runs/sweep-FILE)")
	addDataFolder(flags, &folder)
	flags.IntVar(&o.Workers, "workers", 0, "runs at the same time in this process (default: one a core; with --nats none)")
	q.add(flags)
	return cmd
}

func (a *app) sweepGrid(cmd *cobra.Command, plan *sweep.Plan, o sweep.Options, again string) error {
	o.Say = a.warn
	bar := a.progress(plan.Name, 1)
	o.Tick = func(done, total int) { bar.Of(done, total, "runs") }
	r, err := plan.Run(cmd.Context(), o)
	bar.Done()
	if err != nil {
		return err
	}
	if err := writeSweep(o.Out, sweep.ResultFile, r); err != nil {
		return err
	}
	page := filepath.Join(o.Out, sim.ReportFile)
	if err := tuning.WritePage(page, r, tuning.Made{Command: again, Version: version(), Kernel: model.Kernel()}); err != nil {
		return err
	}
	if a.output == "json" {
		return a.printJSON(r)
	}
	if err := a.printGrid(r); err != nil {
		return err
	}
	a.remark("result  %s\nreport  %s", filepath.Join(o.Out, sweep.ResultFile), page)
	return nil
}

func (a *app) printGrid(r sweep.Result) error {
	// Settings may name an epsilon, so the terms come first.
	s, who := r.Privacy.Statement, "one run of the best setting (*) costs"
	if r.Shared > 0 {
		who = fmt.Sprintf("the %d runs of a seed together cost", len(r.Points))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s epsilon %s (%s)\n\n  %-12s %-10s    %-10s settings; epsilons among them: %s\n",
		who, upTo(s.Epsilon, 6), account.InTerms(s), "figure", "mean", "deviation", account.InTerms(s))
	for i, p := range r.Points {
		mark := " "
		if i == r.Best {
			mark = "*"
		}
		fmt.Fprintf(&text, "%s %-12s %-10.5g +- %-10.3g %s\n", mark, r.Metric, float64(p.Mean), float64(p.SD), settingsInWords(p.Settings))
	}
	if c := r.Chosen; c != nil {
		fmt.Fprintf(&text, "\nevery seed's own best: %s %.5g +- %.3g\n", r.Metric, float64(c.Mean), float64(c.SD))
	}
	printPrices(&text, r.Prices)
	fmt.Fprintln(&text)
	for _, line := range r.Says {
		fmt.Fprintln(&text, line)
	}
	if r.Shared > 0 {
		fmt.Fprintf(&text, "not covered: %s\n", strings.Join(s.NotCovered, "; "))
	}
	_, err := io.WriteString(a.stdout, text.String())
	return err
}

// printPrices says what the ways to the best setting cost, each with its terms.
func printPrices(w io.Writer, prices []sweep.Price) {
	if len(prices) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-30s %10s   %-10s %-22s %s\n", "way to the best setting", "runs", "epsilon", "noise for the target", "of the epsilon")
	for _, p := range prices {
		way, noise := p.Way, "-"
		if p.Pivot {
			way += ", and a pivot"
		}
		if p.Noise != nil {
			noise = fmt.Sprintf("%.4g", float64(*p.Noise))
		}
		fmt.Fprintf(w, "%-30s %10.4g   %-10s %-22s %s\n", way, float64(p.Runs), upTo(p.Privacy.Epsilon, 4), noise, account.InTerms(p.Privacy))
		if p.Proved != nil {
			fmt.Fprintf(w, "%-30s %10s   %-10s %-22s %s\n", "  the same releases", "", upTo(p.Proved.Epsilon, 4), "", account.InTerms(*p.Proved))
		}
	}
}

func writeSweep(folder, name string, result any) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return sim.WriteFile(filepath.Join(folder, name), append(text, '\n'))
}

func settingsInWords(settings map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		parts = append(parts, key+"="+settings[key])
	}
	return strings.Join(parts, " ")
}

func (a *app) sweepCharged(cmd *cobra.Command, plan *sweep.Plan, o sweep.Options) error {
	bar := a.progress(plan.Name, 1)
	o.Tick = func(done, total int) { bar.Of(done, total, "silos") }
	r, err := plan.Tune(cmd.Context(), o)
	bar.Done()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	var models bytes.Buffer
	if err := model.WriteTensors(&models, r.Models, nil); err != nil {
		return err
	}
	if err := sim.WriteFile(filepath.Join(o.Out, sim.ModelFile), models.Bytes()); err != nil {
		return err
	}
	if err := writeSweep(o.Out, sweep.ResultFile, r); err != nil {
		return err
	}
	if a.output == "json" {
		return a.printJSON(r)
	}
	return a.printTuned(r, o.Out)
}

func (a *app) printTuned(r sweep.Tuned, out string) error {
	chosen := map[string]int{}
	for _, s := range r.Silos {
		name := settingsInWords(s.Settings)
		if s.Settings == nil {
			name = "no trial: the public model"
		}
		chosen[name]++
	}
	lines := []string{
		fmt.Sprintf("%s of the tuned models      %.5g", r.Metric, float64(r.Test)),
		fmt.Sprintf("%s of the pivot's own       %.5g", r.Metric, float64(r.Pivot)),
		fmt.Sprintf("%s of the pivot's average   %.5g (all at the noise that tuning needs)", r.Metric, float64(r.Average)),
		fmt.Sprintf("tuning: charged; %.4g trials a silo on average (%s)", float64(r.MeanTrials), r.Distribution),
		fmt.Sprintf("epsilon %s (%s), for pivot, trials and scores together", upTo(r.Privacy.Epsilon, 6), account.InTerms(r.Privacy.Statement)),
	}
	if p := r.Privacy.Proved; p != nil {
		lines = append(lines, fmt.Sprintf("for the same releases: epsilon %s (%s)", upTo(p.Epsilon, 6), account.InTerms(*p)))
	}
	var prices strings.Builder
	printPrices(&prices, r.Prices)
	lines = append(lines, strings.TrimRight(prices.String(), "\n"), "", "assumes: "+strings.Join(r.Privacy.Assumes, "; "), "not covered: "+strings.Join(r.Privacy.NotCovered, "; "), "", "silos that chose")
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		lines = append(lines, fmt.Sprintf("%6d  %s", chosen[name], name))
	}
	if err := a.printLines(lines...); err != nil {
		return err
	}
	a.remark("\nmodels  %s\nresult  %s", filepath.Join(out, sim.ModelFile), filepath.Join(out, sweep.ResultFile))
	return nil
}
