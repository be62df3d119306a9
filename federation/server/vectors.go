package server

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// mappedFrom is the size from which a round's releases lie in a mapped file: memory
// then holds only what is being worked on.
const mappedFrom = 256 << 20

// vectors is room for a round's releases, one after another, as the bytes that came
// in and as the numbers that they are.
type vectors struct {
	bytes  []byte
	values []float64
	free   func()
}

// newVectors makes room, in a file of dir if there is much of it and dir is not
// empty.
func newVectors(values int, dir string) (*vectors, error) {
	if 8*values >= mappedFrom && dir != "" {
		raw, free, err := mapFile(dir, 8*values)
		if err != nil {
			return nil, err
		}
		if raw != nil {
			return &vectors{bytes: raw, values: unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(raw))), values), free: free}, nil
		}
	}
	v := make([]float64, values)
	return &vectors{bytes: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*values), values: v, free: func() {}}, nil
}

// settle turns little-endian bytes into this machine's numbers, in place: on most
// machines they are that already.
func (v *vectors) settle() {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return
	}
	for i := range v.values {
		v.values[i] = math.Float64frombits(binary.LittleEndian.Uint64(v.bytes[8*i:]))
	}
}
