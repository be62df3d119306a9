package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The log is the magic line, then records:
//
//	marker   1 byte, never 0
//	length   4 bytes, little-endian, of the payload
//	CRC-32C  4 bytes, of marker and length
//	payload  JSON, perhaps with a space after it
//	CRC-32C  4 bytes, of the payload
//	chain    32 bytes: SHA-256 of the previous chain value, the length and the payload
const (
	magic      = "coterie privacy ledger, version 1\n"
	marker     = 0xC7
	headerSize = 1 + 4 + 4
	footerSize = 4 + sha256.Size
	// maxPayload bounds one record: a receipt with a large composed event.
	maxPayload = 1 << 20
	// maxLog bounds what is read into memory at once.
	maxLog = 1 << 30
	// sector is the least that a disk writes at once; larger ones are multiples.
	sector = 512
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// origin is the chain value before the first record.
func origin() Hash { return sha256.Sum256([]byte(magic)) }

// chain is the hash of a record after prev.
func chain(prev Hash, payload []byte) Hash {
	h := sha256.New()
	h.Write(prev[:])
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))))
	h.Write(payload)
	return Hash(h.Sum(nil))
}

// frame puts a payload that starts at offset of the log into its record, and
// returns the chain value after it. The record never ends at the end of a sector:
// the next one's marker then shares a sector with it (see unwritten).
func frame(offset int64, prev Hash, payload []byte) ([]byte, Hash, error) {
	if (offset+headerSize+int64(len(payload))+footerSize)%sector == 0 {
		payload = append(bytes.Clone(payload), ' ')
	}
	if len(payload) > maxPayload {
		return nil, Hash{}, fmt.Errorf("a record of %d bytes is too large; the most is %d", len(payload), maxPayload)
	}
	out := make([]byte, 0, headerSize+len(payload)+footerSize)
	out = append(out, marker)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(payload)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
	out = append(out, payload...)
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(payload, castagnoli))
	next := chain(prev, payload)
	return append(out, next[:]...), next, nil
}

// scan verifies a log and hands every record's payload and chain value to each. It
// returns how many bytes are whole records; what is behind them is a record that
// never became whole, and so was never acknowledged. Everything else that is not
// as it was written is ErrCorrupt.
func scan(log []byte, each func(payload []byte, at Hash) error) (whole int64, err error) {
	if !bytes.HasPrefix(log, []byte(magic)) {
		return 0, fmt.Errorf("%w: it does not start with %q", ErrCorrupt, magic[:len(magic)-1])
	}
	offset, prev := int64(len(magic)), origin()
	for number := 1; offset < int64(len(log)); number++ {
		payload, stored, torn, err := readFrame(log, offset)
		if err != nil {
			return 0, fmt.Errorf("%w: record %d at byte %d: %w", ErrCorrupt, number, offset, err)
		}
		if torn {
			return offset, nil
		}
		next := chain(prev, payload)
		if next != stored {
			return 0, fmt.Errorf("%w: record %d at byte %d does not follow the one before: the chain is broken", ErrCorrupt, number, offset)
		}
		if err := each(payload, next); err != nil {
			return 0, fmt.Errorf("%w: record %d at byte %d: %w", ErrCorrupt, number, offset, err)
		}
		prev = next
		offset += headerSize + int64(len(payload)) + footerSize
	}
	return offset, nil
}

// readFrame reads the record at offset. torn: the log ends before the record does.
func readFrame(log []byte, offset int64) (payload []byte, at Hash, torn bool, err error) {
	rest := log[offset:]
	switch {
	case unwritten(rest, offset):
		return nil, Hash{}, true, nil
	case len(rest) < headerSize:
		return nil, Hash{}, true, nil
	case rest[0] != marker || binary.LittleEndian.Uint32(rest[5:]) != crc32.Checksum(rest[:5], castagnoli):
		return nil, Hash{}, false, fmt.Errorf("its head is damaged")
	}
	length := int64(binary.LittleEndian.Uint32(rest[1:]))
	if length > maxPayload {
		return nil, Hash{}, false, fmt.Errorf("it claims %d bytes; the most is %d", length, maxPayload)
	}
	if int64(len(rest)) < headerSize+length+footerSize {
		return nil, Hash{}, true, nil
	}
	payload, foot := rest[headerSize:headerSize+length], rest[headerSize+length:]
	if binary.LittleEndian.Uint32(foot) != crc32.Checksum(payload, castagnoli) {
		return nil, Hash{}, false, fmt.Errorf("its content is damaged")
	}
	return payload, Hash(foot[4 : 4+sha256.Size]), false, nil
}

// unwritten recognises what some file systems leave after a power loss: the file
// already has its new length, but the new bytes were not written and read as
// zeros. A record's first byte is never 0 and lies in one sector with bytes of an
// earlier, intact record. Sectors are written whole, so the sector was last written
// before the record: it was never synced, and nobody was told that it was.
func unwritten(rest []byte, offset int64) bool {
	if len(rest) < headerSize || offset%sector == 0 {
		return false
	}
	for _, b := range rest {
		if b != 0 {
			return false
		}
	}
	return true
}
