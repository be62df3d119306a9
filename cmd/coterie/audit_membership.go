package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/audit/membership"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/sim"
)

// membershipFlags are what `coterie audit membership` takes.
type membershipFlags struct {
	data, report               string
	members, nonMembers, names string // data by hand, and the column that names clients
	attack                     membership.Options
}

func (a *app) newAuditMembershipCommand() *cobra.Command {
	var f membershipFlags
	cmd := &cobra.Command{
		Use:   "membership DIR",
		Short: "Which examples was a model trained on?",
		Long: "Attack the model of a finished run: tell the examples that it was trained on from those that were held out, or the clients that took part from those that did not.\n" +
			"Of any other model folder, such as what coterie serve and join leave, --members and --non-members name examples that it was trained on, and others: tables, pictures in class folders, or text, as coterie evaluate takes them.\n" +
			"Loss and noisy neighbours need the model alone. --references and --shadows train other models like the target first, each in a folder of its own: stopped with Ctrl-C, the same command goes on.\n" +
			"The figures describe this model. An attack that fails proves nothing.",
		Example: "  coterie audit membership runs/target\n" +
			"  coterie audit membership runs/target --references 5 --shadows 10 --report page.html\n" +
			"  coterie audit membership model --members trained.csv --non-members others.csv",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.auditMembership(cmd, f, args[0]) },
	}
	flags := cmd.Flags()
	addDataFolder(flags, &f.data)
	addReport(flags, &f.report)
	flags.StringVar(&f.attack.Unit, "unit", membership.UnitExample, "who is attacked: example, whether it was trained on; client, whether it took part")
	flags.StringVar(&f.attack.Client, "client", "", "attack this client's examples alone, by the model that it uses (default: everybody's)")
	flags.StringVar(&f.members, "members", "", "file or folder of examples that the model was trained on (default: what the run's own data say)")
	flags.StringVar(&f.nonMembers, "non-members", "", "file or folder of examples that it was not trained on (default: what the run's own data hold out)")
	flags.StringVar(&f.names, "client-column", "", "with --members or --non-members: the column that names every row's client")
	flags.IntVar(&f.attack.References, "references", 0, "models trained like the target, each on as many of all examples, drawn anew; from 4 on also the likelihood ratio")
	flags.IntVar(&f.attack.Shadows, "shadows", 0, "models trained like the target, each on a part of the target's own members that no other has; 10 is the paper's")
	flags.IntVar(&f.attack.Neighbours, "neighbours", 10, "noisy neighbours of every example; 0: no such attack")
	flags.Float64Var(&f.attack.Sigma, "sigma", 0, "deviation of the neighbours' noise, in units of the root mean square of what it is added to (default: 1.8 for words; otherwise chosen on one half of the examples and judged on the other)")
	flags.Float64Var(&f.attack.Level.Delta, "delta", 1e-5, "delta of the empirical epsilon")
	addConfidence(flags, &f.attack.Level.Confidence, "the rates' intervals and of the epsilon; the AUC's interval has 0.95")
	flags.Uint64Var(&f.attack.Seed, "seed", 1, "seed of neighbours, halves and other models")
	flags.StringVar(&f.attack.Folder, "folder", "", "where other models are kept (default: membership in the run directory)")
	return cmd
}

// attacked is what the figures are printed beside: whose model it is, and what it claims.
type attacked struct {
	name, run, algorithm string
	claim                event.Statement // zero: nobody knows
	privacy              any
}

func (a *app) auditMembership(cmd *cobra.Command, f membershipFlags, dir string) error {
	if f.attack.Folder == "" {
		f.attack.Folder = filepath.Join(dir, "membership")
	}
	if err := f.attack.Check(); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	target, about, err := f.target(cmd.Context(), dir)
	if err != nil {
		return err
	}
	bar := a.progress("audit", 1)
	f.attack.Continue = quoted(cmd)
	f.attack.Tick = func(doing string, m sim.Moment) {
		share, words := inWords(m, nil)
		bar.Show(share, doing+": "+words)
	}
	found, err := membership.Measure(cmd.Context(), target, data.NewFolder(dataFolder(f.data)), f.attack)
	bar.Done()
	switch {
	case errors.Is(err, membership.ErrNotThere):
		return fmt.Errorf("%w: %w", errUsage, err)
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	}
	if f.report != "" {
		if err := study.WritePage(f.report, membership.Page(found, about.name, f.attack.Continue, about.claim, version())); err != nil {
			return err
		}
	}
	return a.printMembership(about, found, f.report)
}

// target is a finished run, or a model folder with members and others that are named.
func (f *membershipFlags) target(ctx context.Context, dir string) (t membership.Target, about attacked, err error) {
	switch {
	case f.members != "" && f.nonMembers == "":
		return t, about, fmt.Errorf("%w: --members needs examples to compare with: --non-members", errUsage)
	case f.names != "" && f.nonMembers == "":
		return t, about, fmt.Errorf("%w: --client-column goes with --members or --non-members; a run's own data name their clients", errUsage)
	}
	if f.members != "" {
		m, err := openModel(dir)
		if err != nil {
			return t, about, err
		}
		about = attacked{name: m.Name, run: m.Name, algorithm: m.Method}
		if m.Privacy != nil {
			about.claim, about.privacy = m.Privacy.Statement, m.Privacy
		}
		members, err := f.examples(ctx, m, f.members)
		if err != nil {
			return t, about, fmt.Errorf("--members: %w", err)
		}
		others, err := f.examples(ctx, m, f.nonMembers)
		if err != nil {
			return t, about, fmt.Errorf("--non-members: %w", err)
		}
		return membership.OfFolder(m, members, others), about, nil
	}
	res, err := report.Load(dir)
	if err != nil {
		if _, other := artifact.Open(dir); other == nil {
			err = fmt.Errorf("%w: %s is a model folder without a finished run, which does not say what it was trained on: name examples that it was trained on, and others, by --members and --non-members", errUsage, dir)
		}
		return t, about, err
	}
	about = attacked{res.Name, res.RunID, res.Algorithm, res.Privacy.Statement, res.Privacy}
	if t.Run, err = config.Resolve([]byte(res.Config), nil, sim.Checks()...); err != nil {
		return t, about, fmt.Errorf("%s: %w", dir, err)
	}
	if t.Models, err = artifact.Open(dir); err != nil || f.nonMembers == "" {
		return t, about, err
	}
	own := *f
	own.attack.Client = "" // strangers' examples are not the client's
	if t.Others, err = own.examples(ctx, t.Models, f.nonMembers); err != nil {
		err = fmt.Errorf("--non-members: %w", err)
	}
	return t, about, err
}

// examples are labelled ones that a path names, as the models read them.
func (f *membershipFlags) examples(ctx context.Context, m *artifact.Model, path string) ([]data.Client, error) {
	rows := rowFlags{client: f.attack.Client, cluster: -1}
	rows.source.Path, rows.source.Client = path, f.names
	switch {
	case m.Shape.Vocabulary > 0:
		t := rows.texts("")
		return m.TextClients(ctx, t)
	case m.Shape.Pictures():
		p, err := rows.pictures()
		if err != nil {
			return nil, err
		}
		return m.PictureClients(ctx, p)
	}
	t, err := rows.table()
	if err != nil {
		return nil, err
	}
	return m.TableClients(ctx, t)
}

func (a *app) printMembership(about attacked, f membership.Found, path string) error {
	if a.output == "json" {
		return a.printJSON(struct {
			Run       string `json:"run"`
			Algorithm string `json:"algorithm"`
			Privacy   any    `json:"privacy"`
			membership.Found
			Kernel string `json:"kernel"`
			Report string `json:"report"`
		}{about.run, about.algorithm, about.privacy, f, model.Kernel(), path})
	}
	a.remark("%d members and %d non-members, told apart by the model of %s. Its own claim: %s.\n", f.Members, f.NonMembers, about.run, membership.Claim(about.claim))
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "attack\tAUC\t95 % interval")
	for _, r := range f.Attacks[0].Rates {
		fmt.Fprintf(w, "\tfound at %v", float64(r.At))
	}
	fmt.Fprintln(w, "\twith")
	for _, at := range f.Attacks {
		fmt.Fprintf(w, "%s\t%s", at.Attack, figureWords(at))
		for _, r := range at.Rates {
			fmt.Fprintf(w, "\t%.4f [%.4f, %.4f]", float64(r.TruePositive), float64(r.Low), float64(r.High))
		}
		fmt.Fprintf(w, "\t%s\n", at.How())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", membership.EpsilonHead(f.Attacks[0].Epsilon, f.Unit))
	for _, at := range f.Attacks {
		e := at.Epsilon
		fmt.Fprintf(w, "  %s\t%.3f\tof %.3f that %d and %d could show; says %s, %.3f right, %.3f wrong\n",
			at.Attack, float64(e.AtLeast), float64(e.Most), e.Members, e.NonMembers, e.Says, float64(e.TruePositive), float64(e.FalsePositive))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "\n%s.\n", f.Verdict); err != nil {
		return err
	}
	for _, line := range f.Says {
		a.remark("! %s.", line)
	}
	for _, line := range f.NotCovered {
		a.remark("not covered  %s", line)
	}
	if path != "" {
		a.remark("report  %s", path)
	}
	return nil
}

// figureWords is an AUC and its interval.
func figureWords(a membership.Attack) string {
	switch auc := a.AUC; {
	case auc == nil:
		return "none\t"
	case auc.Low == nil:
		return fmt.Sprintf("%.4f\tnone", float64(auc.Value))
	default:
		return fmt.Sprintf("%.4f\t[%.4f, %.4f]", float64(auc.Value), float64(*auc.Low), float64(*auc.High))
	}
}
