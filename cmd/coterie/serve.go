package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/web/live"
)

// unsafeSeeded is the flag that both sides need for noise that can be repeated.
const unsafeSeeded = "unsafe-seeded-noise"

func (a *app) newServeCommand() *cobra.Command {
	var f struct {
		data   string
		fresh  bool
		seeded bool
		log    string
	}
	cmd := &cobra.Command{
		Use:   "serve FILE",
		Short: "Run the server of a federation",
		Long: "Run the server of a federation until its run has ended, and leave models and result in a folder.\n" +
			"A server that was stopped or killed goes on in the same round when it is started again. One whose run has finished\n" +
			"hands its models out once more. A run in which nobody released fails.",
		Example: "  coterie ca init ca --server 127.0.0.1:7443\n  coterie serve serve.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readRunFile(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			file, err := plan.LoadServeFile(text, filepath.Dir(args[0]))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			log, err := a.logger(f.log)
			if err != nil {
				return err
			}
			res, err := server.Serve(cmd.Context(), server.Options{
				File: file, New: f.fresh, Seeded: f.seeded, Folder: data.NewFolder(dataFolder(f.data)), Log: log,
				Listening: func(address string) { log.Info("listening", "address", address) },
				Page:      servedPage(file.Out, log),
			})
			if err != nil {
				return err
			}
			judged := ""
			if res.Evaluation != nil {
				judged = fmt.Sprintf("\njudged  %s", res.Evaluation)
			}
			return a.tell(res, "run     %s\nrounds  %d, %d of them abandoned (stopped: %s)\nmodel   %s\nsha256  %s (%s)%s",
				res.RunID, res.Rounds, res.Abandoned, res.Stopped, filepath.Join(res.Directory, "model.safetensors"), res.ModelSHA256, res.Kernel, judged)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "folder of real data, to learn their shape (default: the environment variable COTERIE_DATA)")
	flags.BoolVar(&f.fresh, "new", false, "begin another run, even if the store's last one is this")
	flags.BoolVar(&f.seeded, unsafeSeeded, false, "allow privacy.noise exact-seeded, which protects nobody: to compare with a simulation")
	addLogFlag(flags, &f.log)
	return cmd
}

// pageURLFile holds the address of a server's live page, for its owner alone.
const pageURLFile = "dash.url"

// servedPage injects the live page into a server: for operators' certificates, and, where the
// server has an admin address, for who can read the file in its folder.
func servedPage(out string, log *slog.Logger) func(func() (server.Status, error)) server.Page {
	return func(status func() (server.Status, error)) server.Page {
		page := live.New(live.NewServed(status), version())
		return server.Page{Guarded: page, Alone: func(address string) (http.Handler, error) {
			if err := os.MkdirAll(out, 0o700); err != nil {
				return nil, fmt.Errorf("make room for the live page's address: %w", err)
			}
			path := filepath.Join(out, pageURLFile)
			token, err := live.KeptToken(path, address)
			if err != nil {
				return nil, err
			}
			log.Info("the live page is served", "address", address, "how to open it is in", path)
			return live.NewDoor(token, page), nil
		}}
	}
}

// logger writes JSON lines to standard error: programs read them, people can.
func (a *app) logger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("%w: --log-level %q is not known; allowed: debug, info, warn, error", errUsage, level)
	}
	if a.quiet {
		l = max(l, slog.LevelWarn)
	}
	return slog.New(slog.NewJSONHandler(a.stderr, &slog.HandlerOptions{Level: l})), nil
}
