package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/data/source"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/progress"
)

// The exit codes of every command.
const (
	exitFailure = 1
	exitUsage   = 2 // wrong usage or invalid configuration
	exitRefused = 3 // a budget would be exceeded, or an audit shows that a claim is
	// A server or participant that SIGTERM stopped, as shells count it (128 + 15): a
	// service manager must tell it from a failure, and a script from the end of a run.
	exitStopped = 143
)

// errUsage marks a command line that cannot be understood.
var errUsage = errors.New("wrong usage")

// app is what every command shares.
type app struct {
	stdout, stderr io.Writer
	output         string
	quiet          bool
	started        bool // the command line was understood
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr}
	root := a.newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !a.started {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	a.printError(err)
	switch {
	case errors.Is(err, errUsage), errors.Is(err, config.ErrInvalid), errors.Is(err, source.ErrTable), errors.Is(err, contacts.ErrFiles):
		return exitUsage
	case errors.Is(err, fl.ErrRefused), errors.Is(err, audit.ErrCanary):
		return exitRefused
	case errors.Is(err, transfer.ErrInterrupted) && errors.Is(context.Cause(ctx), errTerminated):
		return exitStopped
	}
	return exitFailure
}

func (a *app) newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "coterie",
		Short: "Private, personalised federated learning",
		Long: "Coterie trains models together while data stay with their owners, and gives every group its own model.\n" +
			"What a run reveals about the data depends on its method: every number says what it protects, from whom, and whether that is proved; some methods promise nothing.",
		Example:       "  coterie demo\n  coterie run examples/group-private.yaml --seed 7",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if a.output != "text" && a.output != "json" {
				return fmt.Errorf("--output %q is not known; allowed: text, json", a.output)
			}
			a.started = true
			return notOver(cmd, args)
		},
	}, a.newDemoCommand(), a.newInitCommand(), a.newRunCommand(), a.newPredictCommand(), a.newEvaluateCommand(), a.newExportCommand(),
		a.newReportCommand(), a.newDashCommand(), a.newReproduceCommand(), a.newAccountCommand(), a.newAuditCommand(), a.newLedgerCommand(), a.newServeCommand(),
		a.newJoinCommand(), a.newStatusCommand(), a.newCACommand(), a.newBackupCommand(), a.newRestoreCommand(), a.newSweepCommand(), a.newWorkerCommand(), a.newDataCommand(), a.newVersionCommand())
	flags := root.PersistentFlags()
	flags.StringVar(&a.output, "output", "text", "text, or json for one object with stable keys")
	flags.BoolVar(&a.quiet, "quiet", false, "no progress and no remarks")
	showVersion := root.Flags().Bool("version", false, "print the version, as coterie version does")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *showVersion {
			return a.printVersion()
		}
		return cmd.Help()
	}
	return root
}

// group is a command that only holds others.
func group(cmd *cobra.Command, others ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(others...)
	return cmd
}

// printError tells people in words, and programs in JSON, what went wrong.
func (a *app) printError(err error) {
	if a.output != "json" {
		fmt.Fprintln(a.stderr, "coterie:", err)
		return
	}
	faults := config.Faults{}
	errors.As(err, &faults)
	var table *source.Faults
	if errors.As(err, &table) {
		for _, f := range table.First {
			message := f.What
			if f.Column != "" {
				message = "column " + f.Column + ": " + message
			}
			faults = append(faults, config.Fault{Path: f.File, Line: max(f.Line, f.Row), Message: message})
		}
	}
	var people *contacts.Faults
	if errors.As(err, &people) {
		for _, f := range people.List {
			faults = append(faults, config.Fault{Path: f.File, Line: f.Line, Message: f.What})
		}
	}
	_ = json.NewEncoder(a.stderr).Encode(struct {
		Error  string        `json:"error"`
		Faults config.Faults `json:"faults"`
	}{err.Error(), faults})
}

// printJSON writes one object on one line.
func (a *app) printJSON(v any) error { return json.NewEncoder(a.stdout).Encode(v) }

// tell is one object for programs, or a remark for people.
func (a *app) tell(result any, format string, args ...any) error {
	if a.output == "json" {
		return a.printJSON(result)
	}
	a.remark(format, args...)
	return nil
}

// printLines writes what every reader of text gets, remarks or not.
func (a *app) printLines(lines ...string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(a.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// remark is for people only.
func (a *app) remark(format string, args ...any) {
	if !a.quiet && a.output == "text" {
		fmt.Fprintf(a.stdout, format+"\n", args...)
	}
}

// progress is a bar or nothing.
func (a *app) progress(what string, total int) *progress.Bar {
	if a.quiet {
		return progress.New(io.Discard, false, what, total)
	}
	return progress.New(a.stderr, progress.IsTerminal(a.stderr), what, total)
}

func (a *app) newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the Go release and the kernel set",
		Example: "  coterie version --output json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	if a.output == "json" {
		return a.printJSON(map[string]string{"version": version(), "go": runtime.Version(), "kernel": model.Kernel()})
	}
	_, err := fmt.Fprintf(a.stdout, "coterie %s (%s, kernel %s)\n", version(), runtime.Version(), model.Kernel())
	return err
}

// version is the release's, or the commit's when built from a checkout.
func version() string { return artifact.Version() }
