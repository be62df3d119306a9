package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// A table of one's own: a row an example, its columns described by the run file.
func init() {
	data.Register(data.Kind{
		DataKind: config.DataKind{Name: "table", Method: "mr-mtl", OwnTest: true, Settings: tableSettings, Settle: settleTable},
		Keys: []string{"source", "target", "task", "classes", "target_range", "target_missing", "features", "sensitive",
			"test", "train_limit", "standardise", "not_public"},
		Check: checkTable,
		Shape: func(d config.Data) (data.Shape, bool) {
			e, err := data.NewEncoding(d)
			if err != nil {
				classes := len(d.Classes)
				if d.Task == data.TaskYesNo {
					classes = 2
				}
				return data.Shape{Classes: classes}, false
			}
			return e.Shape(), true
		},
		Load: func(_ *data.Folder, d config.Data, seed uint64) (*data.Federation, error) {
			return LoadTable(d, seed, "")
		},
		One: LoadTable,
		Ranges: func(d config.Data) (centre, scale []float64) {
			if e, err := data.NewEncoding(d); err == nil {
				return e.Ranges()
			}
			return nil, nil
		},
		Words: func(d config.Data) string {
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
}

// LoadTable reads a table. A name says that all rows are those of one client: of a
// client column then only the rows of that name are taken.
func LoadTable(d config.Data, seed uint64, name string) (*data.Federation, error) {
	if d.Source.Path == "" && d.Source.Database == "" {
		return nil, fmt.Errorf("data.source names neither a path nor a database: where do the rows lie?")
	}
	e, err := data.NewEncoding(d)
	if err != nil {
		return nil, err
	}
	g := gathering{encoding: e, only: name, place: map[string]int{}, sensitive: len(d.Sensitive)}
	r := Reading{
		Source: d.Source, Encoding: e, LeaveOut: d.TargetMissing == "leave-out", Sensitive: d.Sensitive, Test: d.Test, Client: name,
	}
	tally, err := r.Each(context.Background(), func(b *Batch) error { return g.take(b, false) })
	if err != nil {
		return nil, err
	}
	if d.Test.Path != "" {
		r.Source.Path, r.Source.Database, r.Test = d.Test.Path, "", config.TestPart{}
		if _, err := r.Each(context.Background(), func(b *Batch) error { return g.take(b, true) }); err != nil {
			return nil, fmt.Errorf("data.test.path: %w", err)
		}
	}
	silos, err := g.silos(d, tally)
	if err != nil {
		return nil, err
	}
	return silos.Federation(data.SiloOptions{
		Seed: seed, TestShare: d.TestShare, TrainLimit: d.TrainLimit, Standardise: data.Standardise(d.Standardise), Centre: centreOf(e), Scale: scaleOf(e),
	})
}

func centreOf(e *data.Encoding) []float64 { c, _ := e.Ranges(); return c }
func scaleOf(e *data.Encoding) []float64  { _, s := e.Ranges(); return s }

// gathering sorts a table's rows by client.
type gathering struct {
	encoding  *data.Encoding
	only      string // one client's rows alone; empty: all
	place     map[string]int
	clients   []data.Client
	sensitive int
}

// client is the one of a name, new if it is not there.
func (g *gathering) client(name string) *data.Client {
	at, ok := g.place[name]
	if !ok {
		at = len(g.clients)
		g.place[name] = at
		fresh := func() data.Client {
			return data.Client{Name: name, Rows: data.Rows{Features: len(g.encoding.Inputs)}, Sensitive: make([][]int32, g.sensitive)}
		}
		held := fresh()
		g.clients = append(g.clients, fresh())
		g.clients[at].Held = &held
	}
	return &g.clients[at]
}

// take adds a batch's rows to their clients; held says that all of them are held out.
func (g *gathering) take(b *Batch, held bool) error {
	width := len(g.encoding.Inputs)
	for i := range b.Rows {
		name := b.Clients[i]
		if g.only != "" && name != g.only {
			continue
		}
		c := g.client(name)
		if held || b.Held != nil && b.Held[i] {
			c = c.Held
		}
		c.X, c.Y = append(c.X, b.X[i*width:(i+1)*width]...), append(c.Y, b.Y[i])
		for a := range c.Sensitive {
			c.Sensitive[a] = append(c.Sensitive[a], b.Groups[a][i])
		}
	}
	return nil
}

// silos are the clients, sorted by name, so that their order tells nothing of the file.
func (g *gathering) silos(d config.Data, t Tally) (*data.Silos, error) {
	slices.SortFunc(g.clients, func(a, b data.Client) int { return cmp.Compare(a.Name, b.Name) })
	s := &data.Silos{All: g.clients, Features: len(g.encoding.Inputs), Classes: len(g.encoding.Classes), Encoding: g.encoding,
		Report: data.LoadReport{Source: cmp.Or(d.Source.Path, d.Source.Database), Rows: t.Rows, Kept: t.Rows - t.LeftOut}}
	if d.Test == (config.TestPart{}) {
		for i := range s.All {
			s.All[i].Held = nil
		}
	}
	for _, a := range d.Sensitive {
		column := data.SensitiveColumn{Name: a.Name}
		for _, v := range a.Values {
			column.Values = append(column.Values, string(v))
		}
		s.Sensitive = append(s.Sensitive, column)
	}
	s.NotCovered = append(s.NotCovered, d.TakenFromData()...)
	if len(s.All) == 0 {
		if g.only != "" {
			return nil, fmt.Errorf("%s: no rows of %q in the column %s", s.Report.Source, g.only, d.Source.Client)
		}
		return nil, fmt.Errorf("%s: no rows after the header", s.Report.Source)
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for k := range t.Columns {
			if !yield(k) {
				return
			}
		}
	}) {
		s.Report.Notes = append(s.Report.Notes, name+": "+t.Columns[name].String())
	}
	return s, nil
}

// String is for the owner of the data.
func (m Moved) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{m.Clipped, "moved to the end of the public range"}, {m.Other, "not in the public list (other)"}, {m.Missing, "missing"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}
