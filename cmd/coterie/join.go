package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
)

// joinFlags are what `coterie join` takes.
type joinFlags struct {
	invite   string
	identity string
	data     string
	seeded   bool
	log      string
}

func addLogFlag(flags *pflag.FlagSet, level *string) {
	flags.StringVar(level, "log-level", "info", "least level of what is logged to standard error: debug, info, warn or error")
}

func (a *app) newJoinCommand() *cobra.Command {
	var f joinFlags
	cmd := &cobra.Command{
		Use:   "join FILE | join --invite INVITATION --identity DIR",
		Short: "Take part in a federation",
		Long: "Take part in a federation's run with one's own data, within one's own privacy budget.\n" +
			"With --invite: make a key in DIR and have it certified, once, before the first run. INVITATION is the file that you were sent.\n" +
			"Exit code 3 means that the plan breaks the policy, or that the budget is used up: who has released before then waits\n" +
			"for the end of the run all the same, and gets its models. Joining again after the end gets them too, while a server answers.",
		Example: "  coterie join --invite north.invite --identity north/identity\n  coterie join north.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.invite != "" {
				return a.enrol(cmd, f, args)
			}
			return a.join(cmd, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.invite, "invite", "", "file with the invitation that coterie ca invite made; - reads it from standard input")
	flags.StringVar(&f.identity, "identity", "identity", "folder for the key and the certificate, with --invite")
	addDataFolder(flags, &f.data)
	flags.BoolVar(&f.seeded, unsafeSeeded, false, "allow plans with privacy.noise exact-seeded, which protects nobody: to compare with a simulation")
	addLogFlag(flags, &f.log)
	return cmd
}

func (a *app) enrol(cmd *cobra.Command, f joinFlags, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: --invite takes no FILE: enrol first, then join with the file", errUsage)
	}
	if strings.HasPrefix(strings.TrimSpace(f.invite), identity.InvitePrefix) {
		return fmt.Errorf("%w: an invitation is a secret, and everybody on this machine can read command lines: ask for another one, save it in a file that only you can read, and name the file", errUsage)
	}
	log, err := a.logger(f.log)
	if err != nil {
		return err
	}
	text, err := readInvitation(f.invite, cmd.InOrStdin(), log)
	if err != nil {
		return err
	}
	m, err := participant.Enrol(cmd.Context(), string(text), f.identity, log)
	if err != nil {
		return err
	}
	return a.tell(struct {
		Participant string        `json:"participant"`
		Role        identity.Role `json:"role"`
		Federation  string        `json:"federation"`
		Server      string        `json:"server"`
		Expires     string        `json:"expires"`
		Identity    string        `json:"identity"`
	}{m.Name(), m.Role(), m.Federation(), m.Server(), m.Expires().UTC().Format("2006-01-02T15:04:05Z"), f.identity},
		"%s is enrolled in federation %s until %s; the key is in %s",
		m.Name(), m.Federation(), m.Expires().UTC().Format("2006-01-02 15:04 UTC"), f.identity)
}

// readInvitation reads a file, or what another program hands over.
func readInvitation(name string, stdin io.Reader, log *slog.Logger) ([]byte, error) {
	const most = 4096 // more than any invitation has
	if name == "-" {
		return io.ReadAll(io.LimitReader(stdin, most))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: read the invitation: %w", errUsage, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("the invitation may be read by others: chmod 600 it", "file", name, "mode", info.Mode().Perm().String())
	}
	return io.ReadAll(io.LimitReader(f, most))
}

func (a *app) join(cmd *cobra.Command, f joinFlags, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: name one file, for example: coterie join north.yaml", errUsage)
	}
	text, err := readRunFile(args[0], cmd.InOrStdin())
	if err != nil {
		return err
	}
	file, err := plan.LoadJoinFile(text, filepath.Dir(args[0]))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	text, err = os.ReadFile(file.Policy)
	if err != nil {
		return fmt.Errorf("%w: read the policy: %w", errUsage, err)
	}
	policy, err := plan.LoadPolicy(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Policy, err)
	}
	log, err := a.logger(f.log)
	if err != nil {
		return err
	}
	res, err := participant.Join(cmd.Context(), participant.JoinOptions{
		File: file, Policy: policy, Seeded: f.seeded, Folder: data.NewFolder(dataFolder(f.data)), Log: log,
	})
	if err != nil && !errors.Is(err, fl.ErrRefused) {
		return err
	}
	if a.output == "json" && res.Run != "" {
		return errors.Join(a.printJSON(res), err)
	}
	if res.ModelSHA256 == "" {
		return err
	}
	a.remark("run       %s\nreleased  %d (late: %d, declined: %d)\nmodel     %s\nsha256    %s",
		res.Run, res.Released, res.Late, res.Declined, filepath.Join(res.Directory, "model.safetensors"), res.ModelSHA256)
	if res.Local != nil {
		a.remark("local     %s (yours alone, never sent: %s)", res.Local, filepath.Join(res.Directory, "figures.json"))
	}
	return err // the budget ended, but what was paid for is here
}
