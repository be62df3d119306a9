package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/draft"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/sim"
)

// newInitCommand drafts the files of a first run on one's own data.
func (a *app) newInitCommand() *cobra.Command {
	var r draft.Request
	var force bool
	cmd := &cobra.Command{
		Use:   "init FILE|FOLDER",
		Short: "Look at your own data and write the files of a first run on them",
		Long: "Look at a table (CSV or Parquet: a file with a column that names the client, or a folder or pattern of one file a client), at\n" +
			"pictures (FOLDER/CLIENT/CLASS/FILE) or at text (a .txt or .txt.gz file, or a folder of one a client) where they lie, and write\n" +
			"commented files: run.yaml to train in simulation, and serve.yaml, join.yaml and policy.yaml for a federation; of text run.yaml\n" +
			"and a vocabulary. Columns are taken for numbers, categories, yes/no; identifiers, free\n" +
			"text, dates and constants are left out, and the file says so; lists and groups in Parquet are not looked at.\n\n" +
			"Ranges, lists and sizes in them are read off the data. Each is marked \"not public: replace or pay\" and listed under\n" +
			"data.not_public; until that list is empty a run says heuristic instead of proved. The files contain statements about your\n" +
			"data: they are for you.",
		Example: "  coterie init patients.csv --client hospital --target readmitted --out study\n" +
			"  coterie init wards/ --target length_of_stay --out study\n" +
			"  coterie init scans/ --out study\n" +
			"  coterie init letters/ --out study",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Path = args[0]
			return a.init(cmd.Context(), r, force)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Client, "client", "", "column that names the client; without it every file is a client")
	flags.StringVar(&r.Target, "target", "", "column that is to be predicted; pictures and text have none")
	flags.StringVar(&r.Out, "out", "", "folder for the files (required)")
	flags.BoolVar(&force, "force", false, "replace files of these names that are there already")
	return cmd
}

func (a *app) init(ctx context.Context, r draft.Request, force bool) error {
	if r.Out == "" {
		return fmt.Errorf("%w: --out is missing: name a folder for the files, for example --out study", errUsage)
	}
	d, err := draft.New(ctx, r)
	if errors.Is(err, draft.ErrRequest) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	if err := checkDrafted(d.Files, r.Out); err != nil {
		return err
	}
	if err := writeDrafted(d.Files, r.Out, force); err != nil {
		return err
	}
	if a.output == "json" {
		return a.printJSON(struct {
			Directory string `json:"directory"`
			*draft.Draft
		}{r.Out, d})
	}
	return a.printDrafted(d, r.Out)
}

// checkDrafted reads the files as the commands will that they are for.
func checkDrafted(files []draft.File, dir string) error {
	for _, f := range files {
		text, err := []byte(f.Text), error(nil)
		switch f.Name {
		case "run.yaml":
			_, err = config.Resolve(text, nil, sim.Checks()...)
		case "serve.yaml":
			_, err = plan.LoadServeFile(text, dir)
		case "join.yaml":
			_, err = plan.LoadJoinFile(text, dir)
		case "policy.yaml":
			_, err = plan.LoadPolicy(text)
		}
		if err != nil {
			return fmt.Errorf("nothing was written: the drafted %s would be refused: %w", f.Name, err)
		}
	}
	return nil
}

// writeDrafted writes all files or none. Only their owner can read them: they tell of
// the data.
func writeDrafted(files []draft.File, dir string, force bool) (err error) {
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if _, err := os.Lstat(path); err == nil && !force {
			return fmt.Errorf("%w: %s is there already: name another folder with --out, or replace it with --force", errUsage, path)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write the files: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the files: %w", err)
	}
	stage, err := os.MkdirTemp(dir, ".init-")
	if err != nil {
		return fmt.Errorf("write the files: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	for _, f := range files {
		if err := durable.WriteFile(filepath.Join(stage, f.Name), []byte(f.Text), 0o600); err != nil {
			return err
		}
	}
	for _, f := range files { // all of them are on the disk by now
		if err := os.Rename(filepath.Join(stage, f.Name), filepath.Join(dir, f.Name)); err != nil {
			return fmt.Errorf("write the files: %w", err)
		}
	}
	return durable.SyncDirectory(dir)
}

func (a *app) printDrafted(d *draft.Draft, dir string) error {
	if a.quiet {
		return nil
	}
	a.remark("%d rows of %s; %s is predicted (%s)\n", d.Rows, prose.Counted(len(d.Clients), "client", "clients"), d.Target.Name, d.Task)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, c := range d.Columns {
		kind := c.Type
		if kind == "" {
			kind = "left out"
		}
		var about []string
		if len(c.Range) == 2 {
			about = append(about, fmt.Sprintf("%v to %v", c.Range[0], c.Range[1]))
		}
		if len(c.Values) > 0 {
			about = append(about, fmt.Sprintf("%d values", len(c.Values)))
		}
		if c.Missing > 0 {
			about = append(about, fmt.Sprintf("%d missing", c.Missing))
		}
		if c.Sensitive {
			about = append(about, "sensitive")
		}
		if c.Why != "" {
			about = append(about, c.Why)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, kind, strings.Join(about, "; "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.remark("\nwritten to %s:", dir)
	for _, f := range d.Files {
		a.remark("  %s", f.Name)
	}
	run := filepath.Join(dir, "run.yaml")
	use := map[string]string{
		"table": "coterie predict result --data NEW.csv --out predictions.csv", "pictures": "coterie predict result --data NEW-FOLDER --out predictions.csv",
		"text": "coterie evaluate result --data NEW.txt",
	}[d.Kind]
	a.remark("\nCareful: %s.\n%d values were taken from the data; until they are replaced or paid for, the run's privacy claim is heuristic: see the comments in %s.\n\n"+
		"Next:\n  coterie data check %s\n  coterie run %s --out result\n  %s", draft.ForYou, len(d.NotPublic), run, run, run, use)
	return nil
}
