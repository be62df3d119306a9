package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/sim"
)

func (a *app) newReportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR...",
		Short: "Write the one-file report of finished runs again",
		Long: "Write the one-file report again from the results in run directories. Several directories are shown side by side in the first one's report.\n" +
			"The folder that coterie serve leaves gets the report of its federation: who released, what each says it has spent, how the rounds went.",
		Example: "  coterie report coterie-runs/20261115-120000-ifca-1a2b3c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, dirs []string) error {
			path, err := filepath.Abs(filepath.Join(dirs[0], sim.ReportFile))
			if err != nil {
				return err
			}
			if err := report.Rewrite(path, dirs); err != nil {
				return err
			}
			return a.tell(map[string]string{"report": path}, "report  %s", path)
		},
	}
}
