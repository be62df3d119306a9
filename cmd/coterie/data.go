package main

import "github.com/spf13/cobra"

// newDataCommand is about data alone: nothing is trained.
func (a *app) newDataCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "data",
		Short:   "Look at data, and make some to try the program on",
		Example: "  coterie data generate clinics --clients 12 --out patients.csv",
	}, a.newDataGenerateCommand(), a.newDataDealCommand())
}
