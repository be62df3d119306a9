package source

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// gathering sorts a table's rows by client. Batches are kept as they come, and rows are
// copied once, when it is known how many everybody has.
type gathering struct {
	encoding  *data.Encoding
	only      string // one client's rows alone; empty: all
	sensitive int
	dealt     bool // it is known which rows are held out

	place   map[string]int // of a client in names
	names   []string
	rows    []int // by part: 2*client, and one more for what is held out
	missing []int // cells, by client
	pieces  []gathered
}

// gathered is a batch and the part that each of its rows belongs to.
type gathered struct {
	*Batch
	parts  []int32
	places []int32 // of each row in its part
}

// place gives each row its place behind those of earlier batches.
func (p *gathered) place(next []int) {
	p.places = make([]int32, len(p.parts))
	for i, part := range p.parts {
		p.places[i] = int32(next[part])
		next[part]++
	}
}

// take keeps a batch; held says that all of its rows are held out.
func (g *gathering) take(b *Batch, held bool) error {
	parts, n := make([]int32, b.Rows), 0
	last, at := "", -1
	for i, name := range b.Clients {
		if g.only != "" && name != g.only {
			parts[i] = -1
			continue
		}
		if at < 0 || name != last {
			last, at = name, g.client(name)
		}
		part := 2 * at
		if held || b.Held != nil && b.Held[i] {
			part++
		}
		parts[i] = int32(part)
		g.rows[part]++
		g.missing[at] += int(b.Missing[i])
		n++
	}
	b.Clients, b.Held, b.Missing = nil, nil, nil
	kept := gathered{Batch: b, parts: parts}
	if n < b.Rows {
		kept = kept.without(len(g.encoding.Inputs), n)
	}
	g.pieces = append(g.pieces, kept)
	return nil
}

// client is the place of a name, new if it is not there.
func (g *gathering) client(name string) int {
	at, ok := g.place[name]
	if !ok {
		at = len(g.names)
		g.place[name] = at
		g.names, g.rows, g.missing = append(g.names, name), append(g.rows, 0, 0), append(g.missing, 0)
	}
	return at
}

// without is a copy without the rows that belong to nobody.
func (p gathered) without(width, rows int) gathered {
	out := gathered{&Batch{Groups: make([][]int32, len(p.Groups)), X: make([]float64, 0, rows*width), Y: make([]float64, 0, rows)}, make([]int32, 0, rows), nil}
	for i, part := range p.parts {
		if part < 0 {
			continue
		}
		out.parts = append(out.parts, part)
		out.X, out.Y = append(out.X, p.X[i*width:(i+1)*width]...), append(out.Y, p.Y[i])
		for a := range p.Groups {
			out.Groups[a] = append(out.Groups[a], p.Groups[a][i])
		}
	}
	return out
}

// clients are the parts with their rows, in the order of the table. Batches are copied on
// all cores: where each begins in each part is known before.
func (g *gathering) clients() []data.Client {
	width := len(g.encoding.Inputs)
	parts := make([]data.Client, len(g.rows))
	for i, rows := range g.rows {
		c := &parts[i]
		c.Name = g.names[i/2]
		c.Rows = data.Rows{Features: width, X: make([]float64, rows*width), Y: make([]float64, rows)}
		c.Sensitive = make([][]int32, g.sensitive)
		for a := range c.Sensitive {
			c.Sensitive[a] = make([]int32, rows)
		}
	}
	next := make([]int, len(parts)) // place of each part's next row
	for k := range g.pieces {
		g.pieces[k].place(next)
	}
	workers := pool.New(runtime.GOMAXPROCS(0))
	defer workers.Close()
	workers.Each(len(g.pieces), func(_, k int) {
		p := &g.pieces[k]
		for i, part := range p.parts {
			c, at := &parts[part], int(p.places[i])
			copy(c.X[at*width:(at+1)*width], p.X[i*width:(i+1)*width])
			c.Y[at] = p.Y[i]
			for a := range c.Sensitive {
				c.Sensitive[a][at] = p.Groups[a][i]
			}
		}
		*p = gathered{} // nobody needs it any more
	})
	out := make([]data.Client, len(g.names))
	for i := range out {
		out[i] = parts[2*i]
		out[i].Held = &parts[2*i+1]
	}
	return out
}

// holdOut draws which rows are held out, on all cores.
func (g *gathering) holdOut(seed uint64, share float64) {
	width := len(g.encoding.Inputs)
	holders := make([]data.Holder, len(g.names))
	for i, name := range g.names {
		holders[i] = data.NewHolder(seed, share, name)
	}
	workers := pool.New(runtime.GOMAXPROCS(0))
	workers.Each(len(g.pieces), func(_, k int) {
		p, buffer := &g.pieces[k], []byte(nil)
		for i, part := range p.parts {
			if holders[part/2].Holds(p.X[i*width:(i+1)*width], p.Y[i], &buffer) {
				p.parts[i]++
			}
		}
	})
	workers.Close()
	g.dealt = true
	for _, p := range g.pieces {
		for _, part := range p.parts {
			if part%2 == 1 {
				g.rows[part]++
				g.rows[part-1]--
			}
		}
	}
}

// silos are the clients, sorted by name, so that their order tells nothing of the file,
// with what each holds out if that is known.
func (g *gathering) silos(d config.Data, t Tally) (*data.Silos, error) {
	s := emptySilos(d, g.encoding, t)
	s.All = g.clients()
	if len(s.All) == 0 {
		if g.only != "" && d.Source.Client != "" {
			return nil, fmt.Errorf("%s: no rows of %q in the column %s", s.Report.Source, g.only, d.Source.Client)
		}
		return nil, fmt.Errorf("%s: no rows after the header", s.Report.Source)
	}
	s.Report.Missing = map[string]int{}
	for i, c := range s.All {
		s.Report.Missing[c.Name] = g.missing[i]
		if !g.dealt {
			s.All[i].Held = nil // that is for the silos to settle
		}
	}
	slices.SortFunc(s.All, func(a, b data.Client) int { return cmp.Compare(a.Name, b.Name) })
	for _, a := range d.Sensitive {
		column := data.SensitiveColumn{Name: a.Name}
		for _, v := range a.Values {
			column.Values = append(column.Values, string(v))
		}
		s.Sensitive = append(s.Sensitive, column)
	}
	return s, nil
}

// emptySilos are a table's without their rows.
func emptySilos(d config.Data, e *data.Encoding, t Tally) *data.Silos {
	return &data.Silos{
		Features: len(e.Inputs), Classes: len(e.Classes), Encoding: e,
		Report: t.report(d), NotCovered: append(d.TakenFromData(), e.Projection.Uncovered()...),
	}
}

// report is what the owner of the data is told.
func (t Tally) report(d config.Data) data.LoadReport {
	r := data.LoadReport{Source: cmp.Or(d.Source.Path, d.Source.Database), Rows: t.Rows, Kept: t.Rows - t.LeftOut}
	if t.LeftOut > 0 {
		r.LeftOut = append(r.LeftOut, data.LeftOut{Reason: "row without a target", Count: t.LeftOut})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Columns)) {
		m := t.Columns[name]
		r.Columns = append(r.Columns, data.MovedCells{Name: name, Clipped: m.Clipped, Other: m.Other, Missing: m.Missing})
		r.Notes = append(r.Notes, name+": "+m.String())
	}
	if len(t.Skipped) > 0 {
		r.Notes = append(r.Notes, "not read, for their endings are no table's: "+strings.Join(t.Skipped, ", "))
	}
	return r
}

// add counts what was read after this.
func (t *Tally) add(later Tally) {
	t.Files, t.Rows, t.LeftOut = t.Files+later.Files, t.Rows+later.Rows, t.LeftOut+later.LeftOut
	t.Skipped = append(t.Skipped, later.Skipped...)
	for name, m := range later.Columns {
		if t.Columns == nil {
			t.Columns = map[string]Moved{}
		}
		t.Columns[name] = t.Columns[name].add(m)
	}
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
