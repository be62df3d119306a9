package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/ledger"
)

func (a *app) newLedgerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "A dataset's own privacy budget: what was released, to whom, and what is left",
		Long: "Look at the ledger that a participant keeps of every release of its dataset, and check receipts offline.\n" +
			"Looking is possible while the participant is running; nothing but amend changes anything.",
		Example: "  coterie ledger show my-ledger\n  coterie ledger receipts my-ledger --out receipts\n  coterie ledger verify receipts/schools-000001.json --ledger my-ledger",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.newLedgerShowCommand(), a.newLedgerVerifyCommand(), a.newLedgerReceiptsCommand(), a.newLedgerAmendCommand())
	return cmd
}

func (a *app) newLedgerShowCommand() *cobra.Command {
	var slots bool
	cmd := &cobra.Command{
		Use:     "show DIR",
		Short:   "What was spent: by unit, relation and claim, and by run",
		Example: "  coterie ledger show my-ledger --slots",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := ledger.Read(args[0])
			if err != nil {
				return err
			}
			sum, err := l.Summary()
			if err != nil {
				return err
			}
			shown := ledgerShown{Summary: sum}
			if slots {
				shown.Slots = l.Entries()
			}
			if a.output == "json" {
				return a.printJSON(shown)
			}
			return printLedger(a.stdout, shown)
		},
	}
	cmd.Flags().BoolVar(&slots, "slots", false, "also list every release")
	return cmd
}

func (a *app) newLedgerVerifyCommand() *cobra.Command {
	var key, inLedger string
	cmd := &cobra.Command{
		Use:   "verify DIR|FILE",
		Short: "Check every record of a ledger, or the signature of a receipt, offline",
		Long: "With a folder: check every record of the ledger in it, its chain and the receipts it holds.\n" +
			"With a file: check the signature of a receipt. Give the server's key, or a ledger that knows it; otherwise only the key in the receipt itself is tried, and anyone can make such a pair.",
		Example: "  coterie ledger verify my-ledger\n  coterie ledger verify receipt.json --key 3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err != nil {
				return err
			} else if info.IsDir() {
				return a.verifyLedger(args[0])
			}
			return a.verifyReceipt(args[0], key, inLedger)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the server's public key for receipts, 64 hex digits")
	cmd.Flags().StringVar(&inLedger, "ledger", "", "folder of a ledger that must contain what the receipt is about")
	return cmd
}

// ledgerVerdict is what verify found; it fails instead of saying that it is not valid.
type ledgerVerdict struct {
	Valid       bool            `json:"valid"`
	Kind        string          `json:"kind"` // ledger or receipt
	Records     int             `json:"records,omitempty"`
	Receipts    int             `json:"receipts,omitempty"`
	Head        *ledger.Hash    `json:"head,omitempty"`
	Receipt     *ledger.Receipt `json:"receipt,omitempty"`
	Key         *ledger.Key     `json:"key,omitempty"`
	KeyIsKnown  bool            `json:"key_is_known"` // by --key or --ledger
	InTheLedger bool            `json:"in_the_ledger"`
}

func (a *app) verifyLedger(dir string) error {
	l, err := ledger.Read(dir)
	if err != nil {
		return err
	}
	v := ledgerVerdict{Valid: true, Kind: "ledger"}
	head, records := l.Head()
	v.Head, v.Records = &head, records
	for _, e := range l.Entries() {
		if e.Receipt != nil {
			v.Receipts++
		}
	}
	if a.output == "json" {
		return a.printJSON(v)
	}
	a.remark("All %d records are as they were written, and %d receipts are signed with their federation's key.\nHead %s\nWhether these are all records, only the server's last receipt can tell: it is checked at every connection.",
		v.Records, v.Receipts, v.Head)
	return nil
}

func (a *app) verifyReceipt(path, key, inLedger string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r, err := ledger.ParseSignedReceipt(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := r.Verify(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	v := ledgerVerdict{Valid: true, Kind: "receipt", Receipt: &r.Receipt, Key: &r.Key}
	if key != "" {
		var want ledger.Key
		if err := want.UnmarshalText([]byte(key)); err != nil {
			return fmt.Errorf("%w: --key: %w", errUsage, err)
		}
		if want != r.Key {
			return fmt.Errorf("%s: %w: signed with key %s, not with the key given", path, ledger.ErrReceipt, r.Key)
		}
		v.KeyIsKnown = true
	}
	if inLedger != "" {
		l, err := ledger.Read(inLedger)
		if err != nil {
			return err
		}
		if err := l.Contains(r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		v.KeyIsKnown, v.InTheLedger = true, true
	}
	if a.output == "json" {
		return a.printJSON(v)
	}
	return printReceipt(a.stdout, v)
}

func (a *app) newLedgerAmendCommand() *cobra.Command {
	var c ledger.Ceiling
	var epsilon, delta, distance float64
	var reason string
	cmd := &cobra.Command{
		Use:   "amend DIR",
		Short: "Change a ceiling after releases were made under it, with a reason",
		Long: "A ceiling is fixed before the first release under it; until then the policy file alone decides. Afterwards it can only be changed here.\n" +
			"The change and its reason are recorded for ever and shown: a ceiling that moved after results were seen is no longer fixed in advance.",
		Example: "  coterie ledger amend my-ledger --unit example --relation add-remove --claim proved --epsilon 4 --delta 1e-5 --reason 'board, 12 November'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needFlags(cmd, "unit", "relation", "claim", "epsilon", "reason"); err != nil {
				return err
			}
			c.Epsilon, c.Delta, c.Distance = event.Number(epsilon), event.Number(delta), event.Number(distance)
			if err := c.Validate(); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if _, err := os.Stat(args[0]); err != nil {
				return fmt.Errorf("no ledger to amend: %w", err)
			}
			if err := ledger.Amend(args[0], c, reason); err != nil {
				if errors.Is(err, ledger.ErrBusy) {
					err = fmt.Errorf("%w; stop the participant first", err)
				}
				return err
			}
			if a.output == "json" {
				return a.printJSON(map[string]any{"amended": c, "reason": reason})
			}
			a.remark("The ceiling is epsilon %v, delta %v from now on. Write the same into the policy file.", c.Epsilon, c.Delta)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&c.Unit), "unit", "", "what is protected: example, client, node or neighbourhood")
	flags.StringVar((*string)(&c.Relation), "relation", "", "add-remove, replace-one or metric")
	flags.StringVar((*string)(&c.Claim), "claim", "", "proved, metric, heuristic or none")
	flags.Float64Var(&epsilon, "epsilon", 0, "the new ceiling")
	flags.Float64Var(&delta, "delta", 0, "its delta; 0 under the relation metric")
	flags.Float64Var(&distance, "distance", 0, "under the relation metric: bound the loss at this distance too")
	flags.StringVar(&reason, "reason", "", "why, and who decided it")
	return cmd
}
