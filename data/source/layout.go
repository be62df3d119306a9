package source

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// layout says which cells of a file's rows are wanted, and what is made of them.
type layout struct {
	reading *Reading
	file    string
	columns int // cells in a row
	client  string
	// width is how many inputs a row has.
	width    int
	encoders []*data.CellEncoder // of the features, then of the target
	at       []int               // their cells
	// Cells of other columns; -1: there is none.
	clientAt, testAt    int
	sensitiveAt, keepAt []int
	groups              []map[string]int
	// decimalComma takes 3,14 for a number.
	decimalComma bool
	// byRow: places are rows, not lines.
	byRow bool
}

// maxColumns bounds how many columns a table has.
const maxColumns = 1 << 16

// layout finds the wanted columns in a header. What is missing or stands twice is a
// fault; then it is nil.
func (r *Reading) layout(file string, line int, header []string, faults *Faults) *layout {
	if len(header) > maxColumns {
		faults.add(Fault{File: file, Line: line, What: fmt.Sprintf("the header has %d columns; allowed: at most %d", len(header), maxColumns)})
		return nil
	}
	places := make(map[string]int, len(header))
	twice := map[string]int{}
	for i, h := range header {
		if first, ok := places[h]; ok {
			twice[h] = i
			i = first
		}
		places[h] = i
	}
	bad := false
	for _, name := range r.columnNames() {
		what := ""
		if first, ok := places[name]; !ok {
			what = "is not in the header, which has " + shorten(strings.Join(header, ", ")) + config.Suggestion(name, header)
		} else if again, ok := twice[name]; ok {
			what = fmt.Sprintf("stands twice in the header (columns %d and %d): which one is meant?", first+1, again+1)
		}
		if what != "" {
			faults.add(Fault{File: file, Line: line, Column: name, What: what, Header: true})
			bad = true
		}
	}
	if bad {
		return nil
	}
	find := func(name string) int {
		if name == "" {
			return -1
		}
		return places[name]
	}
	l := &layout{
		reading: r, file: file, columns: len(header), client: r.Client, width: r.Encoding.Width(),
		encoders: r.Encoding.Encoders(), clientAt: find(r.Source.Client), testAt: find(r.Test.Column),
	}
	if l.client == "" {
		l.client = ClientOf(file)
	}
	if !r.NoTarget {
		l.encoders = append(l.encoders, r.Encoding.TargetEncoder())
	}
	for _, e := range l.encoders {
		l.at = append(l.at, find(e.Name()))
	}
	for _, s := range r.Sensitive {
		l.sensitiveAt = append(l.sensitiveAt, find(s.Name))
		values := make([]string, len(s.Values))
		for i, v := range s.Values {
			values[i] = string(v)
		}
		l.groups = append(l.groups, data.GroupPlaces(values))
	}
	for _, k := range r.Keep {
		l.keepAt = append(l.keepAt, find(k))
	}
	return l
}

// ClientOf names the client whose rows a file holds: the file's name without endings.
func ClientOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return name
}

// nameOf is the column of an encoder.
func (l *layout) nameOf(i int) string { return l.encoders[i].Name() }

// piece is an empty one for some rows of the file.
func (l *layout) piece(c *collector, first, rows int) *piece {
	b := c.batch(rows, l.width)
	b.File, b.First = l.file, first
	if b.Groups == nil {
		b.Groups = make([][]int32, len(l.groups))
	}
	for i := range b.Groups {
		b.Groups[i] = b.Groups[i][:0]
	}
	if l.testAt < 0 {
		b.Held = nil
	}
	return &piece{layout: l, batch: b, moved: make([]Moved, len(l.encoders))}
}

// rowReader encodes rows whose cells are text. Each worker has its own.
type rowReader struct {
	*layout
	clients map[string]string // so that a name is there once
	number  []byte            // a cell whose decimal comma became a point
}

// trim is bytes.TrimSpace, at once for cells that need none.
func trim(cell []byte) []byte {
	if n := len(cell); n > 0 && cell[0]-'!' < 0x7f-'!' && cell[n-1]-'!' < 0x7f-'!' {
		return cell
	}
	return bytes.TrimSpace(cell)
}

// row encodes one row; line is where it stands.
func (r *rowReader) row(p *piece, line int, cells [][]byte) {
	b, faults := p.batch, p.faults.Count
	p.rows++
	features := len(r.encoders)
	missing := int32(0)
	if !r.reading.NoTarget {
		features--
		b.Y = append(b.Y, 0)
		target := r.encoders[features]
		cell := r.numeral(target, trim(cells[r.at[features]]))
		outcome := target.Text(cell, b.Y[b.Rows:])
		if outcome == data.CellFault && r.reading.LeaveOut && data.IsMissing(cell) {
			b.Y = b.Y[:b.Rows]
			return
		}
		if outcome != data.CellFine {
			r.note(p.moved, &p.faults, line, features, outcome, cell)
		}
	}
	from := len(b.X)
	b.X = b.X[:from+r.width]
	for i, e := range r.encoders[:features] {
		cell := r.numeral(e, trim(cells[r.at[i]]))
		to := from + e.Width()
		if outcome := e.Text(cell, b.X[from:to]); outcome != data.CellFine {
			r.note(p.moved, &p.faults, line, i, outcome, cell)
			if outcome == data.CellMissing {
				missing++
			}
		}
		from = to
	}
	client := r.client
	if r.clientAt >= 0 {
		client = r.clientName(&p.faults, line, trim(cells[r.clientAt]))
	}
	if p.faults.Count > faults {
		b.X, b.Y = b.X[:b.Rows*r.width], b.Y[:min(len(b.Y), b.Rows)]
		return
	}
	b.Clients = append(b.Clients, client)
	b.Missing = append(b.Missing, missing)
	if r.testAt >= 0 {
		b.Held = append(b.Held, string(trim(cells[r.testAt])) == string(r.reading.Test.Value))
	}
	for i, at := range r.sensitiveAt {
		b.Groups[i] = append(b.Groups[i], groupOf(r.groups[i], trim(cells[at])))
	}
	if len(r.keepAt) > 0 {
		kept := make([]string, len(r.keepAt))
		for i, at := range r.keepAt {
			kept[i] = string(trim(cells[at]))
		}
		b.Kept = append(b.Kept, kept)
	}
	b.Rows++
}

func groupOf(groups map[string]int, cell []byte) int32 {
	if g, ok := groups[string(cell)]; ok {
		return int32(g)
	}
	return -1
}

// note counts a cell that is not what the run file says, or lists it.
func (l *layout) note(moved []Moved, faults *Faults, line, encoder int, outcome data.CellOutcome, cell []byte) {
	if outcome != data.CellFault {
		moved[encoder].count(outcome)
		return
	}
	e, what := l.encoders[encoder], ""
	if !faults.listed() {
		what = e.Explain(cell)
	}
	faults.add(l.fault(line, e.Name(), what))
}

// fault is one in a row, which has a line or a number.
func (l *layout) fault(at int, column, what string) Fault {
	if l.byRow {
		return Fault{File: l.file, Row: at, Column: column, What: what}
	}
	return Fault{File: l.file, Line: at, Column: column, What: what}
}

// clientName is the text of a client's cell.
func (r *rowReader) clientName(faults *Faults, line int, cell []byte) string {
	if name, ok := r.clients[string(cell)]; ok {
		return name
	}
	if data.IsMissing(cell) {
		faults.add(r.fault(line, r.reading.Source.Client, "the client's name is missing: every row belongs to somebody"))
		return ""
	}
	if r.clients == nil {
		r.clients = map[string]string{}
	}
	name := string(cell)
	r.clients[name] = name
	return name
}

// numeral is a number's cell with a point, where the table writes a comma.
func (r *rowReader) numeral(e *data.CellEncoder, cell []byte) []byte {
	if !r.decimalComma || !e.Numeric() {
		return cell
	}
	at := decimalComma(cell)
	if at < 0 {
		return cell
	}
	r.number = append(r.number[:0], cell...)
	r.number[at] = '.'
	return r.number
}

// decimalComma is the place of a cell's only comma, if it has no point; -1: there is none.
func decimalComma(cell []byte) int {
	if bytes.Count(cell, []byte{','}) != 1 || bytes.IndexByte(cell, '.') >= 0 {
		return -1
	}
	return bytes.IndexByte(cell, ',')
}

// shorten keeps a message readable whatever the file holds.
func shorten(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
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
