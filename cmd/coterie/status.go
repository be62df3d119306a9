package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/federation/operator"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/report/progress"
)

// watchEvery is how often --watch asks.
const watchEvery = 2 * time.Second

func (a *app) newStatusCommand() *cobra.Command {
	var f struct {
		identity string
		server   string
		watch    bool
	}
	cmd := &cobra.Command{
		Use:   "status FILE | status --identity DIR",
		Short: "Who is there, and what the server waits for",
		Long: "Ask a federation's server how it stands: the round and its time, who is connected, who is missing since when, who has not\n" +
			"answered, what each participant says it has spent.\n" +
			"At the server FILE is that of coterie serve: its authority's folder is all that is needed. Elsewhere enrol once with an\n" +
			"invitation that coterie ca invite NAME --operator made, and name the folder of that identity.",
		Example: "  coterie status serve.yaml\n  coterie join --invite watch.invite --identity watch\n  coterie status --identity watch --watch",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (f.identity != "") {
				return fmt.Errorf("%w: name the server's file, or the folder of an operator's identity with --identity", errUsage)
			}
			o, err := a.operator(cmd, args, f.identity, f.server)
			if err != nil {
				return err
			}
			defer o.Close()
			if f.watch {
				return a.watchStatus(cmd.Context(), o)
			}
			return a.showStatus(cmd.Context(), o, false)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.identity, "identity", "", "folder of an operator's identity, where FILE is not at hand")
	flags.StringVar(&f.server, "server", "", "address of the server, host:port (default: the file's or the invitation's)")
	flags.BoolVar(&f.watch, "watch", false, "ask again every 2 seconds, until Ctrl-C")
	return cmd
}

// operator is whoever asks.
func (a *app) operator(cmd *cobra.Command, args []string, identity, server string) (*operator.Operator, error) {
	if identity != "" {
		log, err := a.logger("warn")
		if err != nil {
			return nil, err
		}
		return operator.Enrolled(identity, server, log)
	}
	text, err := readRunFile(args[0], cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	file, err := plan.LoadServeFile(text, filepath.Dir(args[0]))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	return operator.AtServer(file, server)
}

// showStatus asks once and prints the answer.
func (a *app) showStatus(ctx context.Context, o *operator.Operator, redraw bool) error {
	st, err := o.Status(ctx)
	if err != nil {
		return err
	}
	if a.output == "json" {
		return a.printJSON(st)
	}
	if redraw {
		fmt.Fprint(a.stdout, "\x1b[H\x1b[2J") // to the corner, and clear
	}
	return printStatus(a.stdout, o.Address(), st)
}

// watchStatus asks until ctx ends. A server that does not answer is told of and asked
// again: it may be started anew.
func (a *app) watchStatus(ctx context.Context, o *operator.Operator) error {
	redraw := progress.IsTerminal(a.stdout)
	for {
		err := a.showStatus(ctx, o, redraw)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			a.printError(err)
		case a.output == "text" && !redraw:
			fmt.Fprintln(a.stdout)
		}
		if err := transfer.Wait(ctx, nil, watchEvery); errors.Is(err, transfer.ErrInterrupted) {
			return nil
		}
	}
}
