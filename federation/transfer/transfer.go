// Package transfer is what both ends of the wire must agree on: how broadcasts and
// releases are cut into parts and encoded, and how a refusal travels.
package transfer

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
)

// PartBytes is the size of the pieces in which models and releases travel.
const PartBytes = 1 << 20

// EnclosedBytes is up to which size a broadcast comes with the word that a round waits, and
// a release goes with its offer, instead of in a call of its own.
const EnclosedBytes = 64 << 10

// Overhead is what a message may hold besides its part: names, hashes, lengths.
const Overhead = 64 << 10

// NewPart is a piece of some content, with its checksum.
func NewPart(offset int64, data []byte) *wire.Part {
	return &wire.Part{Offset: offset, Data: data, Crc32C: crc32.Checksum(data, castagnoli)}
}

// castagnoli is CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CheckPart refuses a part that was damaged on its way.
func CheckPart(p *wire.Part) error {
	if crc32.Checksum(p.GetData(), castagnoli) != p.GetCrc32C() {
		return Refuse(ReasonMalformed, "the part at offset %d is not what was sent", p.GetOffset())
	}
	return nil
}

// broadcastMagic stands first in an encoded broadcast; the number is its version.
const broadcastMagic = "coteriB1"

// broadcastHead is the magic, the round, radius, spread, and two lengths.
const broadcastHead = 8 * 6

// BroadcastSize is how many bytes a broadcast of so many values takes.
func BroadcastSize(values int) int64 { return broadcastHead + 8*int64(values) }

// EncodeBroadcast writes a broadcast as it is sent: little endian, values as the
// simulator holds them.
func EncodeBroadcast(b fl.Broadcast) []byte {
	out := make([]byte, 0, BroadcastSize(len(b.Hypotheses)+len(b.Memory)))
	out = append(out, broadcastMagic...)
	out = binary.LittleEndian.AppendUint64(out, uint64(b.Round))
	out = binary.LittleEndian.AppendUint64(out, math.Float64bits(b.Radius))
	out = binary.LittleEndian.AppendUint64(out, math.Float64bits(b.Spread))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(b.Hypotheses)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(b.Memory)))
	out = AppendVector(out, b.Hypotheses)
	return AppendVector(out, b.Memory)
}

// DecodeBroadcast reads a broadcast. Lengths are held against the bytes at hand, so
// that a false one allocates nothing.
func DecodeBroadcast(raw []byte) (fl.Broadcast, error) {
	var b fl.Broadcast
	if len(raw) < broadcastHead || string(raw[:8]) != broadcastMagic {
		return b, fmt.Errorf("a broadcast begins with %q and %d bytes of head; this is something else", broadcastMagic, broadcastHead)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(raw[8*i:]) }
	body := raw[broadcastHead:]
	round, hypotheses, memory := word(1), word(4), word(5)
	if round > math.MaxInt32 {
		return b, fmt.Errorf("a broadcast of round %d; allowed: up to %d", round, math.MaxInt32)
	}
	most := uint64(len(body) / 8)
	if hypotheses > most || memory > most || 8*(hypotheses+memory) != uint64(len(body)) {
		return b, fmt.Errorf("a broadcast of %d and %d values has %d bytes after its head; wanted 8 for every value", hypotheses, memory, len(body))
	}
	b.Round = int(round)
	b.Radius, b.Spread = math.Float64frombits(word(2)), math.Float64frombits(word(3))
	b.Hypotheses, b.Memory = make([]float64, hypotheses), make([]float64, memory)
	decodeVector(b.Hypotheses, body)
	decodeVector(b.Memory, body[8*hypotheses:])
	for _, part := range [][]float64{{b.Radius, b.Spread}, b.Hypotheses, b.Memory} {
		if i := FirstNotFinite(part); i >= 0 {
			return b, fmt.Errorf("a broadcast of round %d holds %v, which is not a finite number", b.Round+1, part[i])
		}
	}
	if len(b.Memory) == 0 {
		b.Memory = nil
	}
	return b, nil
}

// AppendVector writes values as 8 bytes each, little endian.
func AppendVector(out []byte, values []float64) []byte {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}

// decodeVector reads len(dst) values.
func decodeVector(dst []float64, raw []byte) {
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
}

// FirstNotFinite is the index of the first value that is no finite number, or -1.
func FirstNotFinite(values []float64) int {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return i
		}
	}
	return -1
}
