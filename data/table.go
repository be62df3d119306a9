package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
)

// maxLine bounds one line of a table, in bytes.
const maxLine = 1 << 16

// table reads a comma-separated file line by line. A quoted cell may hold commas
// but no line break: a stray quote then spoils one row, never the rows after it.
type table struct {
	name   string
	lines  *bufio.Reader
	line   int
	header []string // trimmed, lower case
	cells  []string

	splitter Splitter
}

// fault is what is wrong in one place of a table.
type fault struct {
	file   string
	line   int
	column string
	what   string
}

func (f *fault) Error() string {
	if f.column == "" {
		return fmt.Sprintf("%s, line %d: %s", f.file, f.line, f.what)
	}
	return fmt.Sprintf("%s, line %d, column %s: %s", f.file, f.line, f.column, f.what)
}

// openData opens a data file and undoes gzip, which its first bytes tell.
func openData(path string) (r io.Reader, done func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("a data file is missing or cannot be read (docs/data.md says how to get it): %w", err)
	}
	in := bufio.NewReader(f)
	magic, err := in.Peek(2)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, nil, fmt.Errorf("read a data file: %w", err)
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, f.Close, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return z, f.Close, nil
}

// readFile reads a data file as a whole.
func readFile[T any](path string, read func(name string, r io.Reader) (*T, error)) (*T, error) {
	r, done, err := openData(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return read(path, r)
}

// openTable reads the header and finds columns in it.
func openTable(name string, r io.Reader, columns ...string) (*table, []int, error) {
	t, err := newTable(name, r)
	if err != nil {
		return nil, nil, err
	}
	at, err := t.columns(columns...)
	return t, at, err
}

// newTable reads the header.
func newTable(name string, r io.Reader) (*table, error) {
	t := &table{name: name, lines: bufio.NewReaderSize(r, maxLine)}
	text, err := t.readLine()
	if err == io.EOF {
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	if err != nil {
		return nil, err
	}
	// A byte-order mark is not part of the first name.
	if err := t.split(strings.TrimPrefix(text, "\ufeff")); err != nil {
		return nil, t.faultf("", "the header cannot be split into columns: %v", err)
	}
	for _, h := range t.cells {
		t.header = append(t.header, strings.ToLower(h))
	}
	return t, nil
}

// readLine is the next line without its end.
func (t *table) readLine() (string, error) {
	raw, err := t.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("%s, line %d: longer than %d bytes", t.name, t.line+1, maxLine)
	case err == io.EOF && len(raw) == 0:
		return "", io.EOF
	case err != nil && err != io.EOF:
		// A cut archive must not end in a row that looks whole.
		return "", fmt.Errorf("%s, after line %d: %w", t.name, t.line, err)
	}
	t.line++
	return strings.TrimRight(string(raw), "\r\n"), nil
}

// rows are those that are left. A *fault is about one row only: reading can go on, and
// does if the loop does. Any other error is the last.
func (t *table) rows() iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for {
			r, err := t.next()
			var f *fault
			if err == io.EOF || !yield(r, err) || (err != nil && !errors.As(err, &f)) {
				return
			}
		}
	}
}

// next is the next row. At the end it is io.EOF; a *fault is about this row only
// and reading can go on.
func (t *table) next() (row, error) {
	for {
		text, err := t.readLine()
		if err != nil {
			return row{}, err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if err := t.split(text); err != nil {
			return row{}, t.faultf("", "cannot be split into cells: %v", err)
		}
		if len(t.cells) != len(t.header) {
			return row{}, t.faultf("", "%d cells, the header has %d", len(t.cells), len(t.header))
		}
		return row{t, t.cells}, nil
	}
}

// split finds the trimmed cells of one line.
func (t *table) split(text string) error {
	t.splitter.Separator = ','
	if _, err := t.splitter.Next([]byte(text), false); err != nil {
		return err
	}
	t.cells = t.cells[:0]
	for _, c := range t.splitter.Cells {
		t.cells = append(t.cells, string(bytes.TrimSpace(c)))
	}
	return nil
}

// columns finds columns by their names in lower case; each must be there once.
func (t *table) columns(names ...string) ([]int, error) {
	at := make([]int, len(names))
	var missing []string
	for i, name := range names {
		at[i] = -1
		for j, h := range t.header {
			if h != name {
				continue
			}
			if at[i] >= 0 {
				return nil, t.faultf(name, "is there twice (columns %d and %d): which one is meant?", at[i]+1, j+1)
			}
			at[i] = j
		}
		if at[i] < 0 {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, t.faultf("", "the header lacks %s; it has %s", strings.Join(missing, ", "), shorten(strings.Join(t.header, ", ")))
	}
	return at, nil
}

// has tells whether all the columns are there.
func (t *table) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(t.header, name) })
}

func (t *table) faultf(column, format string, args ...any) *fault {
	return &fault{t.name, max(t.line, 1), column, fmt.Sprintf(format, args...)}
}

// shorten keeps a message readable whatever the file holds.
func shorten(text string) string {
	const most = 300
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}
