package contacts

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coterie-fl/coterie/internal/pool"
)

// blockSize is how much text is parsed at a time; a longer line is a fault.
const blockSize = 1 << 20

// mostCells bounds a line's cells.
const mostCells = 64

// table is one of the files.
type table struct {
	name    string // of the file in the folder
	path    string
	columns []string // that are read
}

// line is one row's wanted cells while it is parsed.
type line struct {
	number int
	cells  [9][]byte // in the order of the table's columns
	block  *parsed
}

// parsed is what one block of a file gave.
type parsed struct {
	faults []Fault
	file   string
	found  any // what the block's rows are, for tables that are kept in order
}

// fault notes what is wrong with the line.
func (l *line) fault(format string, args ...any) {
	if len(l.block.faults) < mostFaults {
		l.block.faults = append(l.block.faults, Fault{l.block.file, l.number, fmt.Sprintf(format, args...)})
	}
}

// open undoes gzip, which the first bytes tell, and skips a byte-order mark.
func (t *table) open() (*bufio.Reader, func() error, error) {
	f, err := os.Open(t.path)
	if err != nil {
		return nil, nil, fmt.Errorf("read a population: %w", err)
	}
	in := bufio.NewReaderSize(f, 1<<18)
	if magic, _ := in.Peek(2); bytes.Equal(magic, gzipMagic) {
		z, err := gzip.NewReader(in)
		if err != nil {
			f.Close()
			return nil, nil, fmt.Errorf("%s: %w", t.path, err)
		}
		in = bufio.NewReaderSize(z, 1<<18)
	}
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3)
	}
	return in, f.Close, nil
}

// places finds the wanted columns in a header: by cell of a line, which of them it is, or -1.
func (t *table) places(header string, f *Faults) ([]int, bool) {
	names := strings.Split(strings.TrimRight(header, "\r\n"), ",")
	wanted := slices.Repeat([]int{-1}, len(names))
	ok := len(names) <= mostCells
	if !ok {
		f.add(t.name, 1, "%d columns; allowed: at most %d", len(names), mostCells)
	}
	for k, column := range t.columns {
		at := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(strings.Trim(strings.TrimSpace(n), `"`), column) })
		if at < 0 {
			f.add(t.name, 1, "the column %s is missing; there are: %s", column, strings.Join(names, ", "))
			ok = false
			continue
		}
		wanted[at] = k
	}
	return wanted, ok
}

// read has every row parsed, on all workers, and blocks taken in order.
func (t *table) read(workers int, f *Faults, row func(l *line), take func(found any)) error {
	return t.readBlocks(workers, f, func(*parsed) func(l *line) { return row }, take)
}

// readBlocks is read for rows that are parsed otherwise in every block.
func (t *table) readBlocks(workers int, f *Faults, begin func(b *parsed) func(l *line), take func(found any)) error {
	in, done, err := t.open()
	if err != nil {
		return err
	}
	defer done()
	header, err := in.ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	wanted, ok := t.places(header, f)
	if !ok {
		return nil
	}
	errEnough := errors.New("enough faults")
	blocks := &blockReader{in: in, line: 2, path: t.path}
	err = pool.InOrder(context.Background(), workers, func() (func() *parsed, error) {
		text, first, err := blocks.next()
		if err != nil {
			return nil, err
		}
		return func() *parsed {
			b := &parsed{file: t.name}
			eachLine(*text, first, wanted, b, begin(b))
			blocks.free.Put(text)
			return b
		}, nil
	}, func(b *parsed) error {
		f.List = append(f.List, b.faults...)
		if take != nil {
			take(b.found)
		}
		if f.count(t.name) >= mostFaults {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		f.cut(t.name)
		return nil
	}
	var long *longLine
	if errors.As(err, &long) {
		f.add(t.name, long.number, "the line is longer than %d bytes: is this the CSV file?", blockSize)
		return nil
	}
	return err
}

// count is how many faults a file has.
func (f *Faults) count(name string) int {
	n := 0
	for _, one := range f.List {
		if one.File == name {
			n++
		}
	}
	return n
}

// cut drops what is beyond the limit, and notes that the file was left.
func (f *Faults) cut(name string) {
	f.List = f.List[:len(f.List)-(f.count(name)-mostFaults)] // they stand last
	f.Left = append(f.Left, name)
}

// eachLine cuts a text into lines and cells.
func eachLine(text []byte, number int, wanted []int, b *parsed, row func(l *line)) {
	l := line{block: b}
	for ; len(text) > 0; number++ {
		end := bytes.IndexByte(text, '\n')
		next := end + 1
		if end < 0 {
			end, next = len(text), len(text)
		}
		rest := text[:end]
		text = text[next:]
		if end > 0 && rest[end-1] == '\r' {
			rest = rest[:end-1]
		}
		if len(rest) == 0 && len(text) == 0 {
			return // an empty last line
		}
		l.number = number
		cells := 0
		for {
			comma := bytes.IndexByte(rest, ',')
			cell := rest
			if comma >= 0 {
				cell = rest[:comma]
			}
			if cells < len(wanted) && wanted[cells] >= 0 {
				l.cells[wanted[cells]] = cell
			}
			cells++
			if comma < 0 {
				break
			}
			rest = rest[comma+1:]
		}
		if cells != len(wanted) {
			l.fault("%d cells, but the header has %d", cells, len(wanted))
			continue
		}
		row(&l)
	}
}

// integer is a cell's whole number from low to high; a fault otherwise. A fraction of zeros,
// as some programs write, is let pass.
func (l *line) integer(t *table, cell int, low, high int64) (int64, bool) {
	text := l.cells[cell]
	negative := len(text) > 0 && text[0] == '-'
	digits := text
	if negative {
		digits = text[1:]
	}
	v, n := int64(0), 0
	for n < len(digits) && n < 18 && digits[n]-'0' <= 9 {
		v = 10*v + int64(digits[n]-'0')
		n++
	}
	rest := digits[n:]
	if len(rest) > 1 && rest[0] == '.' && len(bytes.Trim(rest[1:], "0")) == 0 {
		rest = nil
	}
	if negative {
		v = -v
	}
	if n == 0 || len(rest) > 0 || v < low || v > high {
		l.fault("%s is %q; allowed: a whole number from %d to %d", t.columns[cell], shortened(text), low, high)
		return 0, false
	}
	return v, true
}

// degrees is a cell's number from low to high; a fault otherwise.
func (l *line) degrees(t *table, cell int, low, high float64) (float64, bool) {
	v, err := strconv.ParseFloat(string(l.cells[cell]), 64)
	if err != nil || !(v >= low && v <= high) {
		l.fault("%s is %q; allowed: %g to %g degrees", t.columns[cell], shortened(l.cells[cell]), low, high)
		return 0, false
	}
	return v, true
}

// shortened is a cell for an error message.
func shortened(cell []byte) string {
	const most = 40
	if len(cell) > most {
		return string(cell[:most]) + "…"
	}
	return string(cell)
}

// blockReader cuts a file into blocks of whole lines.
type blockReader struct {
	in   *bufio.Reader
	path string
	line int    // of the next block
	kept []byte // the beginning of a line
	end  bool
	free sync.Pool
}

type longLine struct{ number int }

func (l *longLine) Error() string { return fmt.Sprintf("line %d is too long", l.number) }

func (r *blockReader) next() (*[]byte, int, error) {
	if r.end {
		return nil, 0, io.EOF
	}
	text, ok := r.free.Get().(*[]byte)
	if !ok {
		b := make([]byte, 0, blockSize)
		text = &b
	}
	*text = append((*text)[:0], r.kept...)
	var err error
	for len(*text) < blockSize && err == nil { // not ReadFull: it calls a cut archive an end
		var n int
		n, err = r.in.Read((*text)[len(*text):blockSize])
		*text = (*text)[:len(*text)+n]
	}
	switch {
	case err == io.EOF:
		r.end, r.kept = true, nil
	case err != nil: // a cut archive must not end in a row that looks whole
		return nil, 0, fmt.Errorf("%s, after line %d: %w; get the file again", filepath.Base(r.path), r.line, err)
	default:
		whole := bytes.LastIndexByte(*text, '\n') + 1
		if whole == 0 {
			return nil, 0, &longLine{r.line}
		}
		r.kept = append(r.kept[:0], (*text)[whole:]...)
		*text = (*text)[:whole]
	}
	if len(*text) == 0 {
		return nil, 0, io.EOF
	}
	first := r.line
	r.line += bytes.Count(*text, []byte{'\n'})
	return text, first, nil
}
