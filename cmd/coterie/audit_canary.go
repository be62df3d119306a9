package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/model"
)

// canaryFlags are what `coterie audit canary` takes.
type canaryFlags struct {
	run    runFlags
	audit  audit.CanaryOptions
	report string
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
	addAudited(flags, &f.run, &f.audit.Delta, &f.audit.Confidence, &f.report, "both bounds together")
	return cmd
}

func (a *app) auditCanary(cmd *cobra.Command, f canaryFlags, args []string) error {
	if err := errors.Join(checkConfidence(f.audit.Confidence), f.audit.Check()); err != nil {
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
	told := bounded{found.Tell(), max(found.AtLeast, found.CurveFree), found.Exceeds}
	return a.printBounded(cmd, told, run.Name, f.report, struct {
		audit.Canary
		Kernel string `json:"kernel"`
		Report string `json:"report"`
	}{found, model.Kernel(), f.report})
}
