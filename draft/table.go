package draft

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/source"
)

// look is what is known of a table after it was read once.
type look struct {
	request Request
	columns []*tally // in the order of the first file
	absent  map[string]string
	clients map[string]int // rows
	files   []string
	unnamed int // rows without a client
}

func newTable(ctx context.Context, r Request) (*Draft, error) {
	if r.Target == "" {
		return nil, fmt.Errorf("%w: --target is missing: which column is to be predicted?", ErrRequest)
	}
	l := &look{request: r, clients: map[string]int{}, absent: map[string]string{}}
	if err := source.Raw(ctx, config.Source{Path: r.Path, Client: r.Client}, l.take); err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	d := &Draft{Kind: "table", Clients: l.counted()}
	for _, c := range d.Clients {
		d.Rows += c.Rows
	}
	var err error
	if d.Target, d.Task, err = l.column(r.Target).goal(); err != nil {
		return nil, err
	}
	features := 0
	for _, t := range l.columns {
		if t.name == r.Target || t.name == r.Client {
			continue
		}
		c := t.guess()
		if file := l.absent[t.name]; file != "" {
			c = Column{Name: t.name, Why: "is not in every file: " + file + " has no such column"}
		}
		if c.Type != "" {
			features++
		}
		d.Columns = append(d.Columns, c)
	}
	if features == 0 {
		return nil, fmt.Errorf("%w: no column is left to predict %s from: %s", ErrRequest, r.Target, reasons(d.Columns))
	}
	return d, d.writeTable(r, l.files)
}

func reasons(columns []Column) string {
	var out []string
	for _, c := range columns {
		out = append(out, c.Name+" "+c.Why)
	}
	return strings.Join(out, "; ")
}

// take counts some rows of a file.
func (l *look) take(some source.RawRows) error {
	header := some.Columns
	if len(l.files) == 0 || l.files[len(l.files)-1] != some.File {
		if err := l.open(some.File, header); err != nil {
			return err
		}
	}
	name, at := source.ClientOf(some.File), -1
	if l.request.Client != "" {
		at = slices.Index(header, l.request.Client)
	}
	place := make([]int, len(l.columns))
	for i, c := range l.columns {
		place[i] = slices.Index(header, c.name)
	}
	for _, cells := range some.Rows {
		if at >= 0 {
			name = strings.Clone(cells[at])
		}
		if data.IsMissing([]byte(name)) {
			l.unnamed++
			continue
		}
		l.clients[name]++
		for i, c := range l.columns {
			if place[i] >= 0 {
				c.add(cells[place[i]], some.ParseNumber)
			}
		}
	}
	return nil
}

// open holds a file's column names against the request and the files before it.
func (l *look) open(file string, header []string) error {
	l.files = append(l.files, file)
	for _, wanted := range []struct{ flag, name string }{{"--client", l.request.Client}, {"--target", l.request.Target}} {
		if wanted.name != "" && !slices.Contains(header, wanted.name) {
			return fmt.Errorf("%w: %s %q is not in the header of %s%s It has %s", ErrRequest, wanted.flag, wanted.name, file, suggestion(wanted.name, header), strings.Join(header, ", "))
		}
	}
	seen := map[string]bool{}
	for _, name := range header {
		if seen[name] || name == "" {
			return fmt.Errorf("%w: %s has a column without a name, or two that are called %q: name every column differently", ErrRequest, file, name)
		}
		seen[name] = true
		if len(l.files) == 1 {
			l.columns = append(l.columns, newTally(name))
		} else if l.column(name) == nil {
			l.columns = append(l.columns, newTally(name))
			l.absent[name] = filepath.Base(l.files[0])
		}
	}
	for _, c := range l.columns {
		if !seen[c.name] {
			l.absent[c.name] = filepath.Base(file)
		}
	}
	return nil
}

func (l *look) column(name string) *tally {
	if i := slices.IndexFunc(l.columns, func(t *tally) bool { return t.name == name }); i >= 0 {
		return l.columns[i]
	}
	return nil
}

// check says why the table cannot be trained on at all.
func (l *look) check() error {
	switch r := l.request; {
	case r.Client == r.Target:
		return fmt.Errorf("%w: --client and --target are both %s", ErrRequest, r.Client)
	case r.Client == "" && len(l.files) == 1:
		return fmt.Errorf("%w: --client is missing: which column of %s names the client? (Or name a folder with one file a client.) It has %s", ErrRequest, l.files[0], strings.Join(l.names(), ", "))
	case l.unnamed > 0:
		return fmt.Errorf("%w: %d rows have no value in the column %s: whose are they? Fill them in, or take them out", ErrRequest, l.unnamed, r.Client)
	case len(l.clients) == 0:
		return fmt.Errorf("%w: %s has no rows", ErrRequest, r.Path)
	}
	return nil
}

func (l *look) names() []string {
	var out []string
	for _, c := range l.columns {
		out = append(out, c.name)
	}
	return out
}

// counted are the clients by name.
func (l *look) counted() []Client {
	var out []Client
	for name, rows := range l.clients {
		out = append(out, Client{name, rows})
	}
	slices.SortFunc(out, func(a, b Client) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
