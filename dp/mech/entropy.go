package mech

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Entropy hands out random 64-bit words from a byte stream. Every exact sampler
// draws from one. It is not safe for concurrent use.
//
// It reads ahead, in growing chunks, so the stream should serve nothing else. The
// words depend on the stream's bytes alone, not on how they are read.
type Entropy struct {
	source io.Reader
	pos    int
	end    int
	chunk  int
	buf    [1 << 14]byte
}

// errBrokenSource ends loops that a working source leaves soon: each is left in
// one round with probability at least 1/9, so maxTries rounds, or the 945 zero
// bits of tailGroup, happen with probability below 2^-900.
var errBrokenSource = errors.New("entropy: thousands of draws in a row were refused; the random source is broken, so nothing may be released")

const maxTries = 6000

// firstChunk keeps a short draw from a fresh keyed stream cheap.
const firstChunk = 128

// NewEntropy draws from r. A keyed stream makes the noise repeatable, which is
// for simulation only.
func NewEntropy(r io.Reader) *Entropy {
	e := new(Entropy)
	e.Reset(r)
	return e
}

// SystemEntropy draws from the operating system: the source for real releases.
func SystemEntropy() *Entropy { return NewEntropy(rand.Reader) }

// Reset forgets what was read ahead and draws from r from now on.
func (e *Entropy) Reset(r io.Reader) {
	clear(e.buf[:e.end])
	e.source, e.pos, e.end, e.chunk = r, 0, 0, firstChunk
}

// word returns the next eight bytes of the stream.
func (e *Entropy) word() (uint64, error) {
	if e.pos == e.end {
		if err := e.fill(); err != nil {
			return 0, err
		}
	}
	w := binary.LittleEndian.Uint64(e.buf[e.pos:])
	e.pos += 8
	return w, nil
}

func (e *Entropy) fill() error {
	if e.source == nil {
		return fmt.Errorf("entropy: no source; make one with NewEntropy or SystemEntropy")
	}
	e.pos, e.end = 0, 0 // nothing old is left to be used if the read fails
	if _, err := io.ReadFull(e.source, e.buf[:e.chunk]); err != nil {
		return fmt.Errorf("entropy: cannot read %d random bytes, so nothing may be released: %w", e.chunk, err)
	}
	e.end = e.chunk
	e.chunk = min(2*e.chunk, len(e.buf))
	return nil
}

// fillSecret draws a secret.
func (e *Entropy) fillSecret(secret *[16]byte) error {
	for at := 0; at < len(secret); at += 8 {
		w, err := e.word()
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(secret[at:], w)
	}
	return nil
}

// uniform returns a uniform integer in [0, n), n > 0, without bias: Lemire,
// "Fast random integer generation in an interval" (2019).
func (e *Entropy) uniform(n uint64) (uint64, error) {
	for range maxTries {
		w, err := e.word()
		if err != nil {
			return 0, err
		}
		if v, ok := scaleWord(w, n); ok {
			return v, nil
		}
	}
	return 0, errBrokenSource
}
