package main

import (
	"fmt"
	"text/tabwriter"

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
			"  coterie audit mechanism run.yaml --canaries 5000 --output json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.auditMechanism(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.audit.Runs, "canaries", 1000, "canaries that are in, and as many that are not")
	flags.Float64Var(&f.audit.Delta, "delta", 0, "delta at which epsilons are compared (default: the run's)")
	flags.Float64Var(&f.audit.Confidence, "confidence", 0.95, "of all three bounds together")
	flags.Uint64Var(&f.run.seed, "seed", 1, "seed of batches and simulated noise, instead of the run file's; exact noise comes from the system")
	flags.StringArrayVar(&f.run.set, "set", nil, "set one of the run file's values")
	return cmd
}

func (a *app) auditMechanism(cmd *cobra.Command, f canaryFlags, args []string) error {
	if err := f.audit.Check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	run, err := resolveRun(cmd, f.run, args, audit.CheckGradients)
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
	if err := a.printMechanism(found); err != nil {
		return err
	}
	if found.Exceeds {
		return exceeded(max(found.AtLeast, found.CurveFree, found.StepAtLeast), found.Privacy)
	}
	return nil
}

func (a *app) printMechanism(g audit.GradientAudit) error {
	if a.output == "json" {
		return a.printJSON(struct {
			audit.GradientAudit
			Kernel string `json:"kernel"`
		}{g, model.Kernel()})
	}
	a.remark("%d canaries were in and %d out, in %d noised steps; %s noise, rate %.4g, noise multiplier %.4g.\nThe attacker guessed %d of %d right.\n",
		g.Runs, g.Runs, g.AllSteps, g.Noise, g.Rate, g.Multiplier, g.Right, g.Guesses)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "epsilon at delta %.3g for one %s, %s\t\t\n", float64(g.Privacy.Delta), g.Privacy.Unit, g.Privacy.Relation)
	fmt.Fprintf(w, "  claimed (%s)\t%.4f\tby the run's own accountant, for what was charged\n", g.Privacy.Claim, float64(g.Privacy.Epsilon))
	fmt.Fprintf(w, "  tight\t%.4f\tthe least that could be claimed for the same\n", float64(g.Tight))
	fmt.Fprintf(w, "  at least, through the mechanism's curve\t%.4f\tthe noise is at most %.3f of what was charged\n", float64(g.AtLeast), float64(g.NoiseAtMost))
	fmt.Fprintf(w, "  at least, curve-free\t%.4f\t\n", float64(g.CurveFree))
	fmt.Fprintf(w, "  at least, of step %d alone\t%.4f\tits noise, the least of all, is at most %.3f of what was charged\n", g.Step, float64(g.StepAtLeast), float64(g.StepNoiseAtMost))
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "\n%s.\n", g.Verdict); err != nil {
		return err
	}
	a.remark("All three bounds hold together with %.4g %% confidence. With 0.8 of the noise this audit exceeds the claim with probability %.4f; as charged, with %.1g at most.", 100*g.Confidence, g.Power, g.FalseAlarm)
	for _, line := range g.Assumes {
		a.remark("assumes  %s", line)
	}
	a.remark("! This tests the program and these settings, not a model that was trained before.")
	return nil
}
