package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// readCSV reads a file in blocks of whole records, which are parsed on all cores.
func (r *Reading) readCSV(ctx context.Context, path string, c *collector) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	defer file.Close()
	text, err := unpack(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	blocks := &cutter{path: path, in: text, line: 1, size: blockSize}
	if info, err := file.Stat(); err == nil && text == io.Reader(file) {
		blocks.size = int(min(blockSize, info.Size()+1)) // a small file needs no large block
	}
	head := &piece{}
	l, err := r.csvHeader(blocks, &head.faults)
	if err != nil {
		return err
	}
	if err := c.take(head); err != nil || l == nil {
		return err
	}
	return pool.InOrder(ctx, runtime.GOMAXPROCS(0), func() (func() *piece, error) {
		b, err := blocks.next()
		if err != nil {
			return nil, err
		}
		return func() *piece { return l.parse(b, blocks.splitter.Separator, c) }, nil
	}, c.take)
}

// unpack undoes gzip, which the first bytes tell, and skips a byte-order mark.
func unpack(file *os.File) (io.Reader, error) {
	var magic [3]byte
	n, err := file.ReadAt(magic[:], 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	start := magic[:n]
	var in io.Reader = file
	if bytes.HasPrefix(start, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bufio.NewReaderSize(file, 1<<16))
		if err != nil {
			return nil, err
		}
		n, err = io.ReadFull(z, magic[:])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		start = bytes.Clone(magic[:n])
		in = io.MultiReader(bytes.NewReader(bytes.TrimPrefix(start, []byte(byteOrderMark))), z)
	}
	for _, other := range []struct{ start, what string }{
		{"\xff\xfe", "the file is UTF-16; save it as UTF-8"},
		{"\xfe\xff", "the file is UTF-16; save it as UTF-8"},
		{"PAR", "the file is Parquet; set data.source.format to parquet"},
		{"PK\x03", "the file is an archive or a workbook, not text; save it as CSV"},
	} {
		if bytes.HasPrefix(start, []byte(other.start)) {
			return nil, errors.New(other.what)
		}
	}
	if in == io.Reader(file) && string(start) == byteOrderMark {
		_, err := file.Seek(int64(len(byteOrderMark)), io.SeekStart)
		return in, err
	}
	return in, nil
}

const byteOrderMark = "\ufeff"

// csvHeader reads the line of column names, and finds the separator in it. What is wrong
// is added to the faults; then there is no layout.
func (r *Reading) csvHeader(blocks *cutter, faults *Faults) (*layout, error) {
	text, err := blocks.fill()
	if err != nil {
		return nil, err
	}
	blank := len(text) - len(bytes.TrimLeft(text, "\r\n"))
	blocks.line += bytes.Count(text[:blank], []byte{'\n'})
	text = text[blank:]
	s := &blocks.splitter
	s.Separator = separatorOf(text)
	n, err := s.Next(text, false)
	switch {
	case err != nil:
		faults.add(Fault{File: blocks.path, Line: blocks.line, What: fmt.Sprintf("the header cannot be split into columns: %v", err)})
		return nil, nil
	case len(bytes.TrimSpace(text[:n])) == 0:
		faults.add(Fault{File: blocks.path, What: "the file is empty: there is no line of column names"})
		return nil, nil
	}
	var header []string
	for _, cell := range s.Cells {
		header = append(header, string(bytes.TrimSpace(cell)))
	}
	l := r.layout(blocks.path, blocks.line, header, faults)
	if l != nil {
		l.decimalComma = s.Separator == ';'
	}
	blocks.line += bytes.Count(text[:n], []byte{'\n'})
	blocks.skip(blank + n)
	return l, nil
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

// parse encodes the rows of a block.
func (l *layout) parse(b *block, separator byte, c *collector) *piece {
	defer b.release()
	if b.fault != nil {
		p := &piece{layout: l}
		p.faults.add(*b.fault)
		return p
	}
	p := l.piece(c, b.line, b.lines+1)
	s := splitters.Get().(*data.Splitter)
	defer splitters.Put(s)
	s.Separator = separator
	rows := rowReader{layout: l}
	line, first := b.line, true
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
			p.faults.add(Fault{File: l.file, Line: at, What: tooLong})
			end := bytes.IndexByte(text, '\n')
			text = text[end+1:]
			if end < 0 {
				text = nil
			}
			continue
		case err != nil:
			p.faults.add(Fault{File: l.file, Line: at, What: err.Error()})
			continue
		case len(s.Cells) == 1 && !s.Quoted && len(bytes.TrimSpace(s.Cells[0])) == 0:
			continue // a blank line
		case len(s.Cells) != l.columns:
			what := ""
			if !p.faults.listed() {
				what = fmt.Sprintf("%d cells, the header has %d", len(s.Cells), l.columns)
			}
			p.faults.add(Fault{File: l.file, Line: at, What: what})
			continue
		}
		if first {
			p.batch.First, first = at, false
		}
		rows.row(p, at, s.Cells)
	}
	return p
}

const tooLong = "the line is longer than 1 MiB: is the file text, and are its quotes closed?"

var splitters = sync.Pool{New: func() any { return new(data.Splitter) }}
