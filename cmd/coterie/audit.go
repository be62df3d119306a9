package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/inversion"
)

func (a *app) newAuditCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "audit",
		Short:   "What leaks? Attacks on the actual pipeline",
		Long:    "Attack what clients send. An attack that fails proves nothing: another may succeed.",
		Example: "  coterie audit inversion examples/group-private.yaml --one-example\n  coterie audit canary",
	}, a.newAuditInversionCommand(), a.newAuditCanaryCommand(), a.newAuditOneRunCommand(), a.newAuditMechanismCommand(), a.newAuditMembershipCommand(), a.newAuditFairnessCommand(), a.newAuditCertifyCommand(), a.newAuditVerifyCommand())
}

// inversionFlags are what `coterie audit inversion` takes.
type inversionFlags struct {
	run     runFlags
	inspect audit.InspectOptions
	model   string
	report  string

	// Without a run file.
	pictures, network string
	multiplier        float64
	whole             bool
	samples           int
}

func (a *app) newAuditInversionCommand() *cobra.Command {
	var f inversionFlags
	cmd := &cobra.Command{
		Use:   "inversion [FILE]",
		Short: "What could the server see of my last update?",
		Long: "With a run file: let one of its clients make an update, exactly as the run file says, and try to recover its examples from what it sends.\n" +
			"Without: do so for handwriting, one example and one step each (thesis 001, section 2.5.1), at any noise.\n" +
			"Two attacks are made, deep leakage from gradients (DLG) and a closed form for linear layers; the stronger one is reported.",
		Example: "  coterie audit inversion examples/group-private.yaml --one-example --set model.intercept=true\n" +
			"  coterie audit inversion --pictures mnist --network dense --noise-multiplier 1 --data ~/coterie-data",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args); err != nil {
				return err
			}
			if len(args) == 1 {
				return a.inspect(cmd, f, args)
			}
			return a.survey(cmd, f)
		},
	}
	flags := cmd.Flags()
	addDataFolder(flags, &f.run.data)
	flags.Uint64Var(&f.run.seed, "seed", 1, "seed, instead of the run file's")
	flags.IntVar(&f.inspect.Evaluations, "evaluations", 300, "steps of each search")
	flags.IntVar(&f.inspect.Restarts, "restarts", 3, "times that DLG starts afresh at most")
	flags.StringVar(&f.report, "report", "", "write a page with the figures and pictures to this file")
	flags.StringArrayVar(&f.run.set, "set", nil, "with a run file: set one of its values")
	flags.IntVar(&f.inspect.Client, "client", 0, "with a run file: the client that sends")
	flags.BoolVar(&f.inspect.OneExample, "one-example", false, "with a run file: the client holds one example and makes one step, the attacker's best case")
	flags.IntVar(&f.inspect.Example, "example", 0, "with --one-example: which of the client's")
	flags.StringVar(&f.model, "model", "", "with a run file: models to start from, a finished run's model.safetensors (default: those of the first round)")
	flags.StringVar(&f.pictures, "pictures", "unipen", "without a run file: unipen or mnist")
	flags.StringVar(&f.network, "network", "lenet", "without a run file: lenet (of DLG's authors), papers (1.2 million parameters, sigmoids), relu (the same as clients train it) or dense")
	flags.Float64Var(&f.multiplier, "noise-multiplier", 0, "without a run file: nu")
	flags.BoolVar(&f.whole, "whole", false, "without a run file: noise the update as one vector instead of layer by layer")
	flags.IntVar(&f.samples, "samples", 4, "without a run file: pictures, each of another writer")
	return cmd
}

// check refuses flags that do not go together.
func (f inversionFlags) check(cmd *cobra.Command, args []string) error {
	with, without := []string{"set", "client", "one-example", "example", "model"}, []string{"pictures", "network", "noise-multiplier", "whole", "samples"}
	wrong, why := with, "needs a run file"
	if len(args) == 1 {
		wrong, why = without, "does not go with a run file"
	}
	for _, name := range wrong {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("%w: --%s %s", errUsage, name, why)
		}
	}
	switch {
	case cmd.Flags().Changed("example") && !f.inspect.OneExample:
		return fmt.Errorf("%w: --example goes with --one-example", errUsage)
	case f.inspect.Evaluations < 3 || f.inspect.Restarts < 1 || f.samples < 1:
		return fmt.Errorf("%w: --evaluations must be 3 or more, --restarts and --samples 1 or more", errUsage)
	case !(f.multiplier >= 0):
		return fmt.Errorf("%w: --noise-multiplier must be 0 or more", errUsage)
	}
	return nil
}

func (a *app) inspect(cmd *cobra.Command, f inversionFlags, args []string) error {
	run, err := resolveRun(cmd, f.run, args)
	if err != nil {
		return err
	}
	if f.model != "" {
		if f.inspect.Hypotheses, err = readModels(f.model); err != nil {
			return err
		}
	}
	found, err := unlessStopped(cmd.Context(), func() (audit.Inspection, error) {
		return audit.Inspect(cmd.Context(), run, data.NewFolder(dataFolder(f.run.data)), f.inspect)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	page := inversion.InspectionPage(found, run.Name, version())
	return a.auditResult(f.report, page, struct {
		audit.Inspection
		Kernel string `json:"kernel"`
		Report string `json:"report"`
	}{found, model.Kernel(), f.report}, found.Verdict)
}

func (a *app) survey(cmd *cobra.Command, f inversionFlags) error {
	d := config.Default("synthetic", "group-private", "paper").Data
	d.Kind, d.Set, d.TrainShare = "writers", f.pictures, 0.9
	if f.pictures != "unipen" && f.pictures != "mnist" {
		return fmt.Errorf("%w: --pictures %q; allowed: unipen, mnist", errUsage, f.pictures)
	}
	if _, err := audit.NamedNetwork(f.network, 2); err != nil {
		return fmt.Errorf("%w: --network: %w", errUsage, err)
	}
	federation, err := unlessStopped(cmd.Context(), func() (*data.Federation, error) { return data.NewFolder(dataFolder(f.run.data)).Load(d, f.run.seed) })
	if err != nil {
		return err
	}
	network, err := audit.NamedNetwork(f.network, federation.Classes)
	if err != nil {
		return err
	}
	pictures, err := audit.DrawPictures(federation, f.samples, f.run.seed)
	if err != nil {
		return err
	}
	bar := a.progress("audit", len(pictures))
	s := audit.Setup{
		Network: network, Sanitiser: audit.Sanitiser{Multiplier: f.multiplier, Whole: f.whole},
		Step: 0.1, Evaluations: f.inspect.Evaluations, Restarts: f.inspect.Restarts,
	}
	found, err := unlessStopped(cmd.Context(), func() (audit.Survey, error) {
		return s.Run(cmd.Context(), pictures, f.run.seed, func(done int) { bar.Tick(done, "pictures") })
	})
	bar.Done()
	if err != nil {
		return err
	}
	return a.auditResult(f.report, inversion.SurveyPage(found, version()), struct {
		audit.Survey
		Kernel string `json:"kernel"`
		Report string `json:"report"`
	}{found, model.Kernel(), f.report}, found.Verdict)
}

// auditResult writes the page if asked for and prints the result.
func (a *app) auditResult(path string, page study.Study, result any, verdict string) error {
	if path != "" {
		if err := study.WritePage(path, page); err != nil {
			return err
		}
	}
	if a.output == "json" {
		return a.printJSON(result)
	}
	a.remark("%s\n", page.Intro[0])
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range page.Rows {
		fmt.Fprintf(table, "%s\t%s\t%.4g %s\t%s\n", r.Label, r.Metric, float64(*r.Measured), r.Unit, r.Note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "\n%s.\n", verdict)
	for _, caveat := range page.Caveats {
		a.remark("! %s", caveat)
	}
	if path != "" {
		a.remark("report  %s", path)
	}
	return err
}

// maxModels bounds what a file of models may hold.
const maxModels = 1 << 28

// readModels reads a run's returned models, one after another.
func readModels(path string) ([]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: read the models: %w", errUsage, err)
	}
	defer f.Close()
	tensors, err := model.ReadTensors[float64](io.Reader(f), maxModels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []float64
	for _, t := range tensors {
		all = append(all, t.Values...)
	}
	return all, nil
}
