package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/federation/backup"
)

func (a *app) newBackupCommand() *cobra.Command {
	o := backup.Options{Version: version(), Now: time.Now}
	cmd := &cobra.Command{
		Use:   "backup SERVE.yaml --out FILE",
		Short: "Back up a federation's server, while it runs",
		Long: "Write all that a server must not lose into one file: the run's rounds and receipts with the releases of the open round,\n" +
			"the authority with its keys, the serve file and the run file. The server may run. The file is as secret as the\n" +
			"authority: whoever has it can let anybody in. Participants' ledgers are not in it, and must never be restored.",
		Example: "  coterie backup serve.yaml --out monday.backup\n  coterie restore monday.backup restored",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Out == "" {
				return fmt.Errorf("%w: --out names no file", errUsage)
			}
			o.Serve = args[0]
			w, err := backup.Write(cmd.Context(), o)
			if err != nil {
				return backupError(err)
			}
			return a.tell(w, "backup  %s, %d files, %d bytes\nholds   %s", w.File, len(w.Files), w.Bytes, holds(w.Manifest))
		},
	}
	cmd.Flags().StringVar(&o.Out, "out", "", "the file to write; one that is there is not touched")
	cmd.Flags().BoolVar(&o.WithoutStore, "without-store", false, "leave a PostgreSQL store out: dump it with pg_dump")
	return cmd
}

func (a *app) newRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE DIR",
		Short: "Put a server's backup into a folder",
		Long: "Check every byte of a backup, and put what it holds into DIR, which must be empty or absent. Then serve it: rounds that\n" +
			"were made since are asked for again, and participants send the bytes that they sent before; nothing is paid twice.",
		Example: "  coterie restore monday.backup restored\n  coterie serve restored/serve.yaml",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := backup.Restore(args[0], args[1])
			if err != nil {
				return backupError(err)
			}
			next := afterRestore(r)
			return a.tell(struct {
				backup.Restored
				Next []string `json:"next"`
			}{r, next}, "restored  %s\nholds     %s\n\nNext:\n- %s", r.Directory, holds(r.Manifest), strings.Join(next, "\n- "))
		},
	}
}

// backupError tells wrong usage from failure.
func backupError(err error) error {
	if errors.Is(err, backup.ErrUsage) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

// holds says in words how far the run of a backup had come.
func holds(m backup.Manifest) string {
	at := m.Created.Format("2006-01-02 15:04:05 UTC")
	switch {
	case m.Store == "postgresql":
		return fmt.Sprintf("authority and files of federation %s at %s; NOT its PostgreSQL store", m.Federation, at)
	case m.Run == "":
		return fmt.Sprintf("federation %s at %s, before its first run", m.Federation, at)
	}
	return fmt.Sprintf("federation %s at %s: run %s, %d rounds begun, %d releases of the open one", m.Federation, at, m.Run, m.Rounds, m.Released)
}

// afterRestore is what is left to be done by hand.
func afterRestore(r backup.Restored) []string {
	at := r.Created.Format("2006-01-02 15:04 UTC")
	var next []string
	for _, o := range r.Outside {
		next = append(next, fmt.Sprintf("the serve file has %s: %s, which is not beside it; what was there lies in %s: move it there, or change the line",
			o.Key, o.Path, filepath.Join(r.Directory, filepath.FromSlash(o.Name))))
	}
	if r.Store == "postgresql" {
		next = append(next, "restore the PostgreSQL store from its own dump, for example pg_restore --clean --if-exists --dbname=URL store.dump")
	}
	return append(next,
		"make sure that the old server does not run any more, and that participants reach the new one at the old address",
		"coterie serve "+filepath.Join(r.Directory, r.Serve),
		"revoke again whom you revoked since "+at+"; invite again who enrolled for the first time since then: the restored server does not know them (who has renewed a certificate since is let in)",
	)
}
