package source

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Bounds on what an array may claim.
const (
	mostHeader = 1 << 16
	mostArray  = 1 << 36 // bytes, which are read one after another and not kept
	mostDims   = 4
)

// array is one of NumPy's arrays, open for reading: format versions 1 to 3
// (numpy.lib.format), C order, little-endian numbers.
type array struct {
	io.Reader // its values
	io.Closer
	descr string
	kind  byte // i, u or f
	bytes int  // of a value
	shape []int
}

// openArray reads the header of an array in a zip archive, and holds it against how long
// the archive says that it is.
func openArray(member *zip.File) (*array, error) {
	in, err := member.Open()
	if err != nil {
		return nil, err
	}
	a, length, err := readArrayHeader(in)
	if err == nil && uint64(length) != member.UncompressedSize64 {
		err = fmt.Errorf("an array of type %s and shape %v takes %d bytes with its header, but there are %d", a.descr, a.shape, length, member.UncompressedSize64)
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	a.Reader, a.Closer = in, in
	return a, nil
}

// end says whether the values end here, with the right checksum.
func (a *array) end() error {
	n, err := a.Read(make([]byte, 1))
	if err == nil && n > 0 || err != io.EOF {
		return fmt.Errorf("does not end where it should: %v", err)
	}
	return nil
}

// readArrayHeader reads an array's header, and says how long header and values are.
func readArrayHeader(in io.Reader) (a *array, length int64, err error) {
	var start [8]byte
	if _, err := io.ReadFull(in, start[:]); err != nil {
		return nil, 0, fmt.Errorf("is no array: %w", err)
	}
	if !bytes.Equal(start[:6], []byte("\x93NUMPY")) || start[6] < 1 || start[6] > 3 || start[7] != 0 {
		return nil, 0, fmt.Errorf("is no array: it begins with %q; allowed: \\x93NUMPY and version 1.0, 2.0 or 3.0", start[:])
	}
	size := make([]byte, 2)
	if start[6] > 1 {
		size = make([]byte, 4)
	}
	if _, err := io.ReadFull(in, size); err != nil {
		return nil, 0, fmt.Errorf("the header is cut: %w", err)
	}
	n := int64(binary.LittleEndian.Uint16(size))
	if len(size) == 4 {
		n = int64(binary.LittleEndian.Uint32(size))
	}
	if n > mostHeader {
		return nil, 0, fmt.Errorf("has a header of %d bytes; allowed: at most %d", n, mostHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, 0, fmt.Errorf("the header is cut: %w", err)
	}
	if a, err = parseArrayHeader(string(text)); err != nil {
		return nil, 0, fmt.Errorf("header %.200q: %w", text, err)
	}
	values := int64(a.bytes)
	for _, d := range a.shape {
		if d > 0 && values > mostArray/int64(d) {
			return nil, 0, fmt.Errorf("has the shape %v of %s; allowed: at most %d bytes", a.shape, a.descr, int64(mostArray))
		}
		values *= int64(d)
	}
	return a, int64(len(start)+len(size)) + n + values, nil
}

// parseArrayHeader reads the three entries of a header, a Python dictionary such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
func parseArrayHeader(text string) (*array, error) {
	h := headerText{strings.TrimRight(text, " \n")}
	a := &array{}
	seen := map[string]bool{}
	if !h.take("{") {
		return nil, fmt.Errorf("a dictionary was expected")
	}
	for !h.take("}") {
		key, ok := h.quoted()
		if !ok || seen[key] || !h.take(":") {
			return nil, fmt.Errorf("a key was expected, each once, before %.20q", h.rest)
		}
		seen[key] = true
		var err error
		switch key {
		case "descr":
			err = h.descr(a)
		case "fortran_order":
			if !h.take("False") {
				err = fmt.Errorf("the values must lie in C order (numpy.ascontiguousarray makes it so)")
			}
		case "shape":
			err = h.shape(a)
		default:
			err = fmt.Errorf("the key %q is not known", key)
		}
		if err != nil {
			return nil, err
		}
		if !h.take(",") && !strings.HasPrefix(h.rest, "}") {
			return nil, fmt.Errorf("a comma was expected before %.20q", h.rest)
		}
	}
	if h.rest != "" || len(seen) != 3 {
		return nil, fmt.Errorf("descr, fortran_order and shape were expected, and nothing after them")
	}
	return a, nil
}

// headerText is what is left of a header.
type headerText struct{ rest string }

// take takes a token, and the spaces after it, if it is next.
func (h *headerText) take(token string) bool {
	rest, ok := strings.CutPrefix(h.rest, token)
	if ok {
		h.rest = strings.TrimLeft(rest, " ")
	}
	return ok
}

// quoted takes a text in quotes.
func (h *headerText) quoted() (string, bool) {
	for _, quote := range []string{"'", `"`} {
		if rest, ok := strings.CutPrefix(h.rest, quote); ok {
			text, rest, ok := strings.Cut(rest, quote)
			if ok {
				h.rest = strings.TrimLeft(rest, " ")
			}
			return text, ok
		}
	}
	return "", false
}

// descr takes the type of the values.
func (h *headerText) descr(a *array) error {
	text, ok := h.quoted()
	switch text {
	case "|i1", "|u1", "<i1", "<u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8":
		a.descr, a.kind, a.bytes = text, text[1], int(text[2]-'0')
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("values of the type %q; allowed: little-endian whole numbers of 1 to 8 bytes, floats of 4 or 8 (|u1, <i8, <f4, …)", text)
	}
	return nil
}

// shape takes a tuple of whole numbers.
func (h *headerText) shape(a *array) error {
	if !h.take("(") {
		return fmt.Errorf("the shape must be a tuple of whole numbers")
	}
	for !h.take(")") {
		end := strings.IndexFunc(h.rest, func(c rune) bool { return c < '0' || c > '9' })
		if end < 1 || len(a.shape) == mostDims {
			return fmt.Errorf("the shape must be a tuple of whole numbers, at most %d of them", mostDims)
		}
		n, err := strconv.ParseInt(h.rest[:end], 10, 64)
		if err != nil || n > math.MaxInt32 {
			return fmt.Errorf("the shape has %.20s; allowed: at most %d", h.rest[:end], math.MaxInt32)
		}
		a.shape = append(a.shape, int(n))
		h.rest = strings.TrimLeft(h.rest[end:], " ")
		if !h.take(",") && !strings.HasPrefix(h.rest, ")") {
			return fmt.Errorf("a comma was expected in the shape before %.20q", h.rest)
		}
	}
	return nil
}
