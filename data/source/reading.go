package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// Reading says what is wanted of a table: where it lies, how its columns become rows,
// and what else is kept of every row.
type Reading struct {
	Source   config.Source
	Encoding *data.Encoding
	// NoTarget: the target need not be there, and is not read where it is.
	NoTarget bool
	// LeaveOut leaves rows without a target out instead of finding fault with them.
	LeaveOut bool
	// Sensitive are columns whose place in their public list is kept.
	Sensitive []config.Column
	// Test is a column that says which rows are held out.
	Test config.TestPart
	// Keep are further columns whose text is kept, such as identifiers.
	Keep []string
	// Client is the name of whoever holds the rows where no column and no file says so.
	Client string
}

// Batch is a piece of a table: some rows in the order of the file. It belongs to the
// caller until the function that it was given to returns.
type Batch struct {
	File    string
	First   int       // line of the first row, as an editor counts; rows of a database from 1
	X, Y    []float64 // encoded; Y is empty without a target
	Rows    int
	Clients []string  // by row
	Held    []bool    // by row; nil: no column says so
	Groups  [][]int32 // by sensitive attribute and row; -1: in none of the groups
	Kept    [][]string
}

// Fault is what is wrong in one place of a table.
type Fault struct {
	File   string
	Line   int // 0: the file as a whole
	Column string
	What   string
}

func (f Fault) Error() string {
	place := f.File
	if f.Line > 0 {
		place += fmt.Sprintf(", line %d", f.Line)
	}
	if f.Column != "" {
		place += ", column " + f.Column
	}
	return place + ": " + f.What
}

// Faults are all that is wrong with a table; a huge number of them is counted only.
type Faults struct {
	First []Fault
	Count int
}

// mostFaults is how many faults are listed; all are counted.
const mostFaults = 50

// ErrTable marks a table that cannot be used as it is.
var ErrTable = errors.New("the table has faults")

func (f *Faults) add(one Fault) {
	f.Count++
	if len(f.First) < mostFaults {
		f.First = append(f.First, one)
	}
}

// Unwrap makes the faults an ErrTable.
func (f *Faults) Unwrap() error { return ErrTable }

func (f *Faults) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the table has %d faults; nothing was made of it", f.Count)
	if f.Count == 1 {
		b.Reset()
		b.WriteString("the table has a fault; nothing was made of it")
	}
	for _, one := range f.First {
		b.WriteString("\n  " + one.Error())
	}
	if more := f.Count - len(f.First); more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return b.String()
}

// Tally is what was counted on the way. It depends on private rows: it is for their
// owner alone.
type Tally struct {
	Files   int
	Rows    int
	LeftOut int              // rows without a target
	Columns map[string]Moved // by column
}

// Moved counts cells of one column that are not what the run file says of it.
type Moved struct{ Clipped, Other, Missing int }

func (t *Tally) count(column string, o data.CellOutcome) {
	if o == data.CellFine {
		return
	}
	if t.Columns == nil {
		t.Columns = map[string]Moved{}
	}
	m := t.Columns[column]
	switch o {
	case data.CellClipped:
		m.Clipped++
	case data.CellOther:
		m.Other++
	case data.CellMissing:
		m.Missing++
	}
	t.Columns[column] = m
}

// Each reads the table, batch by batch in the order of the files and of their rows. All
// faults are found before it returns them; each is not called after the first one.
func (r *Reading) Each(ctx context.Context, each func(*Batch) error) (Tally, error) {
	var t Tally
	var faults Faults
	files, err := r.files()
	if err != nil {
		return t, err
	}
	for _, path := range files {
		if err := r.readCSV(ctx, path, &t, &faults, each); err != nil {
			return t, err
		}
	}
	if faults.Count > 0 {
		return t, &faults
	}
	return t, nil
}

// columnNames are all columns that are read.
func (r *Reading) columnNames() []string {
	var out []string
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, c := range r.Encoding.Columns {
		add(c.Name)
	}
	if !r.NoTarget {
		add(r.Encoding.Target)
	}
	add(r.Source.Client)
	add(r.Test.Column)
	for _, s := range r.Sensitive {
		add(s.Name)
	}
	for _, k := range r.Keep {
		add(k)
	}
	return out
}
