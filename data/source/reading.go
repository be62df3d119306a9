package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// Reading says what is wanted of a table: where it lies, how its columns become rows,
// and what else is kept of every row.
type Reading struct {
	Source config.Source
	// Key is what named the path; empty: data.source.path.
	Key      string
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

	// keep leaves batches to whoever got them: they are not used again.
	keep bool
}

// Batch is a piece of a table: some rows in the order of the file. It belongs to the
// caller until the function that it was given to returns.
type Batch struct {
	File    string
	First   int       // line of the first row, as an editor counts; rows of a database or of Parquet from 1
	X, Y    []float64 // encoded; Y is empty without a target
	Rows    int
	Clients []string  // by row
	Held    []bool    // by row; nil: no column says so
	Groups  [][]int32 // by sensitive attribute and row; -1: in none of the groups
	Missing []int32   // by row: how many of its cells are missing
	Kept    [][]string
}

// Fault is what is wrong in one place of a table.
type Fault struct {
	File   string
	Line   int // 0: the file as a whole
	Column string
	What   string
	Row    int // of a database or of Parquet, from 1, where there are no lines
	// Header: the column itself is not as it is wanted, whatever the rows have.
	Header bool
}

func (f Fault) Error() string {
	place := f.File
	if f.Line > 0 {
		place += fmt.Sprintf(", line %d", f.Line)
	}
	if f.Row > 0 {
		place += fmt.Sprintf(", row %d", f.Row)
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

// listed says that no further fault is listed: it need not be put into words.
func (f *Faults) listed() bool { return len(f.First) >= mostFaults }

func (f *Faults) add(one Fault) {
	f.Count++
	if !f.listed() {
		f.First = append(f.First, one)
	}
}

// append adds those of a later part of the table.
func (f *Faults) append(later *Faults) {
	f.Count += later.Count
	f.First = append(f.First, later.First[:min(len(later.First), mostFaults-len(f.First))]...)
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
	Skipped []string         // of a folder: what is no table
}

// Moved counts cells of one column that are not what the run file says of it.
type Moved struct{ Clipped, Other, Missing int }

// add is both counts together.
func (m Moved) add(o Moved) Moved {
	return Moved{m.Clipped + o.Clipped, m.Other + o.Other, m.Missing + o.Missing}
}

func (m *Moved) count(o data.CellOutcome) {
	switch o {
	case data.CellClipped:
		m.Clipped++
	case data.CellOther:
		m.Other++
	case data.CellMissing:
		m.Missing++
	}
}

// Each reads the table, batch by batch in the order of the files and of their rows. All
// faults are found before it returns them; each is not called after the first one.
func (r *Reading) Each(ctx context.Context, each func(*Batch) error) (Tally, error) {
	c := &collector{each: each}
	if p := r.Encoding.Projection; p != nil {
		c.each = func(b *Batch) error {
			b.X = p.Rows(b.X)
			return each(b)
		}
	}
	if !r.keep {
		c.free = make(chan *Batch, mostFree)
	}
	if r.Source.Database != "" {
		return c.result(r.readDatabase(ctx, c))
	}
	files, skipped, err := r.files()
	if err != nil {
		return c.tally, err
	}
	c.tally.Skipped = skipped
	for _, path := range files {
		read := r.readCSV
		if r.formatOf(path) == formatParquet {
			read = r.readParquet
		}
		if err := read(ctx, path, c); err != nil {
			return c.result(err)
		}
		c.tally.Files++
	}
	return c.result(nil)
}

// piece is what became of some rows: a batch, what was counted, and what is wrong.
type piece struct {
	layout *layout
	batch  *Batch
	faults Faults
	rows   int // read, those that are left out too
	moved  []Moved
}

// mostFree is how many batches wait to be used again.
const mostFree = 64

// collector takes pieces in the order of the table.
type collector struct {
	each   func(*Batch) error
	tally  Tally
	faults Faults
	free   chan *Batch // to be used again; nil: batches are given away
}

func (c *collector) take(p *piece) error {
	c.faults.append(&p.faults)
	c.tally.Rows += p.rows
	for i, m := range p.moved {
		if m == (Moved{}) {
			continue
		}
		if c.tally.Columns == nil {
			c.tally.Columns = map[string]Moved{}
		}
		name := p.layout.nameOf(i)
		c.tally.Columns[name] = c.tally.Columns[name].add(m)
	}
	if p.batch == nil {
		return nil
	}
	if p.faults.Count == 0 {
		c.tally.LeftOut += p.rows - p.batch.Rows
	}
	if c.faults.Count == 0 && p.batch.Rows > 0 {
		if err := c.each(p.batch); err != nil {
			return err
		}
	}
	select {
	case c.free <- p.batch:
	default:
	}
	return nil
}

func (c *collector) result(err error) (Tally, error) {
	switch {
	case err != nil && c.faults.Count > 0 && !errors.Is(err, context.Canceled):
		return c.tally, fmt.Errorf("%w\nand before that %w", err, &c.faults)
	case err != nil:
		return c.tally, err
	case c.faults.Count > 0:
		return c.tally, &c.faults
	}
	return c.tally, nil
}

// batch is an empty one with room for some rows.
func (c *collector) batch(rows, width int) *Batch {
	select {
	case b := <-c.free:
		if cap(b.X) >= rows*width && cap(b.Y) >= rows {
			return &Batch{X: b.X[:0], Y: b.Y[:0], Clients: b.Clients[:0], Held: b.Held[:0], Groups: b.Groups, Missing: b.Missing[:0]}
		}
	default:
	}
	return &Batch{X: make([]float64, 0, rows*width), Y: make([]float64, 0, rows), Missing: make([]int32, 0, rows), Clients: make([]string, 0, rows)}
}
