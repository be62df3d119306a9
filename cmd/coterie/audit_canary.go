package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
)

// canaryFlags are what `coterie audit canary` takes.
type canaryFlags struct {
	run   runFlags
	audit audit.CanaryOptions
}

func (a *app) newAuditCanaryCommand() *cobra.Command {
	var f canaryFlags
	cmd := &cobra.Command{
		Use:   "canary [FILE]",
		Short: "Does a silo leak more than it claims?",
		Long: "Play a hostile server against the shipped path of a tiny silo, run after run, with and without one extreme row, and guess from the releases whether it is there.\n" +
			"How often that succeeds bounds epsilon from below; exit code 3 if the bound exceeds what was charged.\n" +
			"With a run file, its algorithm and privacy blocks are audited (fedavg on silos of rows, sound mode, add-remove); its data are not touched. Without, settings that show noise which is a fifth too small.\n" +
			"It tests this program and these settings, not a model that was trained before. A bound below the claim proves nothing.",
		Example: "  coterie audit canary\n" +
			"  coterie audit canary --runs 60000 --output json\n" +
			"  coterie audit canary run.yaml --set privacy.noise=simulated --seed 7",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.auditCanary(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.audit.Runs, "runs", 2000, "runs with the canary, and as many without")
	flags.Float64Var(&f.audit.Delta, "delta", 0, "delta at which epsilons are compared (default: the run's)")
	flags.Float64Var(&f.audit.Confidence, "confidence", 0.95, "of both bounds together")
	flags.Uint64Var(&f.run.seed, "seed", 1, "seed of batches and simulated noise, instead of the run file's; exact noise comes from the system")
	flags.StringArrayVar(&f.run.set, "set", nil, "with a run file: set one of its values")
	return cmd
}

func (a *app) auditCanary(cmd *cobra.Command, f canaryFlags, args []string) error {
	if err := f.audit.Check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	run := audit.DefaultCanaryRun()
	run.Seed = f.run.seed
	if len(args) == 1 {
		var err error
		if run, err = resolveRun(cmd, f.run, args, audit.CheckCanary); err != nil {
			return err
		}
	} else if len(f.run.set) > 0 {
		return fmt.Errorf("%w: --set needs a run file", errUsage)
	}
	bar := a.progress("audit", f.audit.Runs)
	f.audit.Tick = func(runs int) { bar.Tick(runs, "pairs of runs") }
	found, err := unlessStopped(cmd.Context(), func() (audit.Canary, error) { return audit.PlayCanary(cmd.Context(), run, f.audit) })
	bar.Done()
	if err != nil {
		return err
	}
	if err := a.printCanary(found); err != nil {
		return err
	}
	if found.Exceeds {
		return exceeded(max(found.AtLeast, found.CurveFree), found.Privacy)
	}
	return nil
}

func (a *app) printCanary(c audit.Canary) error {
	if a.output == "json" {
		return a.printJSON(struct {
			audit.Canary
			Kernel string `json:"kernel"`
		}{c, model.Kernel()})
	}
	a.remark("%d runs with the canary and %d without, each of %d rounds of %d noised steps; %s noise, rate %.4g, noise multiplier %.4g.\nThe server guessed %d of %d right.\n",
		c.Runs, c.Runs, c.Rounds, c.Steps, c.Noise, c.Rate, c.Multiplier, c.Right, c.Guesses)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "epsilon at delta %.3g for one %s, %s\t\t\n", float64(c.Privacy.Delta), c.Privacy.Unit, c.Privacy.Relation)
	fmt.Fprintf(w, "  claimed (%s)\t%.4f\tby the run's own accountant, for what was charged\n", c.Privacy.Claim, float64(c.Privacy.Epsilon))
	fmt.Fprintf(w, "  tight\t%.4f\tthe least that could be claimed for the same\n", float64(c.Tight))
	fmt.Fprintf(w, "  at least, through the mechanism's curve\t%.4f\tthe noise is at most %.3f of what was charged\n", float64(c.AtLeast), float64(c.NoiseAtMost))
	fmt.Fprintf(w, "  at least, curve-free\t%.4f\t\n", float64(c.CurveFree))
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "\n%s.\n", c.Verdict); err != nil {
		return err
	}
	a.remark("Both bounds hold together with %.4g %% confidence. With 0.8 of the noise this audit exceeds the claim with probability %.4f; as charged, with %.1g at most.", 100*c.Confidence, c.Power, c.FalseAlarm)
	for _, line := range c.Assumes {
		a.remark("assumes  %s", line)
	}
	a.remark("! This tests the program and these settings, not a model that was trained before.")
	return nil
}

// exceeded says that an audit proved more than was charged.
func exceeded(atLeast event.Number, charged event.Statement) error {
	return fmt.Errorf("%w: epsilon is at least %.4g, %.4g was charged (%s, unit %s, relation %s, delta %v)", audit.ErrCanary, float64(atLeast), float64(charged.Epsilon), charged.Claim, charged.Unit, charged.Relation, charged.Delta)
}
