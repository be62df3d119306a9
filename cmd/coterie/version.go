package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/model"
)

func (a *app) newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the Go release and the kernel set",
		Example: "  coterie version --output json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.output == "json" {
				return a.printJSON(map[string]string{"version": version(), "go": runtime.Version(), "kernel": model.Kernel()})
			}
			_, err := fmt.Fprintf(a.stdout, "coterie %s (%s, kernel %s)\n", version(), runtime.Version(), model.Kernel())
			return err
		},
	}
}
