package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/model"
)

func (a *app) newAuditMechanismCommand() *cobra.Command {
	var f canaryFlags
	cmd := &cobra.Command{
		Use:   "mechanism FILE",
		Short: "Do a run's noised steps keep what they are charged for?",
		Long: "Play the steps of a run file through the shipped path, without data, with gradients as canaries: half of them are in, each along a coordinate of its own, and the attacker sees every noised step.\n" +
			"How often it guesses right bounds epsilon through the mechanism's own curve, and every step's noise is held against what was charged; exit code 3 if a bound exceeds what was charged.\n" +
			"Half the noise, a clip that is ignored, or one step without noise are found by it, which a one-run audit alone cannot. A bound below the claim proves nothing.",
		Example: "  coterie audit mechanism run.yaml\n" +
			"  coterie audit mechanism run.yaml --canaries 5000 --report page.html",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.auditMechanism(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.audit.Runs, "canaries", 1000, "canaries that are in, and as many that are not")
	addAudited(flags, &f.run, &f.audit.Delta, &f.audit.Confidence, &f.report, "all three bounds together")
	return cmd
}

func (a *app) auditMechanism(cmd *cobra.Command, f canaryFlags, args []string) error {
	if err := errors.Join(checkConfidence(f.audit.Confidence), f.audit.CheckGradients()); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	run, err := resolveRun(cmd, f.run, args, audit.CheckMechanism)
	if err != nil {
		return err
	}
	bar := a.progress("audit", run.Algorithm.Rounds)
	f.audit.Tick = func(round int) { bar.Tick(round, "rounds") }
	found, err := unlessStopped(cmd.Context(), func() (audit.GradientAudit, error) {
		return audit.PlayGradients(cmd.Context(), run, f.audit)
	})
	bar.Done()
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	told := bounded{found.Tell(), max(found.AtLeast, found.CurveFree, found.StepAtLeast), found.Exceeds}
	return a.printBounded(cmd, told, run.Name, f.report, struct {
		audit.GradientAudit
		Kernel string `json:"kernel"`
		Report string `json:"report"`
	}{found, model.Kernel(), f.report})
}
