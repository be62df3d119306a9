package cuda

import (
	"encoding/binary"
	"math/bits"
)

// What belongs to messages about parameters that stay on the device. All of them lie in
// memory as the kernels have them.

// Keys are AES-256's round keys, as words.
type Keys [60]uint32

// NoiseOrder belongs to AskDraw and AskNoise: values of a deviation, from somewhere.
type NoiseOrder struct {
	Keys      Keys
	Deviation float32
	From      uint32
}

// Where the values of noise come from.
const (
	FromKeys  = iota // they are drawn
	FromDrawn        // they were, by AskDraw
	FromHost         // they lie in the vectors' room, times their deviation
)

// TurnOrder belongs to AskTurn.
type TurnOrder struct {
	Keys, Before            Keys
	Bound, Deviation, Taken float32
	Last                    uint32
}

// MoveOrder belongs to AskMove.
type MoveOrder struct {
	Factor, Step, Decay, Beta1, Beta2, Keep, Root, Slope float64
	Kind, Pulled                                         int32
}

// Vectors that can be put on the device, and brought home.
const (
	VectorTheta     = iota // float64
	VectorFirst            // float64: the optimiser's means
	VectorSecond           // float64
	VectorOffset           // float64: the regulariser's
	VectorGradient         // float32: the last release's
	VectorDirection        // float32
	Vectors
)

// VectorBytes is the size of one of its values.
func VectorBytes(which int) int {
	if which >= VectorGradient {
		return 4
	}
	return 8
}

// expand makes AES-256's round keys of a key (FIPS 197, section 5.2): the device has no
// library for it.
func expand(key *[32]byte) (k Keys) {
	for i := range 8 {
		k[i] = binary.BigEndian.Uint32(key[4*i:])
	}
	round := uint32(1)
	for i := 8; i < len(k); i++ {
		t := k[i-1]
		switch i % 8 {
		case 0:
			t = substitute(bits.RotateLeft32(t, 8)) ^ round<<24
			round <<= 1
		case 4:
			t = substitute(t)
		}
		k[i] = k[i-8] ^ t
	}
	return k
}

// substitute puts a word's bytes through the cipher's S-box.
func substitute(w uint32) uint32 {
	return uint32(sBox[w>>24])<<24 | uint32(sBox[w>>16&0xff])<<16 | uint32(sBox[w>>8&0xff])<<8 | uint32(sBox[w&0xff])
}

// sBox is AES's: inverses in its field, turned.
var sBox = func() (box [256]byte) {
	double := func(x byte) byte { return x<<1 ^ x>>7*0x1b }
	p, q := byte(1), byte(1)
	for { // p runs through the field's powers of 3, and q through their inverses
		p ^= double(p)
		q ^= q << 1
		q ^= q << 2
		q ^= q << 4
		q ^= q >> 7 * 0x09
		box[p] = q ^ bits.RotateLeft8(q, 1) ^ bits.RotateLeft8(q, 2) ^ bits.RotateLeft8(q, 3) ^ bits.RotateLeft8(q, 4) ^ 0x63
		if p == 1 {
			break
		}
	}
	box[0] = 0x63
	return box
}()
