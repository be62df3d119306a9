package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/coterie-fl/coterie/data"
)

// blockSize is how much text is parsed at a time. It holds two of the longest records, so
// that one that does not end in it is too long.
const blockSize = 2 * data.MaxRecord

// cutter cuts a text into blocks of whole records.
type cutter struct {
	path     string
	in       io.Reader
	size     int // of a block, at most blockSize
	splitter data.Splitter
	line     int    // of the next block, from 1
	buffer   []byte // what the last read left, and room
	have     int    // bytes in it
	ended    bool
	fault    *Fault // after the next block: the rest of the file cannot be read
}

// block is some whole records.
type block struct {
	text   []byte
	line   int // of its first record, from 1
	lines  int // line ends
	buffer []byte
	fault  *Fault // instead of text
}

var buffers sync.Pool

func buffer(size int) []byte {
	if b, ok := buffers.Get().(*[]byte); ok && len(*b) >= size {
		return *b
	}
	return make([]byte, size)
}

func (b *block) release() {
	if b.buffer != nil {
		buffers.Put(&b.buffer)
	}
}

// fill reads until the buffer is full or the text ends, and returns what there is.
func (c *cutter) fill() ([]byte, error) {
	if c.buffer == nil {
		c.buffer = buffer(c.size)
	}
	for c.have < len(c.buffer) && !c.ended {
		n, err := c.in.Read(c.buffer[c.have:])
		c.have += n
		switch {
		case err == io.EOF:
			c.ended = true
		case err != nil:
			// A cut archive must not end in a row that looks whole.
			return nil, fmt.Errorf("%s, after line %d: %w", c.path, c.line, err)
		}
	}
	return c.buffer[:c.have], nil
}

// skip drops bytes at the start.
func (c *cutter) skip(n int) {
	c.have = copy(c.buffer, c.buffer[n:c.have])
}

// next is the next block; at the end it is io.EOF.
func (c *cutter) next() (*block, error) {
	if c.fault != nil {
		return nil, io.EOF
	}
	text, err := c.fill()
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, io.EOF
	}
	n := len(text)
	if !c.ended {
		if n = c.whole(text); n == 0 {
			c.fault = &Fault{File: c.path, Line: c.line, What: tooLong + " The rest of the file was not read."}
			return &block{fault: c.fault}, nil
		}
	}
	b := &block{text: text[:n:n], line: c.line, lines: bytes.Count(text[:n], []byte{'\n'}), buffer: c.buffer}
	c.line += b.lines
	c.buffer = buffer(c.size)
	c.have = copy(c.buffer, text[n:])
	return b, nil
}

// whole is how many bytes of a text are whole records; more follows. Without quotes every
// line end ends one.
func (c *cutter) whole(text []byte) int {
	quote := bytes.IndexByte(text, '"')
	if quote < 0 {
		return bytes.LastIndexByte(text, '\n') + 1
	}
	at := bytes.LastIndexByte(text[:quote], '\n') + 1
	for {
		n, err := c.splitter.Next(text[at:], true)
		if errors.Is(err, data.ErrLongRecord) {
			return at
		}
		if n == 0 {
			return at
		}
		at += n
	}
}
