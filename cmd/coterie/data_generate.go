package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/durable"
)

// newDataGenerateCommand writes invented data to try the program on.
func (a *app) newDataGenerateCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "generate",
		Short:   "Write invented data to try the program on",
		Example: "  coterie data generate clinics --clients 12 --out patients.csv\n  coterie data generate population --persons 200000 --out people",
	}, a.newGenerateClinicsCommand(), a.newGeneratePopulationCommand())
}

func (a *app) newGenerateClinicsCommand() *cobra.Command {
	var c data.Clinics
	var out string
	cmd := &cobra.Command{
		Use:   "clinics",
		Short: "Write an invented table to try the program on",
		Long: "Write an invented table of patients of several clinics as CSV: numbers, categories, missing cells, a column that names the\n" +
			"clinic, and whether a patient came back, which depends on age and habits otherwise from clinic to clinic. It is nobody's data.",
		Example: "  coterie data generate clinics --clients 12 --out patients.csv",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.writeTable(out, c.Write) },
	}
	cmd.Flags().IntVar(&c.Clients, "clients", 12, "clinics")
	cmd.Flags().IntVar(&c.Rows, "rows", 600, "rows of a clinic, give or take a half")
	cmd.Flags().Uint64Var(&c.Seed, "seed", 1, "everything follows from it")
	cmd.Flags().StringVar(&out, "out", "patients.csv", "the file")
	return cmd
}

// newDataDealCommand deals a built-in table out to sites, as one table with a column that
// names them.
func (a *app) newDataDealCommand() *cobra.Command {
	var sites int
	var seed uint64
	var out, folder string
	cmd := &cobra.Command{
		Use:   "deal adult",
		Short: "Write a built-in table as one of several sites",
		Long: "Write UCI's Adult as one CSV whose column client names sites of different size and make-up: site c of k has the weight\n" +
			"1.22^c, times exp(0.5*z*cos(2*pi*c/k) + 0.5*a*sin(2*pi*c/k)) with z = (years of education - 10)/2.5, a = (age - 38)/13.5.",
		Example: "  coterie data deal adult --clients 12 --out adult.csv --data FOLDER",
		Args:    cobra.ExactArgs(1), ValidArgs: []string{"adult"},
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] != "adult" {
				return fmt.Errorf("%w: %q cannot be dealt out; allowed: adult", errUsage, args[0])
			}
			if err := data.NewFolder(dataFolder(folder)).Has("adult"); err != nil {
				return err
			}
			return a.writeTable(out, func(w io.Writer) error { return data.DealAdult(dataFolder(folder), w, sites, seed) })
		},
	}
	cmd.Flags().IntVar(&sites, "clients", 12, "sites")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "which row goes where follows from it")
	cmd.Flags().StringVar(&out, "out", "adult.csv", "the file")
	addDataFolder(cmd.Flags(), &folder)
	return cmd
}

// writeTable leaves a whole table or none.
func (a *app) writeTable(path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if err := durable.WriteFile(path, text.Bytes(), 0o644); err != nil {
		return err
	}
	return a.tell(map[string]any{"file": path, "bytes": text.Len()}, "table   %s (%d bytes)", path, text.Len())
}
