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

	"github.com/coterie-fl/coterie/internal/pool"
)

// readCSV reads a file in blocks of whole records, which are parsed on all cores.
func (r *Reading) readCSV(ctx context.Context, path string, c *collector) error {
	file, blocks, err := openCSV(path)
	if err != nil {
		return err
	}
	defer file.Close()
	head := &piece{}
	t, err := blocks.header(&head.faults)
	if err != nil {
		return err
	}
	var l *layout
	if t != nil {
		l = r.layout(path, t.line, t.columns, &head.faults)
	}
	if err := c.take(head); err != nil || l == nil {
		return err
	}
	l.decimalComma = t.decimalComma()
	return pool.InOrder(ctx, runtime.GOMAXPROCS(0), func() (func() *piece, error) {
		b, err := blocks.next()
		if err != nil {
			return nil, err
		}
		return func() *piece { return l.parse(t, b, c) }, nil
	}, c.take)
}

// openCSV opens a file and cuts its text into blocks. The file is the caller's to close.
func openCSV(path string) (*os.File, *cutter, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the table: %w", err)
	}
	text, err := unpack(file)
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	blocks := &cutter{path: path, in: text, line: 1, size: blockSize}
	if info, err := file.Stat(); err == nil && text == io.Reader(file) {
		blocks.size = int(min(blockSize, info.Size()+1)) // a small file needs no large block
	}
	return file, blocks, nil
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
		{"PAR", "the file is Parquet; let its name end in .parquet, or set data.source.format to parquet"},
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

// parse encodes the rows of a block.
func (l *layout) parse(t *csvTable, b *block, c *collector) *piece {
	defer b.release()
	if b.fault != nil {
		p := &piece{layout: l}
		p.faults.add(*b.fault)
		return p
	}
	p := l.piece(c, b.line, b.lines+1)
	rows, first := rowReader{layout: l}, true
	t.rows(b, &p.faults, func(line int, cells [][]byte) {
		if first {
			p.batch.First, first = line, false
		}
		rows.row(p, line, cells)
	})
	return p
}
