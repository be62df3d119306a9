package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/dp/whatif"
)

func (a *app) newAccountMetricCommand() *cobra.Command {
	var plan account.MetricPlan
	var explain bool
	cmd := accounting(&cobra.Command{
		Use:     "metric",
		Short:   "What d-private releases lose: at their radius, and at a fixed distance",
		Example: "  coterie account metric --dimension 2 --noise-multiplier 5 --releases 6 --radius 0.5 --distance 1",
	}, []string{"dimension", "noise-multiplier", "releases"}, func(*cobra.Command) error {
		answer, err := whatif.Metric(plan)
		if err != nil {
			return accountError(err)
		}
		var lines []string
		if explain {
			lines = append(lines, "Each release has a density falling as exp(-eps*|x|), eps = dimension/(noise multiplier*radius),",
				fmt.Sprintf("so two points at the radius lose %.6g in each of %d releases, and the losses add up.", answer.Own["epsilon_per_release"], plan.Releases))
		}
		return a.answerLines(answer, append(lines, answer.Lines...))
	})
	flags := cmd.Flags()
	flags.IntVar(&plan.Dimension, "dimension", 0, "number of parameters that are released")
	flags.Float64Var(&plan.NoiseMultiplier, "noise-multiplier", 0, "nu")
	flags.Int64Var(&plan.Releases, "releases", 0, "how often one participant releases")
	flags.Float64Var(&plan.Radius, "radius", 0, "the public radius that the noise was tuned to")
	flags.Float64Var(&plan.Distance, "distance", 0, "also tell the loss at this distance; wants --radius")
	flags.BoolVar(&explain, "explain", false, "show how the number came about")
	return cmd
}

func (a *app) newAccountNodeCommand() *cobra.Command {
	var f accountFlags
	var e event.NodeGaussian
	var epochs int64
	cmd := accounting(&cobra.Command{
		Use:   "node",
		Short: "Epsilon of protecting a node of a graph with all examples that contain it",
		Long: "Epsilon of protecting a node with all examples that contain it. The default is theorem 2.4.4 (sensitivity 2*rho*C, for both relations); --formula authors-code is a quarter of its exponent, valid for neither relation, and labelled heuristic.\n" +
			"Under replace-one the first number is of a node that is replaced and keeps its places in others' examples, the second of one that is replaced together with its contacts: --degree is the same for both.",
		Example: "  coterie account node --nodes 2609976 --degree 20 --batch 512 --epochs 2 --noise 4.5 --delta 3.8e-7",
	}, []string{"nodes", "degree", "batch", "epochs", "noise", "delta"}, func(*cobra.Command) error {
		steps, err := account.Epochs(epochs, e.Batch, e.Nodes)
		if err != nil {
			return accountError(err)
		}
		r := f.release(event.ReplaceOne, event.Repeated{Times: steps, Of: e})
		r.Unit = event.UnitNode
		if e.Formula == event.AuthorsCode {
			r.Claim = event.ClaimHeuristic
		}
		g, err := f.spend(r)
		if err != nil {
			return err
		}
		g.NotCovered = append(g.NotCovered, "examples beyond --degree: occurrences must be capped, sampling neighbours does not bound them")
		own := map[string]any{"noise": e.Noise, "steps": steps, "formula": e.Formula, "degree": e.Occurrences}
		answer := whatif.Answer{Cost: g, Own: own, Release: r}
		if r.Relation != event.ReplaceOne {
			return a.answer(answer, f)
		}
		answer.Cost.NotCovered = append(answer.Cost.NotCovered, "contacts that are replaced with the node: they have a number of their own")
		moved, changed, err := f.replacedWithContacts(e, r, steps)
		if err != nil {
			return err
		}
		own["contacts_replaced"] = map[string]any{"examples": changed, "epsilon": event.Number(moved.Epsilon)}
		answer.Lines = []string{fmt.Sprintf("replaced together with its contacts, a node changes up to %d examples (2*%d-1) instead of %d: epsilon %s (%s)",
			changed, e.Occurrences, e.Occurrences, upTo(event.Number(moved.Epsilon), 6), account.InTerms(moved.Statement()))}
		return a.answer(answer, f)
	})
	f.register(cmd)
	flags := cmd.Flags()
	flags.Int64Var(&e.Nodes, "nodes", 0, "number of nodes, and of examples")
	flags.Int64Var(&e.Occurrences, "degree", 0, "most examples that contain one node, itself included")
	flags.Int64Var(&e.Batch, "batch", 0, "batch size")
	flags.Int64Var(&epochs, "epochs", 0, "number of epochs")
	flags.Float64Var(&e.Noise, "noise", 0, "S = sigma/C")
	flags.StringVar(&e.Formula, "formula", event.Theorem, "theorem or authors-code")
	return cmd
}

// replacedWithContacts is what the same steps cost if a node is replaced together with its
// contacts: the examples that it was in change, and as many that it is in now, but its own is
// the same (docs/proofs/node-relations.md).
func (f *accountFlags) replacedWithContacts(e event.NodeGaussian, r event.Release, steps int64) (g account.Guarantee, changed int64, err error) {
	e.Occurrences = min(2*e.Occurrences-1, e.Nodes)
	r.What = event.Repeated{Times: steps, Of: e}
	g, err = f.spend(r)
	return g, e.Occurrences, err
}

// stepsFlags are an optional run of sampled steps beside or under something else.
type stepsFlags struct{ whatif.Steps }

func (f *stepsFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Float64Var(&f.Noise, "noise", 0, "S = sigma/C")
	flags.Float64Var(&f.Rate, "rate", 1, "Poisson sampling rate")
	flags.Int64Var(&f.Times, "steps", 1, "number of batches")
}

func (a *app) newAccountSelectionCommand() *cobra.Command {
	var f accountFlags
	var s stepsFlags
	var e event.Selection
	var selections int64
	cmd := accounting(&cobra.Command{
		Use:     "selection",
		Short:   "Epsilon of private choices, alone or beside noised gradient steps",
		Example: "  coterie account selection --epsilon 0.05 --selections 400 --noise 4 --rate 0.0734 --steps 5213 --delta 1e-7",
	}, []string{"epsilon", "selections", "delta"}, func(cmd *cobra.Command) error {
		parts := []event.Event{event.Repeated{Times: selections, Of: e}}
		own := map[string]any{"selection_epsilon": e.Epsilon, "selections": selections, "mechanism": e.Mechanism}
		if cmd.Flags().Changed("noise") {
			parts = append(parts, s.Event())
			own["noise"], own["rate"], own["steps"] = s.Noise, s.Rate, s.Times
		} else if cmd.Flags().Changed("rate") || cmd.Flags().Changed("steps") {
			return fmt.Errorf("%w: --rate and --steps want --noise", errUsage)
		}
		r := f.release(event.AddRemove, event.Composed{Parts: parts})
		g, err := f.spend(r)
		if err != nil {
			return err
		}
		return a.answer(whatif.Answer{Cost: g, Own: own, Release: r}, f)
	})
	f.register(cmd)
	s.register(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&e.Epsilon, "epsilon", 0, "pure epsilon of one choice")
	flags.Int64Var(&selections, "selections", 0, "number of choices")
	flags.StringVar(&e.Mechanism, "mechanism", event.Exponential, "exponential, permute-and-flip or noisy-max")
	return cmd
}

func (a *app) newAccountTuningCommand() *cobra.Command {
	var f accountFlags
	var s stepsFlags
	var e event.Tuning
	cmd := accounting(&cobra.Command{
		Use:     "tuning",
		Short:   "Epsilon of the best of a random number of runs",
		Example: "  coterie account tuning --noise 5 --delta 1e-5 --distribution tnb --mean-trials 10 --eta 0",
	}, []string{"noise", "delta"}, func(*cobra.Command) error {
		if err := f.check(); err != nil {
			return err
		}
		answer, err := whatif.Tuning{By: f.by(), Terms: f.terms(event.AddRemove), Run: s.Steps, Trials: e}.Answer()
		if err != nil {
			return accountError(err)
		}
		return a.answer(answer, f)
	})
	f.register(cmd)
	s.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&e.Distribution, "distribution", event.TruncatedNegativeBinomial, "of the number of trials: tnb, poisson or naive")
	flags.Float64Var(&e.Mean, "mean-trials", 0, "mean number of trials")
	flags.Float64Var(&e.Eta, "eta", 0, "shape of the truncated negative binomial, above -1")
	flags.Float64Var(&e.Gamma, "gamma", 0, "its gamma, instead of --mean-trials")
	flags.Int64Var(&e.Trials, "trials", 0, "fixed number of trials, with --distribution naive")
	return cmd
}

func (a *app) newAccountSiloCommand() *cobra.Command {
	var accountant string
	var explain bool
	cmd := &cobra.Command{
		Use:   "silo FILE",
		Short: "Noise and spend of every silo, and the federation's line",
		Long: "Read a CSV file (commas, semicolons or tabs) with the columns silo, examples, batch, epochs, epsilon, delta; find every silo's noise,\n" +
			"and say what the federation as a whole promises: the largest epsilon and delta, since silos are disjoint.",
		Example: "  coterie account silo silos.csv --output json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			plans, err := account.ReadSiloPlans(file)
			if err != nil {
				return accountError(fmt.Errorf("%s: %w", args[0], err))
			}
			all, silos, err := whatif.Silos(account.Method(accountant), plans...)
			if err != nil {
				return accountError(fmt.Errorf("%s: %w", args[0], err))
			}
			if a.output == "json" {
				return a.answerLines(all, nil)
			}
			for _, s := range silos {
				if _, err := fmt.Fprintf(a.stdout, "%-16s noise %-10.6g rate %-10.6g steps %-8d %s\n",
					s.Plan.Name, s.Training.Noise, s.Training.Rate, s.Training.Steps, s.Cost.Told()); err != nil {
					return err
				}
				if explain {
					if err := a.explainSilo(s); err != nil {
						return err
					}
				}
			}
			return a.answerLines(all, nil)
		},
	}
	cmd.Flags().StringVar(&accountant, "accountant", string(account.MethodBest), "rdp; pld, for schedules fixed in advance; best: the smaller number")
	cmd.Flags().BoolVar(&explain, "explain", false, "show how the numbers came about")
	return cmd
}

func (a *app) explainSilo(s account.SiloCost) error {
	r, err := s.Training.Release()
	if err != nil {
		return accountError(err)
	}
	lines, err := account.Explain(r, s.Plan.Delta, nil)
	if err != nil {
		return accountError(err)
	}
	return a.printLines(indented(lines)...)
}
