package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// MaxRecord bounds one record of a comma-separated text, in bytes: what is longer is
// another kind of file, or a quote that nobody closed.
const MaxRecord = 1 << 20

// What can be wrong with a record.
var (
	ErrLongRecord = errors.New("longer than 1 MiB")
	ErrBareQuote  = errors.New(`a quote (") stands inside a cell that does not begin with one; write the cell as "…", its quotes doubled and no blank in front`)
	ErrQuote      = errors.New(`a quoted cell is not closed, or goes on behind its closing quote (")`)
)

// Splitter finds the cells of a comma-separated text (RFC 4180), record by record. What
// it is given and what it finds are bytes of the caller's: no cell is copied unless it
// has doubled quotes.
type Splitter struct {
	Separator byte
	// Cells are those of the last record, without their quotes, good until the next one.
	Cells [][]byte
	// Quoted says that the last record had a quote.
	Quoted bool
	plain  []byte // cells without the doubling of their quotes
}

// Next splits the first record of a text and says how many bytes it has with its line
// end. With more to come, 0 says that the text ends before the record does. An error is
// about this record: the next one begins behind it, on the line after the fault.
func (s *Splitter) Next(text []byte, more bool) (int, error) {
	cut := len(text) > MaxRecord
	if cut {
		text = text[:MaxRecord]
	}
	s.Cells, s.Quoted = s.Cells[:0], false
	n, end := s.unquoted(text)
	var err error
	if s.Quoted {
		n, end, err = s.quoted(text, more && !cut)
	}
	switch {
	case end || err != nil:
		return n, err
	case cut:
		return n, ErrLongRecord
	case more:
		return 0, nil
	}
	return n, nil
}

const (
	everyByte = 0x0101010101010101
	lowBits   = 0x7f7f7f7f7f7f7f7f
)

// equal marks the bytes of a word that are those of a pattern, by their highest bit.
func equal(word, pattern uint64) uint64 {
	x := word ^ pattern
	return ^((x&lowBits + lowBits) | x | lowBits)
}

// unquoted splits up to a line end, eight bytes at a time, or stops at a quote.
func (s *Splitter) unquoted(text []byte) (n int, end bool) {
	separator, from, i := everyByte*uint64(s.Separator), 0, 0
	cells := s.Cells
	for ; i+8 <= len(text); i += 8 {
		word := binary.LittleEndian.Uint64(text[i:])
		for found := equal(word, separator) | equal(word, everyByte*'\n') | equal(word, everyByte*'"'); found != 0; found &= found - 1 {
			at := i + bits.TrailingZeros64(found)>>3
			switch text[at] {
			case s.Separator:
				cells = append(cells, text[from:at])
				from = at + 1
			case '\n':
				s.Cells = append(cells, text[from:at])
				return at + 1, true
			default:
				s.Quoted = true
				return 0, false
			}
		}
	}
	for ; i < len(text); i++ {
		switch text[i] {
		case s.Separator:
			cells = append(cells, text[from:i])
			from = i + 1
		case '\n':
			s.Cells = append(cells, text[from:i])
			return i + 1, true
		case '"':
			s.Quoted = true
			return 0, false
		}
	}
	s.Cells = append(cells, text[from:])
	return len(text), false
}

// quoted splits a record that has a quote, cell by cell.
func (s *Splitter) quoted(text []byte, more bool) (n int, end bool, err error) {
	s.Cells, s.plain = s.Cells[:0], s.plain[:0]
	for i := 0; ; i++ {
		start := i
		if i < len(text) && text[i] == '"' {
			cell, n := s.unquote(text[i+1:])
			if cell == nil && more {
				return 0, false, nil
			}
			if i += 1 + n; cell == nil || i < len(text) && text[i] != s.Separator && text[i] != '\n' && text[i] != '\r' {
				return s.spoilt(text, start, more, ErrQuote)
			}
			s.Cells = append(s.Cells, cell)
			for i < len(text) && text[i] == '\r' {
				i++
			}
			if i < len(text) && text[i] != s.Separator && text[i] != '\n' {
				return s.spoilt(text, start, more, ErrQuote)
			}
		} else {
			for i < len(text) && text[i] != s.Separator && text[i] != '\n' {
				if text[i] == '"' {
					return s.spoilt(text, start, more, ErrBareQuote)
				}
				i++
			}
			s.Cells = append(s.Cells, text[start:i])
		}
		if i == len(text) {
			return i, false, nil
		}
		if text[i] == '\n' {
			return i + 1, true, nil
		}
	}
}

// unquote is the cell whose opening quote stands before text, and where its closing
// quote ends; nil: there is none.
func (s *Splitter) unquote(text []byte) (cell []byte, end int) {
	from, doubled := len(s.plain), false
	for i := 0; ; {
		k := bytes.IndexByte(text[i:], '"')
		if k < 0 {
			return nil, len(text)
		}
		k += i
		if k+1 == len(text) || text[k+1] != '"' {
			if !doubled {
				return text[:k:k], k + 1
			}
			s.plain = append(s.plain, text[i:k]...)
			return s.plain[from:len(s.plain):len(s.plain)], k + 1
		}
		doubled = true
		s.plain = append(s.plain, text[i:k+1]...)
		i = k + 2
	}
}

// spoilt ends a record at the end of the line on which its fault stands, so that a stray
// quote spoils no other.
func (s *Splitter) spoilt(text []byte, at int, more bool, err error) (int, bool, error) {
	if k := bytes.IndexByte(text[at:], '\n'); k >= 0 {
		return at + k + 1, true, err
	}
	if more {
		return 0, false, nil
	}
	return len(text), true, err
}
