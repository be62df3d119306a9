package source

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/coterie-fl/coterie/data"
)

// csvTable is what the line of column names tells of a file.
type csvTable struct {
	file      string
	line      int // of the column names
	columns   []string
	separator byte
}

// header reads the line of column names, behind blank ones, and finds the separator in it.
// What is wrong is added to the faults; then there is no table.
func (c *cutter) header(faults *Faults) (*csvTable, error) {
	text, err := c.fill()
	if err != nil {
		return nil, err
	}
	skipped := 0
	for {
		n := bytes.IndexByte(text[skipped:], '\n') + 1
		if n == 0 || len(bytes.TrimSpace(text[skipped:skipped+n])) > 0 {
			break
		}
		skipped += n
		c.line++
	}
	text = text[skipped:]
	s := &c.splitter
	s.Separator = separatorOf(text)
	n, err := s.Next(text, false)
	switch {
	case err != nil:
		faults.add(Fault{File: c.path, Line: c.line, What: fmt.Sprintf("the header cannot be split into columns: %v", err)})
		return nil, nil
	case len(bytes.TrimSpace(text[:n])) == 0:
		faults.add(Fault{File: c.path, What: "the file is empty: there is no line of column names"})
		return nil, nil
	}
	t := &csvTable{file: c.path, line: c.line, separator: s.Separator}
	whole := true
	for _, cell := range s.Cells {
		name := string(bytes.TrimSpace(cell))
		t.columns = append(t.columns, name)
		whole = t.text(faults, c.line, name, name) && whole
	}
	c.line += bytes.Count(text[:n], []byte{'\n'})
	c.skip(skipped + n)
	if !whole {
		return nil, nil
	}
	return t, nil
}

// separatorOf is the comma, semicolon or tab that the first line has most often outside
// quotes.
func separatorOf(text []byte) byte {
	counts, quoted := [256]int{}, false
	for _, c := range text {
		if c == '"' {
			quoted = !quoted
		}
		if c == '\n' && !quoted {
			break
		}
		if !quoted {
			counts[c]++
		}
	}
	best := byte(',')
	for _, c := range []byte{';', '\t'} {
		if counts[c] > counts[best] {
			best = c
		}
	}
	return best
}

// decimalComma says that numbers may have a comma for their point: where semicolons part
// cells, it is free.
func (t *csvTable) decimalComma() bool { return t.separator == ';' }

// text says whether a cell is text; if not, that is a fault.
func (t *csvTable) text(faults *Faults, line int, column, cell string) bool {
	what := notText(cell)
	if what != "" {
		faults.add(Fault{File: t.file, Line: line, Column: strings.ToValidUTF8(column, "\ufffd"), What: what + "; save the table as UTF-8"})
	}
	return what == ""
}

// rows splits a block into rows of as many cells as there are columns; line is where each
// begins. Rows that cannot be read are added to the faults instead.
func (t *csvTable) rows(b *block, faults *Faults, row func(line int, cells [][]byte)) {
	s := splitters.Get().(*data.Splitter)
	defer splitters.Put(s)
	s.Separator = t.separator
	plain := isText(b.text)
	line := b.line
	for text := b.text; len(text) > 0; {
		n, err := s.Next(text, false)
		at, lines := line, 1
		if s.Quoted {
			lines = bytes.Count(text[:n], []byte{'\n'})
		}
		line += lines
		text = text[n:]
		switch {
		case errors.Is(err, data.ErrLongRecord):
			faults.add(Fault{File: t.file, Line: at, What: tooLong})
			end := bytes.IndexByte(text, '\n')
			text = text[end+1:]
			if end < 0 {
				text = nil
			}
			continue
		case err != nil:
			faults.add(Fault{File: t.file, Line: at, What: err.Error()})
			continue
		case len(s.Cells) == 1 && !s.Quoted && len(bytes.TrimSpace(s.Cells[0])) == 0:
			continue // a blank line
		case len(s.Cells) != len(t.columns):
			what := ""
			if !faults.listed() {
				what = fmt.Sprintf("%d cells, the header has %d", len(s.Cells), len(t.columns))
			}
			faults.add(Fault{File: t.file, Line: at, What: what})
			continue
		}
		if plain || t.allText(faults, at, s.Cells) {
			row(at, s.Cells)
		}
	}
}

// allText says whether all cells of a row are text: one that is not shows that the file was
// saved in another way, whatever is read of it.
func (t *csvTable) allText(faults *Faults, line int, cells [][]byte) bool {
	whole := true
	for i, cell := range cells {
		whole = t.text(faults, line, t.columns[i], string(trim(cell))) && whole
	}
	return whole
}

const tooLong = "the line is longer than 1 MiB: is the file text, and are its quotes closed?"

var splitters = sync.Pool{New: func() any { return new(data.Splitter) }}
