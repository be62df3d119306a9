package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/federation/identity"
)

func (a *app) newCARotateCommand() *cobra.Command {
	var dir string
	var overlap time.Duration
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "New keys for the federation, which stays the same",
		Long: "Give the federation a new authority, a new server key and a new key for receipts. Its name stays; so do participants, their\n" +
			"ledgers, and who is revoked. The old authority signs for the new one, and its key is removed. A running server needs no\n" +
			"restart. Participants find out at their next request, check the signatures, and renew by themselves: until the overlap ends.\n" +
			"Who was away for longer is invited again. A stolen ca.key is not cured by this: see docs/certificates.md.",
		Example: "  coterie ca rotate --ca ca",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ca, err := identity.Open(dir, identity.Options{})
			if err != nil {
				return err
			}
			r, err := ca.Rotate(overlap)
			if err != nil {
				return authorityError(err)
			}
			if err := a.tell(r, "federation   %s\nrotations    %d\nreceipt key  %s\nUntil %s the server is also known by its old authority. Back up %s now: an older copy locks everybody out.",
				r.Federation, r.Number, r.ReceiptKey, r.Ends.Format("2006-01-02 15:04 UTC"), dir); err != nil {
				return err
			}
			if len(r.Cancelled) > 0 && a.output != "json" {
				a.remark("Invitations that nobody had used have ended; invite again: %s", strings.Join(r.Cancelled, ", "))
			}
			return nil
		},
	}
	authorityFlag(cmd, &dir)
	cmd.Flags().DurationVar(&overlap, "overlap", identity.DefaultOverlap, "how long certificates of the old authority stay good, for participants that are away")
	return cmd
}
