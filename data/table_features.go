package data

import (
	"fmt"
	"io"
)

// Tabular are rows of a table as numbers: categories one-hot by public lists,
// numbers divided by public constants, labels 0 and 1, and the sensitive
// attributes beside them. No value depends on another row.
type Tabular struct {
	Rows
	Names     []string // of the features: "age", "workclass=Private"
	Sensitive []Attribute
	Report    LoadReport
}

// Attribute is a sensitive attribute: the group of every row.
type Attribute struct {
	Name   string
	Values []string // what the groups are
	Groups []int    // of every row: place in Values
}

// TabularOptions say how a table becomes features.
type TabularOptions struct {
	// SensitiveFeatures makes the sensitive attributes features too.
	SensitiveFeatures bool
}

// feature is one column: categories if it has values, otherwise a number from
// low to high that is divided by scale.
type feature struct {
	column           string
	values           []string
	missing          string // how the file writes a missing value, whose features are all 0; "": it never does
	low, high, scale float64
	sensitive        bool
}

// schema says how a dataset is read.
type schema struct {
	features []feature
	label    string
	classes  []string // of label 0 and of label 1
	id       string   // a column whose values must differ; "": none
	filter   []string // columns that keep looks at
	keep     func(r row, at []int) (reason string, err error)
}

// reader reads a file of the schema.
func (s schema) reader(o TabularOptions) func(name string, r io.Reader) (*Tabular, error) {
	return func(name string, r io.Reader) (*Tabular, error) { return readTabular(name, r, s, o) }
}

// readTabular reads a table strictly: a cell that the schema does not allow is an
// error that names its place.
func readTabular(name string, r io.Reader, s schema, o TabularOptions) (*Tabular, error) {
	t, err := newTable(name, r)
	if err != nil {
		return nil, err
	}
	d := &Tabular{Report: LoadReport{Source: name}}
	names := []string{s.label}
	for _, f := range s.features {
		names = append(names, f.column)
		d.describe(f, o)
	}
	at, err := t.columns(names...)
	if err != nil {
		return nil, err
	}
	label, at := at[0], at[1:]
	filter, err := t.columns(s.filter...)
	if err != nil {
		return nil, err
	}
	ids, err := newUnique(t, s.id)
	if err != nil {
		return nil, err
	}
	d.Features = len(d.Names)
	for row, err := range t.rows() {
		if err != nil {
			return nil, err
		}
		d.Report.Rows++
		if err := ids.check(row); err != nil {
			return nil, err
		}
		if s.keep != nil {
			reason, err := s.keep(row, filter)
			if err != nil {
				return nil, err
			}
			if reason != "" {
				d.Report.leaveOut(reason, "")
				continue
			}
		}
		class, err := row.choice(label, s.classes)
		if err != nil {
			return nil, err
		}
		if err := d.add(row, at, s.features, o, float64(class)); err != nil {
			return nil, err
		}
	}
	if d.Len() == 0 {
		return nil, fmt.Errorf("no row is left: %s", &d.Report)
	}
	d.Report.Kept = d.Len()
	return d, nil
}

// describe names the features of a column.
func (d *Tabular) describe(f feature, o TabularOptions) {
	if f.sensitive {
		d.Sensitive = append(d.Sensitive, Attribute{Name: f.column, Values: f.values})
		if !o.SensitiveFeatures {
			return
		}
	}
	if f.values == nil {
		d.Names = append(d.Names, f.column)
		return
	}
	for _, v := range f.values {
		d.Names = append(d.Names, f.column+"="+v)
	}
}

// add encodes one row.
func (d *Tabular) add(r row, at []int, features []feature, o TabularOptions, y float64) error {
	groups := make([]int, 0, 4)
	for i, f := range features {
		if f.missing != "" && r.cells[at[i]] == f.missing {
			d.X = append(d.X, make([]float64, max(len(f.values), 1))...)
			continue
		}
		if f.values == nil {
			v, err := r.number(at[i], f.low, f.high)
			if err != nil {
				return err
			}
			d.X = append(d.X, v/f.scale)
			continue
		}
		k, err := r.choice(at[i], f.values)
		if err != nil {
			return err
		}
		if f.sensitive {
			groups = append(groups, k)
			if !o.SensitiveFeatures {
				continue
			}
		}
		d.X = append(d.X, make([]float64, len(f.values))...)
		d.X[len(d.X)-len(f.values)+k] = 1
	}
	d.Y = append(d.Y, y)
	for i, g := range groups {
		d.Sensitive[i].Groups = append(d.Sensitive[i].Groups, g)
	}
	return nil
}

// unique refuses a value that was there already.
type unique struct {
	column int // -1: nothing to check
	lines  map[string]int
}

func newUnique(t *table, column string) (*unique, error) {
	if column == "" {
		return &unique{column: -1}, nil
	}
	at, err := t.columns(column)
	if err != nil {
		return nil, err
	}
	return &unique{at[0], map[string]int{}}, nil
}

func (u *unique) check(r row) error {
	if u.column < 0 {
		return nil
	}
	v := r.cells[u.column]
	if first, twice := u.lines[v]; twice {
		return r.faultf(u.column, "%s was on line %d already", shorten(v), first)
	}
	u.lines[v] = r.t.line
	return nil
}
