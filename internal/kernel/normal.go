package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
)

// normalBlock32 is how many values Normals32 makes of one block of as many words.
const normalBlock32 = 16

// NormalBytes32 is the number of random bytes that Normals32 needs for n
// values: a word of four each, n rounded up to whole blocks.
func NormalBytes32(n int) int { return (n + normalBlock32 - 1) / normalBlock32 * normalBlock32 * 4 }

// Normals32 fills dst with independent normal values of standard deviation
// sigma, made of uniform random words by the Box-Muller transform. It is a
// float sampler with 32 random bits a value and never exceeds 6.7 sigma: for
// simulation only, never for released noise. The words are read only; they are
// bytes, the low one first on every machine, as ciphers write them.
func Normals32(dst []float32, sigma float32, words []byte) {
	checkWords("Normals32", len(words), NormalBytes32(len(dst)))
	whole := len(dst) / normalBlock32 * normalBlock32
	for lo := 0; lo < whole; lo += functionChunk {
		hi := min(lo+functionChunk, whole)
		normals32(dst[lo:hi], sigma, words[4*lo:4*hi])
	}
	if whole < len(dst) {
		var block [normalBlock32]float32
		normals32(block[:], sigma, words[4*whole:4*(whole+normalBlock32)])
		copy(dst[whole:], block[:])
	}
}

func checkWords(function string, got, want int) {
	if got < want {
		panic(fmt.Sprintf("kernel: %s: %d random bytes, want at least %d", function, got, want))
	}
}

// The twin reads the words of a block as the assembly does: the first half
// gives radii, the second angles; see gen/normal.go.

func normals32Twin(dst []float32, sigma float32, words []byte) {
	const half = normalBlock32 / 2
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(words[4*i:]) }
	for lo := 0; lo < len(dst); lo += normalBlock32 {
		for i := lo; i < lo+half; i++ {
			u := (float32(word(i)>>1) + 0.5) * 0x1p-31
			turn := word(i + half)
			angle := (float32(int32(turn)>>8) + 0.5) * float32(math.Pi/4*0x1p-23)
			x, y := boxMuller(float64(u), float64(angle), turn)
			dst[i], dst[i+half] = float32(float64(sigma)*x), float32(float64(sigma)*y)
		}
	}
}

// boxMuller is the pair at radius sqrt(-2*log(u)): the angle lies within pi/4
// of the x axis, bit 0 exchanges sine and cosine, bit 1 turns both about.
func boxMuller(u, angle float64, bits uint32) (x, y float64) {
	radius := math.Sqrt(-2 * math.Log(u))
	if bits&2 != 0 {
		radius = -radius
	}
	sine, cosine := math.Sincos(angle)
	if bits&1 != 0 {
		sine, cosine = cosine, sine
	}
	return radius * cosine, radius * sine
}
