package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// oneRunFlags are what `coterie audit onerun` takes.
type oneRunFlags struct {
	run    runFlags
	audit  audit.OneRunOptions
	report string
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
		Example: "  coterie audit onerun run.yaml --steps-only --report page.html\n" +
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
	addAudited(flags, &f.run, &f.audit.Delta, &f.audit.Confidence, &f.report, "the bound")
	addDataFolder(flags, &f.run.data)
	return cmd
}

func (a *app) auditOneRun(cmd *cobra.Command, f oneRunFlags, args []string) error {
	if err := errors.Join(checkConfidence(f.audit.Confidence), f.audit.Check()); err != nil {
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
	told := bounded{found.Tell(), found.AtLeast, found.Exceeds}
	return a.printBounded(cmd, told, run.Name, f.report, struct {
		audit.OneRun
		Kernel string `json:"kernel"`
		Report string `json:"report"`
	}{found, model.Kernel(), f.report})
}
