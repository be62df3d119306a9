package mech

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/internal/rng"
)

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
		if single, ok := any(dst).([]float32); ok {
			kernel.Axpy(1, values[:n], single[:n])
		} else {
			for i, v := range values[:n] {
				dst[i] += F(v)
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
		for i := range dst {
			dst[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
	}
}
