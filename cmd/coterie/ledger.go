package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/ledger"
)

func (a *app) newLedgerCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "ledger",
		Short: "A dataset's own privacy budget: what was released, to whom, and what is left",
		Long: "Look at the ledger that a participant keeps of every release of its dataset, and check receipts offline.\n" +
			"Looking is possible while the participant is running; nothing but amend and witness changes anything.",
		Example: "  coterie ledger show my-ledger\n  coterie ledger receipts my-ledger --out receipts\n  coterie ledger verify receipts/schools-000001.json --ledger my-ledger",
	}, a.newLedgerShowCommand(), a.newLedgerVerifyCommand(), a.newLedgerReceiptsCommand(), a.newLedgerAmendCommand(), a.newLedgerWitnessCommand())
}

// readLedger reads a ledger without locking it.
func readLedger(dir string, options ...ledger.Option) (*ledger.Ledger, error) {
	l, err := ledger.Read(dir, options...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s holds no ledger: give the folder that a join file names under ledger (%w)", errUsage, dir, err)
	}
	return l, err
}

func (a *app) newLedgerShowCommand() *cobra.Command {
	var slots bool
	cmd := &cobra.Command{
		Use:     "show DIR",
		Short:   "What was spent: by unit, relation, claim and trust, and by run",
		Example: "  coterie ledger show my-ledger --slots",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := readLedger(args[0])
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
	var key, inLedger, witness string
	cmd := &cobra.Command{
		Use:   "verify DIR|FILE",
		Short: "Check every record of a ledger, or the signature of a receipt, offline",
		Long: "With a folder: check every record of the ledger in it, its chain and the receipts it holds. A log that was cut behind a whole record looks whole: only --witness, or a server's last receipt, can tell.\n" +
			"With a file: check the signature of a receipt. Give the server's key, or a ledger that knows it; otherwise only the key in the receipt itself is tried, and anyone can make such a pair.",
		Example: "  coterie ledger verify my-ledger --witness /mnt/other/witness\n  coterie ledger verify receipt.json --key 3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err != nil {
				return err
			} else if info.IsDir() {
				return a.verifyLedger(args[0], witness)
			}
			return a.verifyReceipt(args[0], key, inLedger)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the server's public key for receipts, 64 hex digits")
	cmd.Flags().StringVar(&witness, "witness", "", "the ledger's witness file: fail if the ledger is older than it")
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
	Complete    string          `json:"complete,omitempty"` // of a ledger: witnessed or unknown
	Torn        *int64          `json:"torn_bytes,omitempty"`
	Cuts        *int            `json:"cuts,omitempty"` // torn records that were removed before
	Receipt     *ledger.Receipt `json:"receipt,omitempty"`
	Key         *ledger.Key     `json:"key,omitempty"`
	KeyIsKnown  bool            `json:"key_is_known"` // by --key or --ledger
	InTheLedger bool            `json:"in_the_ledger"`
}

func (a *app) verifyLedger(dir, witness string) error {
	l, err := readLedger(dir, ledger.WithWitness(witness))
	if err != nil {
		return err
	}
	sum, err := l.Summary()
	if err != nil {
		return err
	}
	v := ledgerVerdict{Valid: true, Kind: "ledger", Records: sum.Records, Head: &sum.Head, Complete: "unknown", Torn: &sum.Torn, Cuts: &sum.Cuts}
	if l.Witnessed() {
		v.Complete = "witnessed"
	}
	for _, e := range l.Entries() {
		if e.Receipt != nil {
			v.Receipts++
		}
	}
	if a.output == "json" {
		return a.printJSON(v)
	}
	a.remark("All %d records are as they were written, and %d receipts are signed with their federation's key.\nHead %s", v.Records, v.Receipts, v.Head)
	if sum.Torn > 0 {
		a.remark("Behind them are %d bytes that are no whole record: a write that never ended, or the rest of a log that was cut.", sum.Torn)
	}
	if sum.Cuts > 0 {
		a.remark("Such bytes were found, and removed, %d times before: coterie ledger show has the dates.", sum.Cuts)
	}
	if l.Witnessed() {
		a.remark("Its witness has seen no more than these.")
		return nil
	}
	a.remark("Whether these are all records, only the server's last receipt or a witness can tell: the receipt is checked at every connection.")
	return nil
}

func (a *app) newLedgerWitnessCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "witness DIR FILE",
		Short: "Give a ledger that has releases a witness: a file elsewhere that sees every record",
		Long: "Write how far the ledger in DIR has come to FILE, which must not exist and should lie on another disk; name it in the join file as ledger_witness.\n" +
			"A ledger without releases gets its witness by itself. Do this only if you know that the ledger is the newest copy.",
		Example: "  coterie ledger witness my-ledger /mnt/other/my-ledger.witness",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err != nil {
				return fmt.Errorf("no ledger to be seen: %w", err)
			}
			if err := ledger.CallWitness(args[0], args[1]); err != nil {
				return err
			}
			return a.tell(map[string]any{"witness": args[1]}, "%s sees the ledger from now on. Write it into the join file: ledger_witness.", args[1])
		},
	}
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
		l, err := readLedger(inLedger)
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
	var epsilon, delta, distance, change, spread float64
	var reason, trust string
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
			c.EpsilonSwitch = event.Number(change)
			if cmd.Flags().Changed("assumed-spread") {
				c.AssumedSpread = (*event.Number)(&spread)
			}
			var err error
			if c.Claim != event.ClaimNone || trust != "" {
				c.Trust, err = ledger.TrustNamed(trust)
			}
			if err == nil {
				err = c.Validate()
			}
			if err != nil {
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
			return a.tell(map[string]any{"amended": c, "reason": reason},
				"The ceiling is %v from now on. Write the same into the policy file (an assumed spread has no place there).", c)
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&c.Unit), "unit", "", "what is protected: example, client, node or neighbourhood")
	flags.StringVar((*string)(&c.Relation), "relation", "", "add-remove, replace-one or metric")
	flags.StringVar((*string)(&c.Claim), "claim", "", "proved, metric, heuristic or none")
	flags.Float64Var(&epsilon, "epsilon", 0, "the new ceiling")
	flags.Float64Var(&delta, "delta", 0, "its delta; 0 under the relation metric")
	flags.Float64Var(&distance, "distance", 0, "under the relation metric: bound the loss at this distance too")
	flags.Float64Var(&change, "epsilon-switch", 0, "under the claim metric, where it is needed: the most that any two data sets may lose")
	flags.Float64Var(&spread, "assumed-spread", 0, "releases of before that do not say how far apart the hypotheses were: take them for at most this far apart")
	flags.StringVar(&trust, "trust", "", "who adds the noise: participant (the default) or server")
	flags.StringVar(&reason, "reason", "", "why, and who decided it")
	return cmd
}
