package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// oneRunFlags are what `coterie audit onerun` takes.
type oneRunFlags struct {
	run   runFlags
	audit audit.OneRunOptions
}

func (a *app) newAuditOneRunCommand() *cobra.Command {
	var f oneRunFlags
	cmd := &cobra.Command{
		Use:   "onerun FILE",
		Short: "A lower bound on epsilon from one training",
		Long: "Train a run file once with canaries, each of them in by a coin of its own, and guess afterwards which were in (Steinke, Nasr and Jagielski 2023).\n" +
			"How often that succeeds bounds epsilon from below; exit code 3 if the bound exceeds what was charged. The bound is printed with its ceiling: what the same number of guesses could have shown at most.\n" +
			"Canaries are gradients, against the mechanism itself, whose every noised step the attacker sees; or examples, against the returned model. With --steps-only there is no data and no model: seconds.\n" +
			"What is trained is thrown away. A bound below the claim proves nothing.",
		Example: "  coterie audit onerun run.yaml --steps-only\n" +
			"  coterie audit onerun run.yaml --canaries-are examples --canaries 200 --guesses 20\n" +
			"  coterie audit onerun run.yaml --client north --output json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.auditOneRun(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.audit.Kind, "canaries-are", audit.CanaryGradients, "gradients or examples")
	flags.IntVar(&f.audit.Canaries, "canaries", 1000, "how many there are; half of them are in, by their coins")
	flags.IntVar(&f.audit.Guesses, "guesses", 0, "how many of them are guessed: fix it beforehand (default: a tenth of the canaries)")
	flags.BoolVar(&f.audit.StepsOnly, "steps-only", false, "gradients alone: the run's steps without data and model")
	flags.StringVar(&f.audit.Client, "client", "", "the participant that has the canaries (default: the first one)")
	flags.Float64Var(&f.audit.Delta, "delta", 0, "delta at which epsilons are compared (default: the run's)")
	flags.Float64Var(&f.audit.Confidence, "confidence", 0.95, "of the bound")
	flags.StringVar(&f.run.data, "data", "", "folder of real data (default: the environment variable COTERIE_DATA)")
	flags.Uint64Var(&f.run.seed, "seed", 1, "seed, instead of the run file's: of coins, canaries and simulated noise")
	flags.StringArrayVar(&f.run.set, "set", nil, "set one of the run file's values")
	return cmd
}

func (a *app) auditOneRun(cmd *cobra.Command, f oneRunFlags, args []string) error {
	if err := f.audit.Check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	run, err := resolveRun(cmd, f.run, args, audit.CheckGradients)
	if err != nil {
		return err
	}
	bar := a.progress("audit", run.Algorithm.Rounds)
	f.audit.Tick = func(round int) { bar.Tick(round, "rounds") }
	found, err := unlessStopped(cmd.Context(), func() (audit.OneRun, error) {
		return audit.PlayOneRun(cmd.Context(), run, data.NewFolder(dataFolder(f.run.data)), f.audit)
	})
	bar.Done()
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if err := a.printOneRun(found); err != nil {
		return err
	}
	if found.Exceeds {
		return exceeded(found.AtLeast, found.Privacy)
	}
	return nil
}

func (a *app) printOneRun(r audit.OneRun) error {
	if a.output == "json" {
		return a.printJSON(struct {
			audit.OneRun
			Kernel string `json:"kernel"`
		}{r, model.Kernel()})
	}
	a.remark("One training of %d rounds, %d noised steps in all, with %d %s as canaries, %d of them in; %s noise, rate %.4g, noise multiplier %.4g.\nThe attacker guessed %d of %d right, by the %s.\n",
		r.Rounds, r.Steps, r.Canaries, r.Kind, r.In, r.Noise, r.Rate, r.Multiplier, r.Right, r.Guesses, r.Score)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "epsilon at delta %.3g for one %s, %s\t\t\n", float64(r.Privacy.Delta), r.Privacy.Unit, r.Privacy.Relation)
	fmt.Fprintf(w, "  claimed (%s)\t%.4f\tby the run's own accountant, for what was charged\n", r.Privacy.Claim, float64(r.Privacy.Epsilon))
	fmt.Fprintf(w, "  at least\t%.4f\twith %.4g %% confidence\n", float64(r.AtLeast), 100*r.Confidence)
	fmt.Fprintf(w, "  ceiling\t%.4f\twhat %d right guesses of %d would have shown\n", float64(r.Ceiling), r.Guesses, r.Guesses)
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "\n%s.\n", r.Verdict); err != nil {
		return err
	}
	for _, line := range r.Assumes {
		a.remark("assumes  %s", line)
	}
	for _, line := range r.Privacy.NotCovered {
		a.remark("not covered  %s", line)
	}
	a.remark("! This tests the program and these settings, not a model that was trained before. The model with the canaries is thrown away.")
	return nil
}
