package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
)

// addDataFolder adds the flag that names the folder of real data.
func addDataFolder(flags *pflag.FlagSet, folder *string) {
	flags.StringVar(folder, "data", "", "folder of real data (default: the environment variable COTERIE_DATA)")
}

// addReport adds the flag of an audit's page.
func addReport(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "report", "", "write a page with the figures and curves to this file")
}

// addConfidence adds the flag of what an audit's bounds hold with.
func addConfidence(flags *pflag.FlagSet, confidence *float64, of string) {
	flags.Float64Var(confidence, "confidence", 0.95, "of "+of)
}

// checkConfidence refuses the 0 that stands for the default where options are not flags.
func checkConfidence(confidence float64) error {
	if confidence == 0 {
		return errors.New("--confidence 0: allowed: 0.5 to 0.999999999")
	}
	return nil
}

// addAudited adds the flags of audits that bound a run's epsilon from below: the run, what
// the bounds are held at, and the page.
func addAudited(flags *pflag.FlagSet, run *runFlags, delta, confidence *float64, report *string, bounds string) {
	flags.Float64Var(delta, "delta", 0, "delta at which epsilons are compared (default: the run's)")
	addConfidence(flags, confidence, bounds)
	flags.Uint64Var(&run.seed, "seed", 1, "seed of batches, canaries and simulated noise, instead of the run file's; exact noise comes from the system")
	flags.StringArrayVar(&run.set, "set", nil, "set one of the run file's values")
	addReport(flags, report)
}

// quoted is the command as it was given.
func quoted(cmd *cobra.Command) string {
	words := strings.Fields(cmd.CommandPath())
	for _, arg := range cmd.Flags().Args() {
		words = append(words, prose.ShellWord(arg))
	}
	cmd.Flags().Visit(func(g *pflag.Flag) {
		values := []string{g.Value.String()}
		if list, ok := g.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			words = append(words, prose.ShellFlag(g.Name, value))
		}
	})
	return strings.Join(words, " ")
}

// bounded is what an audit found that bounds epsilon from below.
type bounded struct {
	audit.Telling
	atLeast event.Number // the largest of the bounds
	exceeds bool
}

// printBounded writes the page if asked for, and prints what was found. More than was
// charged is refused, after it is told.
func (a *app) printBounded(cmd *cobra.Command, b bounded, name, path string, result any) error {
	if path != "" {
		if err := study.WritePage(path, b.Page(name, quoted(cmd), version())); err != nil {
			return err
		}
	}
	tell := a.tellBounded
	if a.output == "json" {
		tell = func(bounded, string) error { return a.printJSON(result) }
	}
	if err := tell(b, path); err != nil || !b.exceeds {
		return err
	}
	return exceeded(b.atLeast, b.Privacy)
}

// exceeded says that an audit proved more than was charged.
func exceeded(atLeast event.Number, charged event.Statement) error {
	return fmt.Errorf("%w: epsilon is at least %.4g, %.4g was charged (%s, unit %s, relation %s, delta %v)", audit.ErrCanary, float64(atLeast), float64(charged.Epsilon), charged.Claim, charged.Unit, charged.Relation, charged.Delta)
}

// tellBounded shows what was found to people.
func (a *app) tellBounded(b bounded, path string) error {
	a.remark("%s\n", b.Played)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t\t\n", b.Head())
	for _, line := range b.Lines {
		fmt.Fprintf(w, "  %s\t%.4f\t%s\n", line.Name, float64(line.Epsilon), line.Note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "\n%s.\n", b.Verdict); err != nil {
		return err
	}
	if b.Holds != "" {
		a.remark("%s", b.Holds)
	}
	for _, line := range b.Assumes {
		a.remark("assumes  %s", line)
	}
	for _, line := range b.NotTried {
		a.remark("not tried  %s", line)
	}
	for _, line := range b.Privacy.NotCovered {
		a.remark("not covered  %s", line)
	}
	a.remark("! %s.", b.Tests)
	if path != "" {
		a.remark("report  %s", path)
	}
	return nil
}
