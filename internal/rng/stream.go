// Package rng gives named streams of randomness, keyed by run seed, purpose, round and client.
package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// Family is all streams of one run that serve one purpose.
type Family struct{ key [32]byte }

// NewFamily names the streams of a purpose. Two purposes never share a stream.
func NewFamily(seed uint64, purpose string) Family {
	b := binary.LittleEndian.AppendUint64([]byte("coterie stream 1\x00"), seed)
	return Family{sha256.Sum256(append(b, purpose...))}
}

// Stream is a keyed source: the same key always gives the same values, whichever
// worker asks and whenever. It is for simulation, never for a real release. The
// zero value must be keyed before use.
type Stream struct{ rand.ChaCha8 }

// Stream makes the stream of one round and client.
func (f *Family) Stream(round, client int) *Stream {
	var s Stream
	s.Key(f, round, client)
	return &s
}

// Key restarts s as the stream of one round and client, without allocating.
func (s *Stream) Key(f *Family, round, client int) {
	var b [48]byte
	copy(b[:32], f.key[:])
	binary.LittleEndian.PutUint64(b[32:], uint64(round))
	binary.LittleEndian.PutUint64(b[40:], uint64(client))
	s.Seed(sha256.Sum256(b[:]))
}

// Float64 is uniform on [0, 1), a multiple of 2^-53.
func (s *Stream) Float64() float64 { return Float64(s) }

// Normal is a standard normal value.
func (s *Stream) Normal() float64 { return Normal(s) }

// Shuffle permutes v uniformly.
func (s *Stream) Shuffle(v []int) {
	for i := len(v) - 1; i > 0; i-- {
		j := s.Below(i + 1)
		v[i], v[j] = v[j], v[i]
	}
}

// Below is uniform on 0..n-1 (n > 0).
func (s *Stream) Below(n int) int {
	// Lemire 2019: reject the few low products that would favour small values.
	limit := -uint64(n) % uint64(n)
	for {
		hi, lo := bits.Mul64(s.Uint64(), uint64(n))
		if lo >= limit {
			return int(hi)
		}
	}
}
