package data

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// maxIDX bounds what an idx file may hold.
const maxIDX = 1 << 31

// IDX is an idx file of bytes (the format of MNIST) that is open for reading: its
// dimensions, and then its values one after another, so that nobody need keep them all.
type IDX struct {
	Dims        []int
	in          *bufio.Reader
	total, read int64
	done        func() error
}

// newIDX reads the header.
func newIDX(r io.Reader) (*IDX, error) {
	x := &IDX{in: bufio.NewReader(r), total: 1}
	var magic [4]byte
	if _, err := io.ReadFull(x.in, magic[:]); err != nil {
		return nil, fmt.Errorf("idx: no header: %w", err)
	}
	if magic[0] != 0 || magic[1] != 0 || magic[2] != 0x08 || magic[3] < 1 || magic[3] > 4 {
		return nil, fmt.Errorf("idx: the file begins with % x; allowed: 00 00 08 (bytes) and 1 to 4 dimensions", magic)
	}
	for range magic[3] {
		var d [4]byte
		if _, err := io.ReadFull(x.in, d[:]); err != nil {
			return nil, fmt.Errorf("idx: the header is cut: %w", err)
		}
		n := int64(binary.BigEndian.Uint32(d[:]))
		if n > 0 && x.total > maxIDX/n {
			return nil, fmt.Errorf("idx: dimensions %v times %d are more than %d values", x.Dims, n, maxIDX)
		}
		x.total *= n
		x.Dims = append(x.Dims, int(n))
	}
	return x, nil
}

// OpenIDX opens an idx file, plain or compressed by gzip.
func OpenIDX(path string) (*IDX, error) {
	in, done, err := openData(path)
	if err != nil {
		return nil, fmt.Errorf("read an idx file: %w", err)
	}
	x, err := newIDX(in)
	if err != nil {
		_ = done() // nothing was written
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	x.done = done
	return x, nil
}

// Next fills values with those that come next.
func (x *IDX) Next(values []byte) error {
	n, err := io.ReadFull(x.in, values)
	x.read += int64(n)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("idx: %d values, the header says %d", x.read, x.total)
	}
	if err != nil {
		return fmt.Errorf("idx: %w", err)
	}
	return nil
}

// End says whether the file ends where its header says, once all values are read.
func (x *IDX) End() error {
	switch _, err := x.in.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("idx: there are bytes after the %d values that the header says", x.total)
	default: // a wrong checksum, too
		return fmt.Errorf("idx: the end of the file: %w", err)
	}
}

// Close closes the file.
func (x *IDX) Close() error { return x.done() }

// mostDeflated is more than deflate can shorten anything by (1,032 times).
const mostDeflated = 1100

// readIDX reads an idx file of so many bytes as a whole: its dimensions and its values,
// each into its place. A header that says more than the file can hold is refused before
// memory is taken for it.
func readIDX(r io.Reader, size int64) (dims []int, values []byte, err error) {
	x, err := newIDX(r)
	if err != nil {
		return nil, nil, err
	}
	if x.total/mostDeflated > size {
		return nil, nil, fmt.Errorf("idx: the header says %d values, more than a file of %d bytes can hold", x.total, size)
	}
	values = make([]byte, x.total)
	if err := x.Next(values); err != nil {
		return nil, nil, err
	}
	return x.Dims, values, x.End()
}

// ReadIDXFile reads an idx file, plain or compressed by gzip.
func ReadIDXFile(path string) (dims []int, values []byte, err error) {
	in, done, err := openData(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read an idx file: %w", err)
	}
	defer done()
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read an idx file: %w", err)
	}
	dims, values, err = readIDX(in, info.Size())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return dims, values, nil
}
