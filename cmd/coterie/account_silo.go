package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/account"
)

func (a *app) newAccountSiloCommand() *cobra.Command {
	var accountant string
	var explain bool
	cmd := &cobra.Command{
		Use:   "silo FILE",
		Short: "Noise and spend of every silo, and the federation's line",
		Long: "Read a CSV file with the columns silo, examples, batch, epochs, epsilon, delta; find every silo's noise,\n" +
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
			silos, all, err := account.PlanSilos(account.Method(accountant), plans...)
			if err != nil {
				return accountError(fmt.Errorf("%s: %w", args[0], err))
			}
			if a.output == "json" {
				list := make([]map[string]any, len(silos))
				for i, s := range silos {
					list[i] = s.Cost.Fields()
					list[i]["silo"], list[i]["noise"] = s.Plan.Name, s.Training.Noise
					list[i]["rate"], list[i]["steps"] = s.Training.Rate, s.Training.Steps
				}
				return a.answer(all, map[string]any{"silos": list}, nil)
			}
			for _, s := range silos {
				if _, err := fmt.Fprintf(a.stdout, "%-16s noise %-10.6g rate %-10.6g steps %-8d %s\n",
					s.Plan.Name, s.Training.Noise, s.Training.Rate, s.Training.Steps, told(s.Cost)); err != nil {
					return err
				}
				if explain {
					if err := a.explainSilo(s); err != nil {
						return err
					}
				}
			}
			return a.answer(all, nil, nil)
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
