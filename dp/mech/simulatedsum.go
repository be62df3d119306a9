package mech

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

// SimulatedSum adds clipped vectors as floats: fast, and for simulation only,
// because rounding lets a float sum move further than its bound.
type SimulatedSum struct {
	bound  float64 // as in ClippedSum
	sector *Sector
	sum    []float64
	used   bool
}

// NewSimulatedSum sums vectors of n coordinates that are clipped to bound.
func NewSimulatedSum(n int, bound float64) (*SimulatedSum, error) {
	if !(bound > 0) || math.IsInf(bound, 0) {
		return nil, fmt.Errorf("simulated sum: bound %v must be positive and finite", bound)
	}
	if n < 0 {
		return nil, fmt.Errorf("simulated sum: %d coordinates", n)
	}
	return &SimulatedSum{bound: bound, sum: make([]float64, n)}, nil
}

// NewSimulatedSectorSum sums vectors that are clipped to a sector. Its
// sensitivity holds under replace-one only.
func NewSimulatedSectorSum(s *Sector) *SimulatedSum {
	return &SimulatedSum{bound: s.Diameter() / 2, sector: s, sum: make([]float64, len(s.axis))}
}

// Add adds one clipped vector.
func (s *SimulatedSum) Add(c Clipped) error {
	switch {
	case s.used:
		return fmt.Errorf("simulated sum: it was released; Reset it first")
	case s.sector != nil:
		return fmt.Errorf("simulated sum: it sums vectors of a sector; use AddSector")
	case c.v == nil || !c.public || c.bound != s.bound:
		return fmt.Errorf("simulated sum: the vector is not clipped to the public bound %v (its bound: %v, public: %t)", s.bound, c.bound, c.public)
	case len(c.v) != len(s.sum):
		return fmt.Errorf("simulated sum: %d coordinates do not fit a sum of %d", len(c.v), len(s.sum))
	}
	for i, x := range c.v {
		s.sum[i] += x
	}
	return nil
}

// AddSector adds one vector that the sum's own sector clipped.
func (s *SimulatedSum) AddSector(c SectorClipped) error {
	switch {
	case s.used:
		return fmt.Errorf("simulated sum: it was released; Reset it first")
	case s.sector == nil || c.sector != s.sector:
		return fmt.Errorf("simulated sum: the vector was not clipped to this sum's sector")
	}
	for i, x := range c.v {
		s.sum[i] += x
	}
	return nil
}

// Reset empties the sum for another release.
func (s *SimulatedSum) Reset() {
	clear(s.sum)
	s.used = false
}

// manyNormals is from where on vector arithmetic pays.
const manyNormals = 64

// addNormals adds independent normal values of a standard deviation to dst, from
// a keyed source: float noise, for simulation only. Many of them are drawn in
// single precision, in half the time.
func addNormals[F float32 | float64](dst []F, deviation float64, src rand.Source) {
	if len(dst) < manyNormals {
		for i := range dst {
			dst[i] += F(deviation * rng.Normal(src))
		}
		return
	}
	var words [1024]uint32
	var values [1024]float32
	draw := drawWords(src, len(dst))
	for len(dst) > 0 {
		n := min(len(dst), len(values))
		need := kernel.NormalWords32(n)
		draw(words[:need])
		kernel.Normals32(values[:n], float32(deviation), words[:need])
		switch to := any(dst[:n]).(type) {
		case []float32:
			kernel.Axpy(1, values[:n], to)
		case []float64:
			for i, v := range values[:len(to)] {
				to[i] += float64(v)
			}
		}
		dst = dst[n:]
	}
}

// manyWords is from where on a cipher of its own beats the source.
const manyWords = 1 << 14

// drawWords fills slices of even length, of at most 1024 words, with random words.
// For many of them the source keys AES in counter mode, which is faster.
func drawWords(src rand.Source, n int) func(dst []uint32) {
	if n < manyWords {
		return func(dst []uint32) {
			for i := 0; i < len(dst); i += 2 {
				w := src.Uint64()
				dst[i], dst[i+1] = uint32(w), uint32(w>>32)
			}
		}
	}
	var key [32]byte
	for i := 0; i < len(key); i += 8 {
		binary.LittleEndian.PutUint64(key[i:], src.Uint64())
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("mech: AES refuses a key of 32 bytes: " + err.Error())
	}
	stream := cipher.NewCTR(block, make([]byte, aes.BlockSize))
	zero, out := make([]byte, 4096), make([]byte, 4096)
	return func(dst []uint32) {
		b := out[:4*len(dst)]
		stream.XORKeyStream(b, zero[:len(b)])
		for ; len(dst) >= 2 && len(b) >= 8; dst, b = dst[2:], b[8:] {
			w := binary.LittleEndian.Uint64(b)
			dst[0], dst[1] = uint32(w), uint32(w>>32)
		}
	}
}
