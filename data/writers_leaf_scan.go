package data

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// maxWord bounds a number, and maxText a string, in bytes.
const (
	maxWord = 64
	maxText = 1 << 16
)

// jsonScanner reads the little of JSON that LEAF's files are made of: objects,
// lists, strings and numbers, as a stream. The standard decoder goes over every
// byte several times, which counts for files of gigabytes (BenchmarkReadLEAF).
type jsonScanner struct {
	in     *bufio.Reader
	offset int64
	word   []byte
}

func newJSONScanner(r io.Reader) *jsonScanner {
	return &jsonScanner{in: bufio.NewReaderSize(r, 1<<16)}
}

func (s *jsonScanner) read() (byte, error) {
	b, err := s.in.ReadByte()
	if err == io.EOF {
		return 0, io.ErrUnexpectedEOF
	}
	s.offset++
	return b, err
}

// unread takes back the byte that was just read.
func (s *jsonScanner) unread() {
	s.offset--
	// It fails only if nothing was read before.
	_ = s.in.UnreadByte()
}

// next is the next byte that is no space.
func (s *jsonScanner) next() (byte, error) {
	for {
		b, err := s.read()
		if err != nil || b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b, err
		}
	}
}

func (s *jsonScanner) expect(want byte) error {
	b, err := s.next()
	if err != nil {
		return fmt.Errorf("%q must follow: %w", want, err)
	}
	if b != want {
		return fmt.Errorf("%q where %q must be", b, want)
	}
	return nil
}

// end checks that nothing but space is left.
func (s *jsonScanner) end() error {
	switch b, err := s.next(); {
	case err == io.ErrUnexpectedEOF:
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%q after the end of the object", b)
	}
}

// items walks what stands between two brackets, parted by commas.
func (s *jsonScanner) items(open, shut byte, visit func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	b, err := s.next()
	if err != nil {
		return err
	}
	if b == shut {
		return nil
	}
	s.unread()
	for {
		if err := visit(); err != nil {
			return err
		}
		switch b, err := s.next(); {
		case err != nil:
			return err
		case b == shut:
			return nil
		case b != ',':
			return fmt.Errorf("%q where %q or a comma must be", b, shut)
		}
	}
}

// numbers walks a list of numbers as text. What is no number arrives as text that
// no number parser takes.
func (s *jsonScanner) numbers(visit func(item []byte) error) error {
	return s.items('[', ']', func() error {
		b, err := s.next()
		for s.word = s.word[:0]; err == nil; b, err = s.read() {
			if b == ',' || b == ']' || b == '}' || b <= ' ' {
				s.unread()
				return visit(s.word)
			}
			if len(s.word) == maxWord {
				return fmt.Errorf("a number of more than %d bytes", maxWord)
			}
			s.word = append(s.word, b)
		}
		return err
	})
}

// text reads a string.
func (s *jsonScanner) text() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	raw := []byte{'"'}
	for escaped := false; ; {
		b, err := s.read()
		if err != nil {
			return "", err
		}
		if raw = append(raw, b); len(raw) > maxText {
			return "", fmt.Errorf("a string of more than %d bytes", maxText)
		}
		if b == '"' && !escaped {
			break
		}
		escaped = b == '\\' && !escaped
	}
	var out string
	if err := json.Unmarshal(raw, &out); err != nil {
		return "", fmt.Errorf("the string %s: %w", shorten(string(raw)), err)
	}
	return out, nil
}

// object walks the keys of an object; each comes once.
func (s *jsonScanner) object(visit func(key string) error) error {
	seen := map[string]bool{}
	return s.items('{', '}', func() error {
		key, err := s.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %q is there twice", key)
		}
		seen[key] = true
		if err := s.expect(':'); err != nil {
			return err
		}
		return visit(key)
	})
}

// skip passes over a value without looking into it.
func (s *jsonScanner) skip() error {
	for depth := 0; ; {
		b, err := s.next()
		if err != nil {
			return err
		}
		switch b {
		case '"':
			s.unread()
			if _, err := s.text(); err != nil {
				return err
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 { // the value was a number or a word and ended before this
				s.unread()
				return nil
			}
			if b != ',' {
				depth--
			}
		default:
			continue // of a number, a word or a key
		}
		if depth == 0 {
			return nil
		}
	}
}
