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
	if len(dst) < manyNormals { // without memory
		addFew(dst, deviation, src)
		return
	}
	addFrom(newNormals(deviation, src, len(dst)), dst)
}

// addFew draws every value alone.
func addFew[F float32 | float64](dst []F, deviation float64, src rand.Source) {
	for i := range dst {
		dst[i] += F(deviation * rng.Normal(src))
	}
}

// normals are normal values of a standard deviation for a vector of known length, which
// are added to it part by part.
type normals struct {
	deviation float64
	src       rand.Source
	key       *[32]byte        // that draw follows from alone; nil: it reads src
	draw      func(dst []byte) // nil: few, each drawn alone
	words     [4 * normalsAtOnce]byte
	values    [normalsAtOnce]float32
}

func newNormals(deviation float64, src rand.Source, n int) *normals {
	s := &normals{deviation: deviation, src: src}
	switch {
	case n >= manyWords:
		s.key = new([32]byte)
		for i := 0; i < len(s.key); i += 8 {
			binary.LittleEndian.PutUint64(s.key[i:], src.Uint64())
		}
		s.draw = drawByKey(s.key)
	case n >= manyNormals:
		s.draw = func(dst []byte) {
			for i := 0; i < len(dst); i += 8 {
				binary.LittleEndian.PutUint64(dst[i:], src.Uint64())
			}
		}
	}
	return s
}

// redrawn are the values of a key once more, with another deviation.
func redrawn(key *[32]byte, deviation float64) *normals {
	return &normals{deviation: deviation, key: key, draw: drawByKey(key)}
}

// addFrom adds the next values to a part of the vector: of normalsAtOnce values, or several
// times as many, but for the last.
func addFrom[F float32 | float64](s *normals, dst []F) {
	if s.draw == nil {
		addFew(dst, s.deviation, s.src)
		return
	}
	for len(dst) > 0 {
		n := min(len(dst), len(s.values))
		words, values := s.words[:kernel.NormalBytes32(n)], s.values[:n]
		s.draw(words)
		kernel.Normals32(values, float32(s.deviation), words)
		switch to := any(dst[:n]).(type) {
		case []float32:
			kernel.Axpy(1, values, to)
		case []float64:
			kernel.AddSingle(values, to)
		}
		dst = dst[n:]
	}
}

// normalsAtOnce is how many normal values are drawn at a time: words and values stay in
// the first-level cache.
const normalsAtOnce = 1024

// manyWords is from where on a cipher of its own beats the source.
const manyWords = 1 << 14

// drawByKey fills slices, of at most normalsAtOnce words of four bytes, with random bytes,
// by AES in counter mode.
func drawByKey(key *[32]byte) func(dst []byte) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("mech: AES refuses a key of 32 bytes: " + err.Error())
	}
	stream := cipher.NewCTR(block, make([]byte, aes.BlockSize))
	return func(dst []byte) { stream.XORKeyStream(dst, keyStreamOf[:len(dst)]) }
}

// keyStreamOf are zeros: what a cipher's stream is read by.
var keyStreamOf [4 * normalsAtOnce]byte
