package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/audit/certificate"
	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/ledger"
)

// certifyFlags are what `coterie audit certify` takes.
type certifyFlags struct {
	data, out, key string
	certificate.Options
}

func (a *app) newAuditCertifyCommand() *cobra.Command {
	f := certifyFlags{Options: certificate.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "certify DIR",
		Short: "Try to refute a run's claim, and sign what was found",
		Long: "Audit a finished run by everything that applies to it, and write one signed certificate (JSON, and a page): the claim and its theorem, lower bounds on epsilon, what attacks on the model found, hashes of model and program, and what was not tried.\n" +
			"What is tried, and how the bounds share the chance that one of them errs, is fixed and printed before anything is played. Exit code 3 if a bound exceeds the claim; the certificate is written then, too.\n" +
			"The one-run audit trains the run once more, with canaries; --steps-only plays its steps without data instead. An attack that fails proves nothing.",
		Example: "  coterie audit certify coterie-runs/my-run --key auditor.key\n" +
			"  coterie audit certify coterie-runs/my-run --steps-only --without inversion --out certificate\n" +
			"  coterie audit verify coterie-runs/my-run/certificate",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.certify(cmd, f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "folder of real data (default: the environment variable COTERIE_DATA)")
	flags.StringVar(&f.out, "out", "", "folder for certificate.json and certificate.html (default: certificate in the run directory)")
	flags.StringVar(&f.key, "key", "", "file of the key that signs; made if it is not there (default: coterie/auditor.key in your configuration folder)")
	flags.Float64Var(&f.Confidence, "confidence", f.Confidence, "of all bounds together")
	flags.IntVar(&f.Canaries, "canaries", f.Canaries, "gradients planted in the run's steps, and as many left out")
	flags.IntVar(&f.Runs, "runs", f.Runs, "tiny runs with one row more, and as many without")
	flags.IntVar(&f.Planted, "planted", f.Planted, "canaries of the one training, in by coins")
	flags.BoolVar(&f.StepsOnly, "steps-only", false, "no second training: the one-run audit plays the run's steps without data and model")
	flags.IntVar(&f.References, "references", 0, "models that the membership attack trains like the target")
	flags.StringSliceVar(&f.Without, "without", nil, "leave these out: "+strings.Join(certificate.Names, ", "))
	return cmd
}

func (a *app) certify(cmd *cobra.Command, f certifyFlags, dir string) error {
	if err := f.Check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.out == "" {
		f.out = filepath.Join(dir, "certificate")
	}
	if f.key == "" {
		folder, err := os.UserConfigDir()
		if err != nil {
			return fmt.Errorf("%w: there is no folder for the key; give --key FILE: %w", errUsage, err)
		}
		f.key = filepath.Join(folder, "coterie", "auditor.key")
	}
	subject, err := certificate.Open(dir)
	if err != nil {
		return err
	}
	key, made, err := certificate.Key(f.key)
	if err != nil {
		return err
	}
	if made {
		a.remark("A key was made: %s. Keep it to yourself; tell others its public half: %s", f.key, certificate.PublicKey(key))
	}
	plan, err := certificate.NewPlan(subject, f.Options)
	if err != nil {
		return err
	}
	a.remark("Declared before anything is played:")
	for _, line := range plan.Words() {
		a.remark("  %s", line)
	}
	a.remark("")
	bar := a.progress("audit", 1)
	c, err := unlessStopped(cmd.Context(), func() (certificate.Certificate, error) {
		o := membership.Options{Folder: filepath.Join(dir, "membership"), Continue: quoted(cmd)}
		return certificate.Make(cmd.Context(), subject, data.NewFolder(dataFolder(f.data)), plan, o, time.Now(), func(audit string, share float64) { bar.Show(share, audit) })
	})
	bar.Done()
	if err != nil {
		return err
	}
	if c, err = certificate.Write(f.out, c, key); err != nil {
		return err
	}
	if err := a.printCertificate(c, filepath.Join(f.out, certificate.File), filepath.Join(f.out, certificate.PageFile), certificate.PublicKey(key)); err != nil {
		return err
	}
	return c.Err()
}

func (a *app) printCertificate(c certificate.Certificate, file, page string, key ledger.Key) error {
	if a.output == "json" {
		return a.printJSON(struct {
			certificate.Certificate
			File   string     `json:"file"`
			Report string     `json:"report"`
			Key    ledger.Key `json:"key"`
		}{c, file, page, key})
	}
	if err := a.certificateTable(c); err != nil {
		return err
	}
	a.remark("signed  %s\nreport  %s\ncheck   coterie audit verify %s --key %s", file, page, file, key)
	return nil
}

// certificateTable prints what a certificate says.
func (a *app) certificateTable(c certificate.Certificate) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "run\t%s, model %.16s…\n", c.Identity.Run, c.Identity.Model)
	fmt.Fprintf(w, "claim\t%s\n", membership.Claim(c.Claim))
	for _, b := range c.Bounds {
		fmt.Fprintf(w, "%s\tepsilon at least %.4f at confidence %.4g, %.4f charged (%s, unit %s, relation %s, delta %v)\n", b.Audit,
			float64(b.AtLeast), b.Confidence, float64(b.Charged.Epsilon), b.Charged.Claim, b.Charged.Unit, b.Charged.Relation, float64(b.Charged.Delta))
	}
	if c.Membership != nil {
		for _, m := range c.Membership.Attacks {
			fmt.Fprintf(w, "membership\t%s: AUC %s\n", m.Attack, strings.ReplaceAll(figureWords(m), "\t", " "))
		}
	}
	if c.Inversion != nil {
		fmt.Fprintf(w, "inversion\t%s\n", c.Inversion.Verdict)
	}
	for _, l := range c.NotTried {
		fmt.Fprintf(w, "not tried\t%s: %s\n", l.Audit, l.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "\n%s: %s.\n", c.Verdict, c.Why); err != nil {
		return err
	}
	for _, line := range c.Says {
		a.remark("! %s.", line)
	}
	return nil
}

func (a *app) newAuditVerifyCommand() *cobra.Command {
	var key, run string
	cmd := &cobra.Command{
		Use:   "verify FILE|DIR",
		Short: "Check a certificate's signature, offline",
		Long: "Check that a certificate is what its signer signed, that the page beside it is the one that was signed, and with --run that a run directory is the one that it is about.\n" +
			"Give the signer's key, which you should have from elsewhere; without it only the key in the certificate itself is tried, and anyone can make such a pair. Exit code 3 if the certificate says that the claim is refuted.",
		Example: "  coterie audit verify certificate.json --key 3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29\n" +
			"  coterie audit verify coterie-runs/my-run/certificate --run coterie-runs/my-run",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var given *ledger.Key
			if key != "" {
				given = new(ledger.Key)
				if err := given.UnmarshalText([]byte(key)); err != nil {
					return fmt.Errorf("%w: --key: %w", errUsage, err)
				}
			}
			v, err := certificate.Verify(args[0], given, run)
			if err != nil {
				return err
			}
			if err := a.printVerified(v); err != nil {
				return err
			}
			return v.Certificate.Err()
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the signer's public key, 64 hex digits")
	cmd.Flags().StringVar(&run, "run", "", "a run directory that the certificate must be about")
	return cmd
}

func (a *app) printVerified(v certificate.Verified) error {
	if a.output == "json" {
		return a.printJSON(v)
	}
	if err := a.certificateTable(v.Certificate); err != nil {
		return err
	}
	a.remark("The signature fits, made on %s with the key %s.", v.Certificate.Made.Format("2006-01-02 15:04 UTC"), v.Key)
	if !v.KeyIsKnown {
		a.remark("! The key is the one in the certificate: anyone can make such a pair. Give the signer's with --key.")
	}
	if v.PageIsThere {
		a.remark("The page beside it is the one that was signed.")
	} else {
		a.remark("! There is no page beside it to be checked.")
	}
	if v.RunIsThere {
		a.remark("Model, run file and result are those that it is about.")
	}
	return nil
}
