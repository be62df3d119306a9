package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/ledger"
)

// ledgerShown is what show prints.
type ledgerShown struct {
	ledger.Summary
	Slots []ledger.Entry `json:"slots,omitempty"`
}

func printLedger(w io.Writer, s ledgerShown) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "ledger %.16s, founded %s, %d records, head %s\n", s.Identity, s.Founded.Format("2006-01-02"), s.Records, s.Head)
	for _, b := range s.Budgets {
		fmt.Fprintf(out, "\n%s, %s, %s\n", b.Unit, b.Relation, b.Claim)
		for _, line := range describeBudget(b) {
			fmt.Fprintf(out, "  %s\n", line)
		}
		if b.Amended {
			fmt.Fprintln(out, "  the ceiling was changed after releases were made under it")
		}
		fmt.Fprintf(out, "  %s\n", describeCounts(b.Counts))
		fmt.Fprintf(out, "  trust: %s\n", b.Trust)
		if b.Releases > 0 {
			fmt.Fprintf(out, "  not covered: %s\n", strings.Join(b.NotCovered, "; "))
		}
	}
	if len(s.Budgets) == 0 {
		fmt.Fprintln(out, "\nno ceilings: everything is refused")
	}
	if len(s.Runs) > 0 {
		fmt.Fprint(out, "\nfederation\trun\tunit, relation, claim, noise by\tepsilon_switch\tepsilon\tdelta\treleases\tlast\n")
	}
	for _, r := range s.Runs {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%v\t%v\t%d\t%s\n", r.Federation, r.Run, describeTerms(r.Statement), switchOf(r.Statement), upTo(r.Epsilon, 6), r.Delta, r.Releases, r.Last.Format("2006-01-02 15:04"))
	}
	for i, n := range s.Successions {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "federation %s signs receipts with key %s since %s; before, with %s, which has signed for it (rotation %d)\n", n.Federation, n.New, n.At.Format("2006-01-02 15:04"), n.Old, n.Number)
	}
	if len(s.Slots) > 0 {
		fmt.Fprint(out, "\nfederation\trun\tround\tstatus\tenforcement\treserved\tSHA-256 of the bytes\n")
	}
	for _, e := range s.Slots {
		content := "-"
		if e.Content != (ledger.Hash{}) {
			content = e.Content.String()
		}
		fmt.Fprintf(out, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", e.Slot.Federation, e.Slot.Run, e.Slot.Round, e.Status, e.Enforcement, e.ReservedAt.Format("2006-01-02 15:04:05"), content)
	}
	if s.Torn > 0 {
		fmt.Fprintf(out, "\n%d bytes behind the last record are no whole record: a write that never ended, or the rest of a log that was cut\n", s.Torn)
	}
	for i, n := range s.Notes {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "note of %s: %s\n", n.At.Format("2006-01-02 15:04"), n.Text)
	}
	return out.Flush()
}

// describeBudget says what is spent of a ceiling. Every percentage is that of the two
// figures before it: what an accountant finds in the releases that were made, and what
// the filter has counted that keeps the ceiling whatever is released when.
func describeBudget(b ledger.BudgetSpend) []string {
	if b.Claim == event.ClaimNone {
		return []string{"releases without noise are allowed: nothing bounds what they lose"}
	}
	var lines []string
	of := func(what string, spent, most event.Number, where string) {
		lines = append(lines, fmt.Sprintf("%s %s of %v%s (%s)", what, upTo(spent, 6), most, where, share(float64(spent), float64(most))))
	}
	if b.EpsilonSwitch != nil {
		of("epsilon_switch", *b.EpsilonSwitch, b.CeilingSwitch, " between any two data sets")
	}
	if b.Relation == event.Metric {
		of("epsilon", b.Epsilon, b.Ceiling, " at the radii")
		if b.Distance > 0 {
			of("epsilon", b.EpsilonAtDistance, b.Ceiling, fmt.Sprintf(" between two points %v apart", b.Distance))
		}
	} else {
		of("epsilon", b.Epsilon, b.Ceiling, fmt.Sprintf(" at delta %v, by the accountant", b.Delta))
	}
	switch {
	case b.Over:
		lines = append(lines, "what was released does not fit the ceiling: nothing more is released")
	case b.FilterBudget > 0:
		lines = append(lines, fmt.Sprintf("the %s filter, which decides, has spent %s of %s%s (%s)", b.Filter,
			upTo(b.FilterSpent, 6), upTo(b.FilterBudget, 6), measureOf(b), share(float64(b.FilterSpent), float64(b.FilterBudget))))
	}
	return lines
}

// measureOf names what a filter adds up.
func measureOf(b ledger.BudgetSpend) string {
	if b.FilterOrder == 0 {
		return " rho"
	}
	return fmt.Sprintf(" at the Rényi order %v", b.FilterOrder)
}

func share(spent, most float64) string { return fmt.Sprintf("%.1f %%", 100*spent/most) }

func describeTerms(s event.Statement) string {
	who, _, _ := strings.Cut(string(s.Trust), " ") // participant, server or nobody
	return fmt.Sprintf("%s, %s, %s, %s", s.Unit, s.Relation, s.Claim, who)
}

// atRadii says what a d-private epsilon is the loss of.
func atRadii(s event.Statement) string {
	if s.Relation != event.Metric {
		return ""
	}
	return " at the radii"
}

// describeLoss is what was lost: first what is promised against everybody.
func describeLoss(s event.Statement) string {
	text := "epsilon " + upTo(s.Epsilon, 6) + atRadii(s)
	if s.Delta > 0 {
		text += fmt.Sprintf(" at delta %v", s.Delta)
	}
	if s.EpsilonSwitch != nil {
		text = fmt.Sprintf("epsilon_switch %s between any two data sets, %s", upTo(*s.EpsilonSwitch, 6), text)
	}
	return text
}

// switchOf is what any two data sets lose, where that has a bound of its own.
func switchOf(s event.Statement) string {
	if s.EpsilonSwitch == nil {
		return "-"
	}
	return upTo(*s.EpsilonSwitch, 6)
}

// describeCounts tells how far releases have come.
func describeCounts(c ledger.Counts) string {
	if c.Releases == 0 {
		return "no releases"
	}
	text := fmt.Sprintf("%d releases, all of them spent: %d committed, %d stored, %d reserved, %d abandoned", c.Releases, c.Committed, c.Stored, c.Reserved, c.Abandoned)
	if c.Attested > 0 {
		text += fmt.Sprintf("; %d attested by the trainer, not enforced", c.Attested)
	}
	return text
}

func printReceipt(w io.Writer, v ledgerVerdict) error {
	r := v.Receipt
	what := event.Describe(r.Release.What)
	var s strings.Builder
	fmt.Fprintf(&s, "The receipt is as it was signed.\n")
	fmt.Fprintf(&s, "  participant  %s\n  slot         %s\n", r.Participant, r.Slot)
	fmt.Fprintf(&s, "  released     %s (%s)\n  unit         %s\n  relation     %s\n  claim        %s\n  trust        %s\n", what, r.Enforcement, r.Release.Unit, r.Release.Relation, r.Release.Claim, r.Release.Trust)
	if r.RadiusWithheld {
		fmt.Fprintf(&s, "               the radius is private and not told: 1 stands for it\n")
	}
	fmt.Fprintf(&s, "  spent so far %s in this federation\n  not covered  %s\n", describeLoss(r.Spent), strings.Join(r.Spent.NotCovered, "; "))
	fmt.Fprintf(&s, "  plan         %s\n  bytes        %s (%d)\n  ledger head  %s, release %d\n", r.Plan, r.Content, r.Size, r.Head, r.Counter)
	switch {
	case v.InTheLedger:
		fmt.Fprintf(&s, "The ledger contains it and knows the key %s.\n", v.Key)
	case v.KeyIsKnown:
		fmt.Fprintf(&s, "Signed with the key given.\n")
	default:
		fmt.Fprintf(&s, "Signed with key %s; compare it with the server's, for anyone can make a key.\n", v.Key)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func (a *app) newLedgerReceiptsCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "receipts DIR",
		Short:   "The receipts that servers signed, as lines of JSON or as files",
		Example: "  coterie ledger receipts my-ledger --out receipts",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := readLedger(args[0])
			if err != nil {
				return err
			}
			if out != "" {
				if err := os.MkdirAll(out, 0o700); err != nil {
					return err
				}
			}
			found := 0
			for _, e := range l.Entries() {
				if e.Receipt == nil {
					continue
				}
				if err := a.putReceipt(out, *e.Receipt); err != nil {
					return err
				}
				found++
			}
			if found == 0 {
				a.remark("no receipts: no server has acknowledged a release of this ledger yet")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder to write one file for every receipt to")
	return cmd
}

// putReceipt prints a receipt, or writes it to a file.
func (a *app) putReceipt(folder string, r ledger.SignedReceipt) error {
	name := unsafeInNames.ReplaceAllString(r.Receipt.Federation, "_")
	if name != r.Receipt.Federation { // two names may look alike now
		name += "-" + r.Receipt.Head.String()[:8]
	}
	name = fmt.Sprintf("%s-%06d.json", name, r.Receipt.Counter)
	if folder != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			return err
		}
		return a.tell(map[string]any{"file": path}, "%s", path)
	}
	if a.output == "json" {
		return a.printJSON(r)
	}
	x := r.Receipt
	_, err := fmt.Fprintf(a.stdout, "%s: %s so far (%s), %s, release %d\n", x.Slot, describeLoss(x.Spent), describeTerms(x.Spent), x.Enforcement, x.Counter)
	return err
}

// unsafeInNames is what a federation's name may have and a file's should not.
var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9.-]`)
