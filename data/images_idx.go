package data

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// maxIDX bounds what an idx file may hold.
const maxIDX = 1 << 31

// ReadIDX reads an idx file of bytes (the format of MNIST): its dimensions and
// its values. Memory is taken as the data arrive.
func ReadIDX(r io.Reader) (dims []int, values []byte, err error) {
	in := bufio.NewReader(r)
	var magic [4]byte
	if _, err := io.ReadFull(in, magic[:]); err != nil {
		return nil, nil, fmt.Errorf("idx: no header: %w", err)
	}
	if magic[0] != 0 || magic[1] != 0 || magic[2] != 0x08 || magic[3] < 1 || magic[3] > 4 {
		return nil, nil, fmt.Errorf("idx: the file begins with % x; allowed: 00 00 08 (bytes) and 1 to 4 dimensions", magic)
	}
	total := int64(1)
	for range magic[3] {
		var d [4]byte
		if _, err := io.ReadFull(in, d[:]); err != nil {
			return nil, nil, fmt.Errorf("idx: the header is cut: %w", err)
		}
		n := int64(binary.BigEndian.Uint32(d[:]))
		if n > 0 && total > maxIDX/n {
			return nil, nil, fmt.Errorf("idx: dimensions %v times %d are more than %d values", dims, n, maxIDX)
		}
		total *= n
		dims = append(dims, int(n))
	}
	values, err = io.ReadAll(io.LimitReader(in, total))
	if err != nil {
		return nil, nil, fmt.Errorf("idx: %w", err)
	}
	if int64(len(values)) != total {
		return nil, nil, fmt.Errorf("idx: %d values, the header says %d", len(values), total)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return nil, nil, fmt.Errorf("idx: there are bytes after the %d values that the header says", total)
	}
	return dims, values, nil
}

// ReadIDXFile reads an idx file, plain or compressed by gzip.
func ReadIDXFile(path string) (dims []int, values []byte, err error) {
	in, done, err := openData(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read an idx file: %w", err)
	}
	defer done()
	dims, values, err = ReadIDX(in)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return dims, values, nil
}
