package model

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// WriteSafetensors writes equally long float64 vectors, one after another in
// flat, as tensors prefix.0, prefix.1, … in index order. The bytes depend on the
// values alone.
func WriteSafetensors(w io.Writer, prefix string, flat []float64, length int) error {
	if length <= 0 || len(flat)%length != 0 {
		return fmt.Errorf("safetensors: %d values are not vectors of %d", len(flat), length)
	}
	header := []byte{'{'}
	for j := range len(flat) / length {
		if j > 0 {
			header = append(header, ',')
		}
		header = fmt.Appendf(header, `"%s.%d":{"dtype":"F64","shape":[%d],"data_offsets":[%d,%d]}`,
			prefix, j, length, 8*j*length, 8*(j+1)*length)
	}
	header = append(header, '}')
	for len(header)%8 != 0 { // readers map the data: keep it aligned
		header = append(header, ' ')
	}
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(header)+8*len(flat)), uint64(len(header)))
	out = append(out, header...)
	for _, v := range flat {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}
