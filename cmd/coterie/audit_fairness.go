package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/sim"
)

func (a *app) newAuditFairnessCommand() *cobra.Command {
	var folder string
	var o audit.FairnessOptions
	cmd := &cobra.Command{
		Use:   "fairness DIR",
		Short: "How do a run's models treat the groups of a sensitive attribute?",
		Long: "Judge the models of a finished run on its held-out clients: demographic parity, equal opportunity and equalised odds differences, with bootstrap intervals over clients.\n" +
			"Each held-out client chooses its model on the first half of its rows and is judged on the second. Where none are held out, as with tables, every client is judged on the rows that it holds out itself, with its own model. docs/fairness.md tells how to read the figures.",
		Example: "  coterie run examples/adult.yaml --data ~/coterie-data --out runs/adult\n" +
			"  coterie audit fairness runs/adult --attribute sex --data ~/coterie-data",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := report.Load(args[0])
			if err != nil {
				return err
			}
			run, err := config.Resolve([]byte(res.Config), nil, sim.Checks()...)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			own, err := openIfDescribed(args[0])
			if err != nil {
				return err
			}
			models, err := returned(res, own)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			found, err := unlessStopped(cmd.Context(), func() ([]audit.Fairness, error) {
				return audit.MeasureFairness(run, models, own, data.NewFolder(dataFolder(folder)), o)
			})
			if errors.Is(err, audit.ErrNoFairness) {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return a.printFairness(res, found)
		},
	}
	flags := cmd.Flags()
	addDataFolder(flags, &folder)
	flags.StringVar(&o.Attribute, "attribute", "", "one sensitive attribute, such as sex or race (default: all)")
	flags.StringSliceVar(&o.Groups, "groups", nil, "with --attribute: compare these of its values alone, separated by commas")
	flags.Uint64Var(&o.Bootstrap.Seed, "seed", 1, "seed of the bootstrap")
	flags.IntVar(&o.Bootstrap.Resamples, "resamples", 2000, "resamples of the bootstrap")
	return cmd
}

// openIfDescribed opens the models of a run; nil: it is from before they were described.
func openIfDescribed(dir string) (*artifact.Model, error) {
	if _, err := os.Stat(filepath.Join(dir, artifact.DescriptionFile)); err != nil {
		return nil, nil
	}
	return artifact.Open(dir)
}

// returned are the server's models of a run: large ones are not in its result, but in
// their own file.
func returned(res sim.Result, own *artifact.Model) (all []float64, err error) {
	for _, m := range res.History.Returned {
		all = append(all, m...)
	}
	if own == nil || len(all) == len(res.History.Returned)*res.Parameters {
		return all, nil
	}
	all = nil
	for k := range len(res.History.Returned) {
		choose := func() (artifact.Choice, error) { return own.Cluster(k) }
		if own.Clusters() == 0 {
			choose = func() (artifact.Choice, error) { return own.Choose("") }
		}
		c, err := choose()
		if err != nil {
			return nil, err
		}
		all = append(all, c.Parameters()...)
	}
	return all, nil
}

func (a *app) printFairness(res sim.Result, found []audit.Fairness) error {
	if a.output == "json" {
		return a.printJSON(struct {
			Run        string           `json:"run"`
			Algorithm  string           `json:"algorithm"`
			Privacy    any              `json:"privacy"`
			Attributes []audit.Fairness `json:"attributes"`
		}{res.RunID, res.Algorithm, res.Privacy, found})
	}
	for _, f := range found {
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "%s: %d rows of %d clients, models: %d\n", f.Attribute, f.Rows, f.Clients, f.Models)
		for name, e := range f.Metrics.All() {
			if strings.HasSuffix(name, "difference") {
				fmt.Fprintf(w, "  %s\t%s\t%s\n", strings.ReplaceAll(name, "_", " "), e, e.Why)
			}
		}
		fmt.Fprintf(w, "\n  group\trows\tbase rate\tselected\ttrue positives\tfalse positives\taccuracy\n")
		for _, g := range append(f.Groups, f.Overall) {
			name := g.Name
			if name == f.Overall.Name {
				name = "everybody"
			}
			fmt.Fprintf(w, "  %s\t%d\t%s\t%s\t%s\t%s\t%s\n", name, g.Count, g.BaseRate, g.SelectionRate, g.TruePositiveRate, g.FalsePositiveRate, g.Accuracy)
		}
		if f.OtherRows > 0 {
			fmt.Fprintf(w, "  left out: %d rows of other groups\n", f.OtherRows)
		}
		if f.NoGroup > 0 {
			fmt.Fprintf(w, "  left out: %d rows of no group\n", f.NoGroup)
		}
		if f.TooSmall > 0 {
			fmt.Fprintf(w, "  left out: %d clients with too few held-out rows\n", f.TooSmall)
		}
		fmt.Fprintln(w)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	a.remark("95 %% intervals over clients; they do not cover another training run or seed. 0 is equal treatment; no figure says that a model is fair.")
	a.remark("! These figures are computed from raw labels and groups: in a federation somebody would have to pay for them.")
	return nil
}
