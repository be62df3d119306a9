package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/whatif"
)

func (a *app) newAccountCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "account",
		Short: "What does it cost? Accountants and what-if for privacy budgets",
		Long: "Compute epsilon from noise, noise from epsilon, what is left, and what tuning or selection add.\n" +
			"Noise is S = sigma/C, the standard deviation over the clip bound; the relation's factor is applied for you.",
		Example: "  coterie account dpsgd --noise 1.1 --batch 512 --examples 60000 --epochs 10 --delta 1e-5\n" +
			"  coterie account calibrate --epsilon 3 --delta 1e-5 --rate 0.00853 --steps 1180",
	}, a.newAccountGaussianCommand(), a.newAccountDPSGDCommand(), a.newAccountCalibrateCommand(),
		a.newAccountMetricCommand(), a.newAccountNodeCommand(), a.newAccountSelectionCommand(),
		a.newAccountTuningCommand(), a.newAccountSiloCommand(), a.newAccountMeanCommand(), a.newAccountPageCommand())
}

// accounting is a command without arguments that needs some of its flags.
func accounting(cmd *cobra.Command, needs []string, run func(cmd *cobra.Command) error) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := needFlags(cmd, needs...); err != nil {
			return err
		}
		return run(cmd)
	}
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
	return account.Terms{Unit: event.Unit(f.unit), Relation: cmp.Or(event.Relation(f.relation), fitting), Claim: event.ClaimProved}
}

// release is something that a participant noises, on those terms.
func (f *accountFlags) release(fitting event.Relation, what event.Event) event.Release {
	t := f.terms(fitting)
	return event.Release{Unit: t.Unit, Relation: t.Relation, Claim: t.Claim, Trust: event.TrustLocal, What: what}
}

func (f *accountFlags) method() account.Method { return account.Method(f.accountant) }

// lattice is where exact noise is drawn; nil for continuous noise.
func (f *accountFlags) lattice() *account.Lattice {
	if f.exact == 0 {
		return nil
	}
	return &account.Lattice{Coordinates: f.exact}
}

// by is how a number is to be found.
func (f *accountFlags) by() whatif.By {
	return whatif.By{Delta: f.delta, Method: f.method(), Orders: f.orders, Lattice: f.lattice()}
}

// spend is what a release costs, by the accountant and the noise that were asked for.
func (f *accountFlags) spend(r event.Release) (account.Guarantee, error) {
	if err := f.check(); err != nil {
		return account.Guarantee{}, err
	}
	g, err := f.by().Spend(r)
	return g, accountError(err)
}

// check refuses what no accountant would see.
func (f *accountFlags) check() error {
	if f.exact < 0 {
		return fmt.Errorf("%w: --exact-noise %d: want a number of coordinates", errUsage, f.exact)
	}
	return nil
}

// answer prints what was found, with the explanation of what was released if asked for.
func (a *app) answer(answer whatif.Answer, f accountFlags) error {
	lines := answer.Lines
	if f.explain && a.output != "json" {
		more, err := account.Explain(answer.Release, f.delta, f.lattice(), f.orders...)
		if err != nil {
			return accountError(err)
		}
		lines = append(lines, more...)
	}
	return a.answerLines(answer, lines)
}

// answerLines prints the sentence to publish and lines beneath it, or the privacy object
// with the question's own keys.
func (a *app) answerLines(answer whatif.Answer, below []string) error {
	if a.output == "json" {
		return a.printJSON(answer.Fields())
	}
	lines := []string{answer.Cost.Sentence()}
	if answer.Cost.Accountant != "" {
		lines = append(lines, "  accountant: "+whatif.AccountantInWords(answer.Cost))
	}
	return a.printLines(append(lines, indented(below)...)...)
}

// indented are lines that belong to the one above them.
func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = "  " + line
	}
	return out
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
