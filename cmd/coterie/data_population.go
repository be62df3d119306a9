package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/sim"
)

type populationFlags struct {
	contacts.Settings
	out, data string
}

// newGeneratePopulationCommand writes an invented population as the challenge's files.
func (a *app) newGeneratePopulationCommand() *cobra.Command {
	var f populationFlags
	cmd := &cobra.Command{
		Use:   "population",
		Short: "Write an invented population with its contacts and an epidemic, as the pandemic challenge's eight CSV files",
		Long: "Write an invented population: households drawn whole from the challenge's published persons (or invented ones, where the data\n" +
			"folder is not at hand), schools, workplaces, shops, everybody's contacts of a day with place and time, and an epidemic of 64 days,\n" +
			"of which 57 are known and the last week is to be foretold. The files are written whole or not at all, and are the same for any\n" +
			"number of workers. A million persons take about 2 GB. It is nobody's data.",
		Example: "  coterie data generate population --persons 200000 --seed 1 --out people",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.generatePopulation(cmd.Context(), f) },
	}
	cmd.Flags().IntVar(&f.Persons, "persons", 20000, "persons; the last household is whole, so there may be a few more")
	cmd.Flags().Uint64Var(&f.Seed, "seed", 1, "everything follows from it")
	cmd.Flags().IntVar(&f.Workers, "workers", 0, "cores to use (0: all); no byte depends on it")
	cmd.Flags().StringVar(&f.out, "out", "people", "the folder, which must be new or empty")
	cmd.Flags().StringVar(&f.data, "data", "", "folder of real data (default: the environment variable COTERIE_DATA)")
	return cmd
}

// generated is what `coterie data generate population` prints.
type generated struct {
	contacts.Written
	Seed       uint64           `json:"seed"`
	Households string           `json:"households_from"`
	Figures    contacts.Figures `json:"figures"`
}

func (a *app) generatePopulation(ctx context.Context, f populationFlags) error {
	if err := contacts.CheckFolder(f.out); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	var err error
	if path := data.NewFolder(dataFolder(f.data)).Find(contacts.HouseholdsFile); path != "" {
		if f.Households, err = contacts.ReadHouseholds(path); err != nil {
			return err
		}
	}
	bar := a.progress("population", 1)
	defer bar.Done()
	f.Progress = func(share float64, what string) { bar.Show(share/4, percentDone(share/4, what)) }
	p, err := contacts.Generate(ctx, f.Settings)
	if errors.Is(err, contacts.ErrSettings) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	var written contacts.Written
	if err == nil {
		written, err = p.Write(ctx, f.out, contacts.Writing{Workers: f.Workers, Progress: func(share float64, what string) { bar.Show(.25+.75*share, percentDone(.25+.75*share, what)) }})
	}
	if ctx.Err() != nil {
		return sim.ErrInterrupted
	}
	if err != nil {
		return err
	}
	bar.Done()
	g := generated{written, p.Seed, p.Source, p.Graph().Figures()}
	if a.output == "json" {
		return a.printJSON(g)
	}
	bytes := int64(0)
	for _, file := range g.Files {
		bytes += file.Bytes
	}
	if err := a.printFigures(g.Figures); err != nil {
		return err
	}
	a.remark("\nhouseholds from: %s\nfolder  %s (%d files, %d bytes)", g.Households, g.Folder, len(g.Files), bytes)
	return nil
}

// printFigures shows a population to people.
func (a *app) printFigures(f contacts.Figures) error {
	var quantiles, kinds []string
	for _, q := range f.Degree.Quantiles {
		quantiles = append(quantiles, fmt.Sprintf("%g %%: %d", 100*q.Share, q.Contacts))
	}
	for _, k := range f.Kinds {
		kinds = append(kinds, fmt.Sprintf("%s %.1f %%", k.Kind, percent(k.Contacts, f.Contacts)))
	}
	lines := []string{
		fmt.Sprintf("%d persons in %d households, %d contacts", f.Persons, f.Households, f.Contacts),
		"contacts of a person: mean " + fmt.Sprintf("%.1f", f.Degree.Mean) + "; " + strings.Join(quantiles, ", "),
		"contacts by kind: " + strings.Join(kinds, ", "),
		fmt.Sprintf("contacts across regions: %.1f %%", percent(f.AcrossRegions, f.Contacts)),
		fmt.Sprintf("ever infected by day %d: %.2f %%", len(f.Curve)-1, percent(int64(f.Ever), int64(f.Persons))),
	}
	if f.Target != nil {
		lines = append(lines, fmt.Sprintf("newly infected in the week after it: %.3f %%", percent(int64(*f.Target), int64(f.Persons))))
	}
	return a.printLines(lines...)
}

func percent(part, of int64) float64 { return 100 * float64(part) / float64(max(1, of)) }

// percentDone is what a bar says beside its length.
func percentDone(share float64, what string) string {
	return fmt.Sprintf("%.0f %%, %s", 100*share, what)
}
