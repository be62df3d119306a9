package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

// rowDraw draws a number for every row from the row alone, keyed by seed, purpose and
// silo. A split that goes by it does with a row what it does whoever else is there: one
// row more or less changes nothing about the others, as a shuffle of places would.
type rowDraw struct{ key [32]byte }

func newRowDraw(seed uint64, purpose, silo string) rowDraw {
	b := binary.LittleEndian.AppendUint64([]byte("coterie rows 1\x00"), seed)
	b = append(append(append(b, purpose...), 0), silo...)
	return rowDraw{sha256.Sum256(b)}
}

// of is the number of a row's bytes, uniform on 64 bits.
func (d rowDraw) of(row []byte) uint64 {
	h := sha256.New()
	h.Write(d.key[:])
	h.Write(row)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// bytes are a row's values, for of. The result is valid until the next call with the
// same buffer.
func (r Rows) bytes(i int, buffer []byte) []byte {
	buffer = buffer[:0]
	for _, v := range r.X[i*r.Features : (i+1)*r.Features] {
		buffer = binary.LittleEndian.AppendUint64(buffer, math.Float64bits(v))
	}
	return binary.LittleEndian.AppendUint64(buffer, math.Float64bits(r.Y[i]))
}

// holdOut splits 0..n-1: a row is held out if its number, of share*2^64 many, says so.
func holdOut(n int, share float64, number func(i int) uint64) (train, test []int) {
	limit := uint64(share * 0x1p64)
	for i := range n {
		if number(i) < limit {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	return train, test
}

// atMost keeps the rows with the smallest numbers, in their old order. One row less
// lets another one in: where the number of rows is private that is not covered.
func atMost(limit int, index []int, number func(i int) uint64) []int {
	if limit == 0 || len(index) <= limit {
		return index
	}
	numbers := make(map[int]uint64, len(index))
	for _, i := range index {
		numbers[i] = number(i)
	}
	slices.SortStableFunc(index, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	index = index[:limit]
	slices.Sort(index)
	return index
}
