package data

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
)

// A reader of MATLAB's level 5 files, as far as cells of real matrices need it:
// "MAT-File Format", The MathWorks, chapter 1.

// matrix is a real matrix, or a cell array of such.
type matrix struct {
	name       string
	rows, cols int
	values     []float64 // column by column
	cells      []matrix
}

// The file's types of data, and classes of arrays, that are read.
const (
	matMatrix     = 14
	matCompressed = 15
	matHeader     = 128
	matCell       = 1
	maxMatrix     = 1 << 25 // values: more is a damaged file
)

// matSizes are the bytes of every numeric type of data.
var matSizes = map[uint32]int{1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}

// readMAT reads all arrays of a file by name.
func readMAT(path string) (map[string]matrix, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("a data file is missing or cannot be read (docs/data.md says how to get it): %w", err)
	}
	arrays, err := parseMAT(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return arrays, nil
}

func parseMAT(raw []byte) (map[string]matrix, error) {
	if len(raw) < matHeader || raw[126] != 'I' || raw[127] != 'M' || raw[125] != 1 {
		return nil, fmt.Errorf("not a little-endian MATLAB file of level 5; save it with -v7")
	}
	arrays := map[string]matrix{}
	for rest := raw[matHeader:]; len(rest) > 0; {
		kind, body, after, err := matElement(rest)
		if err != nil {
			return nil, fmt.Errorf("at byte %d: %w", len(raw)-len(rest), err)
		}
		if kind == matCompressed {
			if kind, body, err = inflateElement(body); err != nil {
				return nil, fmt.Errorf("at byte %d: %w", len(raw)-len(rest), err)
			}
		}
		if kind == matMatrix {
			m, err := parseMatrix(body)
			if err != nil {
				return nil, fmt.Errorf("at byte %d: %w", len(raw)-len(rest), err)
			}
			arrays[m.name] = m
		}
		rest = after
	}
	return arrays, nil
}

// matElement takes one element off b: up to 4 bytes may lie within its tag.
func matElement(b []byte) (kind uint32, body, rest []byte, err error) {
	if len(b) < 8 {
		return 0, nil, nil, fmt.Errorf("the file is cut: %d bytes where an element's tag should be", len(b))
	}
	kind = binary.LittleEndian.Uint32(b)
	if small := kind >> 16; small != 0 {
		if small > 4 {
			return 0, nil, nil, fmt.Errorf("a small element of %d bytes; allowed: 1 to 4", small)
		}
		return kind & 0xffff, b[4 : 4+small], b[8:], nil
	}
	size := uint64(binary.LittleEndian.Uint32(b[4:]))
	if size > uint64(len(b)-8) {
		return 0, nil, nil, fmt.Errorf("the file is cut: an element of %d bytes, %d are left", size, len(b)-8)
	}
	end := 8 + size
	padded := end
	if kind != matCompressed {
		padded = (end + 7) / 8 * 8 // the last element may go without its padding
	}
	return kind, b[8:end], b[min(padded, uint64(len(b))):], nil
}

func inflateElement(b []byte) (uint32, []byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return 0, nil, fmt.Errorf("a compressed element: %w", err)
	}
	defer z.Close()
	plain, err := io.ReadAll(io.LimitReader(z, 8*maxMatrix))
	if err != nil {
		return 0, nil, fmt.Errorf("a compressed element: %w", err)
	}
	kind, body, _, err := matElement(plain)
	return kind, body, err
}

// parseMatrix reads flags, dimensions, name and content.
func parseMatrix(b []byte) (matrix, error) {
	var m matrix
	_, flags, b, err := matElement(b)
	if err != nil {
		return m, err
	}
	_, dims, b, err := matElement(b)
	if err != nil {
		return m, err
	}
	_, name, b, err := matElement(b)
	if err != nil {
		return m, err
	}
	if len(flags) != 8 || len(dims) != 8 {
		return m, fmt.Errorf("array %q has %d dimensions; allowed: 2", name, len(dims)/4)
	}
	m.name = string(name)
	m.rows, m.cols = int(int32(binary.LittleEndian.Uint32(dims))), int(int32(binary.LittleEndian.Uint32(dims[4:])))
	if m.rows < 0 || m.cols < 0 || m.cols > 0 && m.rows > maxMatrix/m.cols {
		return m, fmt.Errorf("array %q of %d by %d", m.name, m.rows, m.cols)
	}
	class := flags[0]
	switch {
	case class == matCell:
		for range m.rows * m.cols {
			kind, body, rest, err := matElement(b)
			if err == nil && kind != matMatrix {
				err = fmt.Errorf("type %d", kind)
			}
			if err != nil {
				return m, fmt.Errorf("array %q, cell %d: %w", m.name, len(m.cells), err)
			}
			cell, err := parseMatrix(body)
			if err != nil {
				return m, fmt.Errorf("array %q, cell %d: %w", m.name, len(m.cells), err)
			}
			m.cells, b = append(m.cells, cell), rest
		}
		return m, nil
	case class >= 6 && class <= 15 && flags[1]&8 == 0: // numbers, not complex
		kind, body, _, err := matElement(b)
		if err != nil {
			return m, fmt.Errorf("array %q: %w", m.name, err)
		}
		m.values, err = matNumbers(kind, body)
		if err == nil && len(m.values) != m.rows*m.cols {
			err = fmt.Errorf("%d values for %d by %d", len(m.values), m.rows, m.cols)
		}
		if err != nil {
			return m, fmt.Errorf("array %q: %w", m.name, err)
		}
		return m, nil
	}
	return m, fmt.Errorf("array %q is of class %d; allowed: real numbers and cells of them", m.name, class)
}

func matNumbers(kind uint32, b []byte) ([]float64, error) {
	size := matSizes[kind]
	if size == 0 || len(b)%size != 0 {
		return nil, fmt.Errorf("%d bytes of data of type %d", len(b), kind)
	}
	out := make([]float64, 0, len(b)/size)
	for ; len(b) > 0; b = b[size:] {
		var v float64
		switch kind {
		case 1:
			v = float64(int8(b[0]))
		case 2:
			v = float64(b[0])
		case 3:
			v = float64(int16(binary.LittleEndian.Uint16(b)))
		case 4:
			v = float64(binary.LittleEndian.Uint16(b))
		case 5:
			v = float64(int32(binary.LittleEndian.Uint32(b)))
		case 6:
			v = float64(binary.LittleEndian.Uint32(b))
		case 7:
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case 9:
			v = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case 12:
			v = float64(int64(binary.LittleEndian.Uint64(b)))
		case 13:
			v = float64(binary.LittleEndian.Uint64(b))
		}
		out = append(out, v)
	}
	return out, nil
}
