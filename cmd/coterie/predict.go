package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/internal/durable"
)

// rowFlags say where new rows lie, and whose they are.
type rowFlags struct {
	source  config.Source
	client  string
	cluster int
	keep    []string
}

func (f *rowFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.source.Path, "data", "", "file of new rows (CSV, Parquet), or a folder or pattern of one file a client; of pictures a client's folder, npz or idx file; of people a folder of the eight files (default: the run's own)")
	flags.StringVar(&f.source.Database, "database", "", "database of new rows instead: postgres://user@host/name or sqlite:FILE")
	flags.StringVar(&f.source.Query, "query", "", "with --database: what is asked of it")
	flags.StringVar(&f.source.PasswordEnv, "password-env", "", "with --database: the environment variable that holds the password")
	flags.StringVar(&f.source.PasswordFile, "password-file", "", "with --database: the file that holds it")
	flags.StringVar(&f.client, "client", "", "all rows or pictures are this client's")
	flags.StringVar(&f.source.Client, "client-column", "", "the column that names every row's client")
	flags.IntVar(&f.cluster, "cluster", -1, "the cluster whose model clients get that were not there in training (default: the one that fits their labelled rows)")
}

// table is what the flags mean.
func (f *rowFlags) table() (artifact.Table, error) {
	t := artifact.Table{Source: f.source, Client: f.client, Keep: f.keep}
	switch {
	case (f.source.Path == "") == (f.source.Database == ""):
		return t, fmt.Errorf("%w: name the new rows by --data or by --database", errUsage)
	case (f.source.Query == "") != (f.source.Database == ""):
		return t, fmt.Errorf("%w: --database and --query go together", errUsage)
	case f.client != "" && f.source.Client != "":
		return t, fmt.Errorf("%w: --client says whose all rows are, --client-column whose each is; give one of them", errUsage)
	}
	if f.cluster >= 0 {
		t.Cluster = &f.cluster
	}
	if f.client == "" && f.source.Path != "" {
		info, err := os.Stat(f.source.Path)
		t.Files = err == nil && info.IsDir() || err != nil && strings.ContainsAny(f.source.Path, "*?[")
	}
	return t, nil
}

// pictures is what the flags mean for models of pictures.
func (f *rowFlags) pictures() (artifact.Pictures, error) {
	p := artifact.Pictures{Path: f.source.Path, Client: f.client}
	if f.cluster >= 0 {
		p.Cluster = &f.cluster
	}
	switch {
	case f.source.Database != "":
		return p, fmt.Errorf("%w: the models are of pictures, which --database does not have; name their folder by --data", errUsage)
	case f.source.Client != "" || len(f.keep) > 0:
		return p, fmt.Errorf("%w: the models are of pictures, which have no columns: leave out --client-column and --keep; --client says whose the pictures are", errUsage)
	}
	return p, nil
}

// openModel opens a model folder; one that cannot be used is wrong usage.
func openModel(dir string) (*artifact.Model, error) {
	m, err := artifact.Open(dir)
	if errors.Is(err, artifact.ErrFolder) {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	return m, err
}

// oneModel wants a folder of models. Whoever names the rows beside it learns where they go.
func oneModel(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return errors.New("name a folder of models: a run directory, or the out folder that coterie serve and join leave")
	}
	return fmt.Errorf("one folder of models is wanted, and %d arguments are given; new rows or pictures are named by --data, here --data %s", len(args), args[1])
}

func (a *app) newPredictCommand() *cobra.Command {
	var f rowFlags
	var out, merges string
	cmd := &cobra.Command{
		Use:   "predict MODEL",
		Short: "Answer new rows, pictures, text or people with trained models",
		Long: "Answer new rows or pictures with the models of a run directory, or of the out folder that coterie serve and join leave, and write the answers as CSV: every class's probability and the chosen class, or the number. Of text: how every row of it is foreseen, and the word that would come next.\n" +
			"Of a run on people it is everybody's risk to fall ill in the week after the known days (pid, risk, and infected where that is known): for that person, or for the authority that holds the data.\n" +
			"A client gets its own model; one that was not there in training what its method can give. docs/models.md tells which.",
		Example: "  coterie predict runs/wards --data new.csv --client north --keep patient --out predictions.csv\n" +
			"  coterie predict runs/wards --data new.csv --client-column hospital > predictions.csv\n" +
			"  coterie predict runs/scans --data new --client north --out predictions.csv\n" +
			"  coterie predict runs/risk --out risks.csv",
		Args: oneModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, wrong := f.table()
			if a.output == "json" && out == "" {
				return fmt.Errorf("%w: with --output json the predictions need a file of their own: --out FILE", errUsage)
			}
			m, err := openModel(args[0])
			switch {
			case wrong != nil && (err != nil || !m.ForPeople()):
				return wrong
			case err != nil:
				return err
			}
			var made artifact.Predictions
			predict := func(w io.Writer) (err error) {
				made, err = m.PredictTable(cmd.Context(), w, t)
				return err
			}
			switch {
			case m.Shape.Vocabulary > 0:
				if len(f.keep) > 0 || f.source.Client != "" || f.source.Database != "" {
					return fmt.Errorf("%w: the models are of words, which have no columns: leave out --keep, --client-column and --database; a file is a client's, and --client says whose all are", errUsage)
				}
				predict = func(w io.Writer) (err error) {
					made, err = m.PredictTexts(cmd.Context(), w, f.texts(merges))
					return err
				}
			case m.ForPeople():
				p, err := f.people(m)
				if err != nil {
					return err
				}
				predict = func(w io.Writer) (err error) {
					made, err = m.PredictPeople(cmd.Context(), w, p)
					return err
				}
			case m.Shape.Pictures():
				p, err := f.pictures()
				if err != nil {
					return err
				}
				predict = func(w io.Writer) (err error) {
					made, err = m.PredictPictures(cmd.Context(), w, p)
					return err
				}
			}
			if out != "" {
				err = durable.Replace(out, 0o600, predict)
			} else {
				err = whole(a.stdout, predict)
			}
			if err != nil {
				return whoseIsUsage(err)
			}
			a.tellModels(m, made.Models)
			if m.ForPeople() && !a.quiet {
				fmt.Fprintln(a.stderr, "Risks are computed from everybody's contacts and history as they are: no guarantee of the model covers them. Each is for that person, or for the authority that holds the data.")
			}
			if a.output == "json" {
				full, err := filepath.Abs(out)
				if err != nil {
					return fmt.Errorf("find the predictions: %w", err)
				}
				return a.printJSON(struct {
					Model       string `json:"model"`
					ModelSHA256 string `json:"model_sha256"`
					Method      string `json:"method"`
					Task        string `json:"task"`
					artifact.Predictions
					Out string `json:"out"`
				}{m.Path, m.ModelSHA256, m.Method, m.Task, made, full})
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&f.keep, "keep", nil, "column that the predictions repeat, such as an identifier; more than one by repeating it (default: the row's number)")
	addMerges(cmd, &merges)
	cmd.Flags().StringVar(&out, "out", "", "file of the predictions, for its owner alone (default: standard output)")
	return cmd
}

// whoseIsUsage says that a model which cannot be chosen is a matter of the flags.
func whoseIsUsage(err error) error {
	if errors.Is(err, artifact.ErrWhose) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

// whole copies what write writes once it is whole: a fault in the last row leaves nothing
// behind.
func whole(to io.Writer, write func(io.Writer) error) error {
	f, err := os.CreateTemp("", "coterie-")
	if err != nil {
		return fmt.Errorf("make room for the predictions: %w", err)
	}
	_ = os.Remove(f.Name())   // now, where the system lets us: a process that is killed leaves nothing
	defer os.Remove(f.Name()) // or then
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the predictions: %w", err)
	}
	if _, err := io.Copy(to, f); err != nil {
		return fmt.Errorf("write the predictions: %w", err)
	}
	return nil
}

// mostTold is how many clients' models are told one by one.
const mostTold = 20

// tellModels says which models were used, and why.
func (a *app) tellModels(m *artifact.Model, used []artifact.Used) {
	if a.quiet {
		return
	}
	for i, u := range used {
		if i == mostTold {
			fmt.Fprintf(a.stderr, "and %d more clients: the predictions' column model names each one's\n", len(used)-i)
			return
		}
		fmt.Fprintf(a.stderr, "%d %s: %s: %s\n", u.Rows, m.Examples(), u.Model, u.Why)
	}
}
