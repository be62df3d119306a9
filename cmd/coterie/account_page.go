package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/web/calculator"
)

func (a *app) newAccountPageCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Write the calculator as one HTML file that works without a network",
		Long: "Write the accountant with sliders, curves and the sentence to publish as one HTML file: open it in a browser, put it on a site, hand it on.\n" +
			"The file holds this program's accountant, compiled to WebAssembly: it gives the numbers of the other account commands, sends nothing and loads nothing.",
		Example: "  coterie account page --out calculator.html",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return fmt.Errorf("%w: --out wants the name of a file, for example calculator.html", errUsage)
			}
			full, err := filepath.Abs(out)
			if err != nil {
				return fmt.Errorf("find the file: %w", err)
			}
			if err := durable.Replace(full, 0o644, func(w io.Writer) error { return calculator.HTML(w, version()) }); err != nil {
				return err
			}
			return a.tell(struct {
				Out string `json:"out"`
			}{full}, "the calculator is written to %s: open it in a browser", full)
		},
	}
	cmd.Flags().StringVar(&out, "out", "calculator.html", "the file")
	return cmd
}
