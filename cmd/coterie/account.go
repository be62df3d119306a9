package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
)

func (a *app) newAccountCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "account",
		Short: "What does it cost? Accountants and what-if for privacy budgets",
		Long: "Compute epsilon from noise, noise from epsilon, what is left, and what tuning or selection add.\n" +
			"Noise is S = sigma/C, the standard deviation over the clip bound; the relation's factor is applied for you.",
		Example: "  coterie account dpsgd --noise 1.1 --batch 512 --examples 60000 --epochs 10 --delta 1e-5\n" +
			"  coterie account calibrate --epsilon 3 --delta 1e-5 --rate 0.00853 --steps 1180",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.newAccountGaussianCommand(), a.newAccountDPSGDCommand(), a.newAccountCalibrateCommand(),
		a.newAccountMetricCommand(), a.newAccountNodeCommand(), a.newAccountSelectionCommand(),
		a.newAccountTuningCommand(), a.newAccountSiloCommand(), a.newAccountMeanCommand())
	return cmd
}

// accountFlags are those that most accounting commands share.
type accountFlags struct {
	delta      float64
	accountant string
	relation   string
	unit       string
	orders     []float64
	exact      int64
	explain    bool
}

func (f *accountFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Float64Var(&f.delta, "delta", 0, "the delta of (epsilon, delta)")
	flags.StringVar(&f.accountant, "accountant", string(account.MethodBest), "rdp; pld, for schedules fixed in advance; best: the smaller number of those that are valid")
	flags.StringVar(&f.relation, "relation", "", "add-remove or replace-one; the default is the one that fits the sampling")
	flags.StringVar(&f.unit, "unit", string(event.UnitExample), "what is protected: example or client")
	flags.Float64SliceVar(&f.orders, "orders", nil, "fix the Rényi orders instead of searching the best")
	flags.Int64Var(&f.exact, "exact-noise", 0, "the noise is exact, as real releases have it, on sums of so many coordinates; 0: continuous noise, as other accountants assume")
	flags.BoolVar(&f.explain, "explain", false, "show how the number came about")
}

// terms are the account's, with the relation that fits unless one was given.
func (f *accountFlags) terms(fitting event.Relation) account.Terms {
	relation := event.Relation(f.relation)
	if relation == "" {
		relation = fitting
	}
	return account.Terms{Unit: event.Unit(f.unit), Relation: relation, Claim: event.ClaimProved}
}

func (f *accountFlags) method() account.Method { return account.Method(f.accountant) }

// lattice is where exact noise is drawn; nil for continuous noise.
func (f *accountFlags) lattice() *account.Lattice {
	if f.exact == 0 {
		return nil
	}
	return &account.Lattice{Coordinates: f.exact}
}

// spend is what a release costs, by the accountant and the noise that were asked for.
func (f *accountFlags) spend(r event.Release) (account.Guarantee, error) {
	if f.exact < 0 {
		return account.Guarantee{}, fmt.Errorf("%w: --exact-noise %d: want a number of coordinates", errUsage, f.exact)
	}
	if l := f.lattice(); l != nil {
		return account.SpendExact(r, f.method(), f.delta, *l, f.orders...)
	}
	return account.Spend(r, f.method(), f.delta, f.orders...)
}

// answer prints a guarantee: the sentence to publish, or the privacy object with
// the command's own keys.
func (a *app) answer(g account.Guarantee, own map[string]any, explanation []string) error {
	if a.output == "json" {
		fields := g.Fields()
		for key, value := range own {
			fields[key] = value
		}
		return a.printJSON(fields)
	}
	if _, err := fmt.Fprintln(a.stdout, g.Sentence()); err != nil {
		return err
	}
	if g.Accountant != "" {
		explanation = append([]string{"accountant: " + accountantInWords(g)}, explanation...)
	}
	for _, line := range explanation {
		if _, err := fmt.Fprintln(a.stdout, "  "+line); err != nil {
			return err
		}
	}
	return nil
}

// accountantInWords names who found a number, and how far it may be from the truth.
func accountantInWords(g account.Guarantee) string {
	if g.Accountant != string(account.MethodPLD) {
		return g.Accountant
	}
	words := "pld, for schedules that are fixed in advance"
	if g.Optimistic == 0 {
		return words
	}
	return fmt.Sprintf("%s; what is less than epsilon %.6g does not hold (%s)", words, g.Optimistic, inTerms(g.Statement()))
}

// answerRelease is answer with the explanation of a release, if asked for.
func (a *app) answerRelease(f accountFlags, r event.Release, g account.Guarantee, own map[string]any, more ...string) error {
	var lines []string
	if f.explain && a.output != "json" {
		var err error
		if lines, err = account.Explain(r, f.delta, f.lattice(), f.orders...); err != nil {
			return accountError(err)
		}
	}
	return a.answer(g, own, append(more, lines...))
}

// accountError marks what the command line can mend; an unreachable target is a
// failure, not a fault of the usage.
func accountError(err error) error {
	if err == nil || errors.Is(err, account.ErrUnreachable) {
		return err
	}
	return fmt.Errorf("%w: %w", errUsage, err)
}

// needFlags refuses a command line that lacks a flag.
func needFlags(cmd *cobra.Command, names ...string) error {
	var missing []string
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s: missing %s", errUsage, cmd.CommandPath(), strings.Join(missing, ", "))
	}
	return nil
}

// oneWay refuses two ways to say the same thing, and none.
func oneWay(cmd *cobra.Command, one, other string) error {
	if cmd.Flags().Changed(one) == cmd.Flags().Changed(other) {
		return fmt.Errorf("%w: %s: want either --%s or --%s", errUsage, cmd.CommandPath(), one, other)
	}
	return nil
}
