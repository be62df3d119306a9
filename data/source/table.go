package source

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// A table of one's own: a row an example, its columns described by the run file.
func init() {
	data.Register(data.Kind{
		Get: "one's own file, folder or query, in data.source",
		DataKind: config.DataKind{Name: "table", Method: "mr-mtl", OwnTest: true, Settings: tableSettings, Settle: settleTable,
			Keys: []string{"source", "target", "task", "classes", "target_range", "target_missing", "features", "sensitive",
				"test_share", "test", "train_limit", "standardise", "projection", "not_public"}},
		Check: checkTable,
		Shape: func(d config.Data) (data.Shape, bool) {
			e, err := encodingOf(d)
			if err != nil {
				classes := len(d.Classes)
				if d.Task == data.TaskYesNo {
					classes = 2
				}
				return data.Shape{Classes: classes}, false
			}
			return e.Shape(), true
		},
		Load:  loadTable,
		Crowd: loadCrowd,
		One:   LoadTable,
		Ranges: func(d config.Data) (centre, scale []float64) {
			if e, err := encodingOf(d); err == nil {
				return e.Ranges()
			}
			return nil, nil
		},
		Words: func(d config.Data) string {
			if d.Target == "" {
				return "A table of one's own, which the run file describes"
			}
			return fmt.Sprintf("A table of one's own: %s (%s) is predicted from %d columns", d.Target, d.Task, len(d.Features))
		},
	})
}

// tableSettings are what a file on a table need not say: silos with privacy for single
// rows, and nothing that couples them.
func tableSettings(r *config.Run) {
	a, p := &r.Algorithm, &r.Privacy
	r.Data.TestShare, r.Data.Standardise = 0.2, string(data.Unscaled)
	r.Model.Intercept, r.Model.InitSD = true, 0
	a.Rounds, a.ClientsPerRound, a.Stop = 100, 0, config.Stop{Return: "last", Every: 1}
	a.Local.Step, a.Local.Batch, a.Local.Remainder, a.Local.Loss = 0.1, 32, "drop", "cross-entropy"
	a.Empty, a.Clustering, a.Weights = "keep", "declared", "equal"
	a.Selection = config.Selection{Rule: "private", Share: 0.1, EpsilonShare: 0.03, Score: "loss", Bound: 1}
	p.Protects, p.Epsilon, p.Delta, p.Clip, p.UpdateClip = "example", 2, 1e-5, 1, 0.1
	r.Judge.By = "own"
	if a.Mode == "sound" {
		p.MomentsShare = 0.1
	}
}

// settleTable is what follows from the task, and from a test part that is named.
func settleTable(r *config.Run, given func(path string) bool) {
	if !given("algorithm.local.loss") {
		r.Algorithm.Local.Loss = "cross-entropy"
		if r.Data.Task == data.TaskNumber {
			r.Algorithm.Local.Loss = "half-squared-error"
		}
	}
	if r.Data.Test != (config.TestPart{}) && !given("data.test_share") {
		r.Data.TestShare = 0
	}
}

func checkTable(c *config.Checker, d config.Data) {
	data.CheckTable(c, d)
	c.Require(d.Standardise != string(data.ByPublic), "data.standardise", "is public, but a table's public ranges scale it already; allowed: none, paid, silo")
	checkSource(c, d.Source)
}

// checkSource lists what is wrong with a table's source; one that is empty is left to
// whoever has to read it.
func checkSource(c *config.Checker, s config.Source) {
	c.Require(s.Path == "" || s.Database == "", "data.source", "has a path and a database; allowed: one of them")
	c.Require((s.Query == "") == (s.Database == ""), "data.source.query", "and database go together")
	c.Require(s.PasswordEnv == "" || s.PasswordFile == "", "data.source.password_env", "stands beside password_file; allowed: one of them")
	c.Require(s.Database != "" || s.PasswordEnv == "" && s.PasswordFile == "", "data.source.database", "is missing, but a password is named")
	c.Require(s.Database == "" || s.Format == "", "data.source.format", "is that of files; remove it, for there is a database")
	if s.Database != "" {
		checkDatabase(c, s)
	}
}

// LoadTable reads a table. A name says that all rows are those of one client: of a
// client column then only the rows of that name are taken, and the client stays if all of
// them are held out.
func LoadTable(d config.Data, seed uint64, name string) (*data.Federation, error) {
	silos, err := readTable(d, name, func(g *gathering) {
		if d.Test == (config.TestPart{}) && d.TestShare > 0 {
			g.holdOut(seed, d.TestShare)
		}
	})
	if err != nil {
		return nil, err
	}
	o := tableOptions(d, seed, silos.Encoding)
	o.Consume, o.KeepEmpty = true, name != ""
	return silos.Federation(o)
}

// loadTable reads all clients of a table. Where many runs share what was read, rows are
// held out of a copy.
func loadTable(f *data.Folder, d config.Data, seed uint64) (*data.Federation, error) {
	if !f.Keeps() {
		return LoadTable(d, seed, "")
	}
	silos, err := data.Kept(f, readingKey(d), func() (*data.Silos, error) {
		return readTable(d, "", func(*gathering) {})
	})
	if err != nil {
		return nil, err
	}
	return silos.Federation(tableOptions(d, seed, silos.Encoding))
}

// readingKey names all of a block that decides what is read, and nothing of what is done
// afterwards.
func readingKey(d config.Data) string {
	d.TestShare, d.TrainLimit, d.Standardise = 0, 0, ""
	return fmt.Sprintf("%#v", d)
}

func tableOptions(d config.Data, seed uint64, e *data.Encoding) data.SiloOptions {
	centre, scale := e.Ranges()
	return data.SiloOptions{
		Seed: seed, TestShare: d.TestShare, TrainLimit: d.TrainLimit, Standardise: data.Standardise(d.Standardise), Centre: centre, Scale: scale,
	}
}

// readTable reads the rows of all clients, or of one. They can be dealt before they are
// copied to their clients.
func readTable(d config.Data, name string, deal func(*gathering)) (*data.Silos, error) {
	if d.Source.Path == "" && d.Source.Database == "" {
		return nil, fmt.Errorf("data.source names neither a path nor a database: where do the rows lie?")
	}
	e, err := encodingOf(d)
	if err != nil {
		return nil, err
	}
	g := gathering{encoding: e, only: name, place: map[string]int{}, sensitive: len(d.Sensitive), dealt: d.Test != config.TestPart{}}
	r := Reading{
		Source: d.Source, Encoding: e, LeaveOut: d.TargetMissing == "leave-out", Sensitive: d.Sensitive, Test: d.Test, Client: name, keep: true,
	}
	r.Test.Path = ""
	tally, err := r.Each(context.Background(), func(b *Batch) error { return g.take(b, false) })
	if err == nil && d.Test.Path != "" {
		err = g.readTest(&r, d, &tally)
	} else if err != nil && d.Test.Path != "" {
		var more Tally
		err = bothFaults(err, g.readTest(&r, d, &more))
	}
	if err != nil {
		return nil, err
	}
	deal(&g)
	return g.silos(d, tally)
}

// encodingOf is a block's encoding with its projection. A relative path has not been seen
// from the run file's folder yet.
func encodingOf(d config.Data) (*data.Encoding, error) {
	e, err := data.NewEncoding(d)
	if err != nil || d.Projection == "" {
		return e, err
	}
	if !filepath.IsAbs(d.Projection) {
		return nil, fmt.Errorf("data.projection: %s is not yet seen from the run file's folder", d.Projection)
	}
	p, err := data.ReadProjection(d.Projection)
	if err != nil {
		return nil, err
	}
	return e, e.Project(p)
}

// readTest reads the rows of a test part that has files of its own.
func (g *gathering) readTest(r *Reading, d config.Data, t *Tally) error {
	r.Source = config.Source{Path: d.Test.Path, Format: d.Source.Format, Client: d.Source.Client}
	tally, err := r.Each(context.Background(), func(b *Batch) error { return g.take(b, true) })
	if err != nil {
		return fmt.Errorf("data.test.path: %w", err)
	}
	t.add(tally)
	return nil
}

// bothFaults are those of the source and of the test part in one list.
func bothFaults(source, test error) error {
	var a, b *Faults
	if errors.As(source, &a) && errors.As(test, &b) {
		a.append(b)
	}
	return source
}
