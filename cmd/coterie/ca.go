package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/internal/durable"
)

// defaultAuthority is where `coterie ca init` puts an authority unless told.
const defaultAuthority = "coterie-ca"

func (a *app) newCACommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "ca",
		Short: "Who may take part: invitations, certificates, revocation",
		Long: "Keep a federation's own certificate authority. Participants are invited by name; they make their keys themselves,\n" +
			"redeem the invitation once, and hold certificates that they renew by themselves. Neither revocation nor new keys need a restart.",
		Example: "  coterie ca init --server fl.example.org:7443\n  coterie ca invite north-hospital --out north-hospital.invite\n  coterie ca revoke north-hospital",
	}, a.newCAInitCommand(), a.newCAInviteCommand(), a.newCARevokeCommand(), a.newCARotateCommand(), a.newCAListCommand())
}

func (a *app) newCAInitCommand() *cobra.Command {
	var o identity.Options
	cmd := &cobra.Command{
		Use:     "init [DIR]",
		Short:   "Make a new authority",
		Long:    "Make a new authority in DIR (default ./" + defaultAuthority + "), with keys that only you can read. Keep a copy of it: who has ca.key can let anybody in.",
		Example: "  coterie ca init --server fl.example.org:7443",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := defaultAuthority
			if len(args) == 1 {
				dir = args[0]
			}
			ca, err := identity.Init(dir, o)
			if err != nil {
				return authorityError(err)
			}
			return a.tell(struct {
				Directory  string `json:"directory"`
				Federation string `json:"federation"`
				Server     string `json:"server"`
				Lifetime   string `json:"certificate_lifetime"`
				ReceiptKey string `json:"receipt_key"`
			}{dir, ca.Federation(), ca.Server(), ca.Lifetime().String(), receiptKey(ca)},
				"authority   %s\nfederation  %s\nserver      %s\n\nNext: coterie ca invite NAME --ca %s --out NAME.invite", dir, ca.Federation(), ca.Server(), dir)
		},
	}
	cmd.Flags().StringVar(&o.Server, "server", "", "address that participants dial, host:port (default localhost:7443)")
	cmd.Flags().DurationVar(&o.Lifetime, "lifetime", 0, "how long participants' certificates are valid before they are renewed (default 2160h, 90 days)")
	return cmd
}

// authorityError tells wrong usage from failure.
func authorityError(err error) error {
	if errors.Is(err, identity.ErrName) || errors.Is(err, identity.ErrSetting) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

func receiptKey(ca *identity.Authority) string {
	key := ca.ReceiptKey()
	return hex.EncodeToString(key[len(key)-32:]) // the public half
}

func (a *app) newCAInviteCommand() *cobra.Command {
	var dir, server, out string
	var expires time.Duration
	var readmit, operator bool
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Make a one-time invitation",
		Long: "Make an invitation for one participant. It is a secret: hand the file over by a way that you trust. It works once, for this\n" +
			"name, until it expires; it tells the participant where the server is and how to recognise it.\n" +
			"With --out it is written to a file that only you can read; without, it is printed, for another program to take.\n" +
			"With --operator it is for somebody who asks how the server stands (coterie status) and takes part in nothing.",
		Example: "  coterie ca invite north-hospital --out north-hospital.invite --expires 48h\n  coterie ca invite night-watch --operator --out night-watch.invite",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			ca, err := identity.Open(dir, identity.Options{Server: server})
			if err != nil {
				return authorityError(err)
			}
			if out != "" {
				// Before anything is changed: an invitation that cannot be written would end the
				// earlier one all the same.
				if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("%w: --out %s is there already: name a file that is not", errUsage, out)
				}
			}
			if readmit {
				if err := ca.Readmit(args[0]); err != nil {
					return err
				}
			}
			invite := ca.Invite
			if operator {
				invite = ca.InviteOperator
			}
			i, err := invite(args[0], expires)
			if err != nil {
				return authorityError(err)
			}
			text := i.String()
			if out != "" {
				if err := durable.WriteFile(out, []byte(text+"\n"), 0o600); err != nil {
					return fmt.Errorf("write the invitation: %w", err)
				}
				text = "" // it is in the file, and nowhere else
			}
			if a.output == "json" {
				return a.printJSON(struct {
					Name       string        `json:"name"`
					Role       identity.Role `json:"role"`
					Invite     string        `json:"invite"`
					File       string        `json:"file"`
					Server     string        `json:"server"`
					Expires    time.Time     `json:"expires"`
					Federation string        `json:"federation"`
					CASHA256   string        `json:"ca_sha256"`
					ReceiptKey string        `json:"receipt_key"`
				}{i.Name, i.Role, text, out, i.Server, i.Expires, ca.Federation(), hex.EncodeToString(i.CA[:]), hex.EncodeToString(i.Signer)})
			}
			if out != "" {
				a.remark("invitation  %s, for %s until %s: hand it over by a way that you trust", out, i.Name, i.Expires.Format("2006-01-02 15:04 UTC"))
				return nil
			}
			_, err = fmt.Fprintln(a.stdout, text)
			return err
		},
	}
	authorityFlag(cmd, &dir)
	cmd.Flags().StringVar(&out, "out", "", "file for the invitation, readable by you alone (default: print it)")
	cmd.Flags().StringVar(&server, "server", "", "address that this participant dials, host:port (default: the authority's)")
	cmd.Flags().DurationVar(&expires, "expires", 24*time.Hour, "how long the invitation can be used")
	cmd.Flags().BoolVar(&readmit, "readmit", false, "let a revoked participant or operator in again")
	cmd.Flags().BoolVar(&operator, "operator", false, "invite an operator, who may ask for the server's status and nothing else")
	return cmd
}

func authorityFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "ca", defaultAuthority, "folder of the authority")
}

func (a *app) newCARevokeCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "revoke NAME|SERIAL",
		Short: "Shut a participant out, or one certificate",
		Long: "Revoke all that a participant has (by name: it cannot enrol again unless readmitted) or one certificate (by serial number).\n" +
			"A running server refuses the next request, also on connections that are open.",
		Example: "  coterie ca revoke north-hospital",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			ca, err := identity.Open(dir, identity.Options{})
			if err != nil {
				return err
			}
			r, err := ca.Revoke(args[0])
			if err != nil {
				return authorityError(err)
			}
			return a.tell(r, "%s: %d certificates revoked, %d invitations cancelled", r.Name, len(r.Serials), r.Cancelled)
		},
	}
	authorityFlag(cmd, &dir)
	return cmd
}

func (a *app) newCAListCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Invitations and certificates",
		Long:    "List invitations and certificates, ended ones for a week, who is revoked, and whose last certificate ends within 14 days.",
		Example: "  coterie ca list --output json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ca, err := identity.Open(dir, identity.Options{})
			if err != nil {
				return err
			}
			list, revoked, err := ca.List()
			if err != nil {
				return err
			}
			ending, err := ca.Ending()
			if err != nil {
				return err
			}
			if a.output == "json" {
				return a.printJSON(struct {
					Federation string            `json:"federation"`
					Entries    []identity.Listed `json:"entries"`
					Revoked    []string          `json:"revoked"`
					Ending     []identity.Ending `json:"ending"`
				}{ca.Federation(), list, revoked, ending})
			}
			return a.printAuthority(list, revoked, ending)
		},
	}
	authorityFlag(cmd, &dir)
	return cmd
}

func (a *app) printAuthority(list []identity.Listed, revoked []string, ending []identity.Ending) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tROLE\tKIND\tSTATUS\tEXPIRES\tSERIAL")
	for _, l := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, l.Role, l.Kind, l.Status, l.Expires.UTC().Format(time.RFC3339), l.Serial)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, name := range revoked {
		a.remark("%s is revoked", name)
	}
	for _, e := range ending {
		a.remark("%s: its last certificate ends at %s and was not renewed: if it stays away, invite it again", e.Name, e.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}
