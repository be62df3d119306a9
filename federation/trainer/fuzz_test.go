package trainer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
)

func frame(header string, size uint64, values ...byte) []byte {
	b := []byte(magic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	b = binary.LittleEndian.AppendUint64(b, size)
	return append(append(b, header...), values...)
}

// FuzzReadFrame: whatever a child writes, reading it neither panics nor gives a
// number that is not finite nor takes memory that the child can choose.
func FuzzReadFrame(f *testing.F) {
	f.Add(frame(`{"id":7}`, 8, 0, 0, 128, 63, 0, 0, 0, 64))
	f.Add(frame(`{"id":7,"loss":0.25}`, 0))
	f.Add(frame(`{"id":7,"error":"no"}`, 0))
	f.Add(frame(`{"id":8}`, 8))
	f.Add(frame(`{"id":7}`, math.MaxUint64))
	f.Add(frame(`{"id":7}`, 8, 0, 0, 192, 127, 0, 0, 0, 0))
	f.Add([]byte(magic + "\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("Epoch 1"))
	piece := make([]byte, pieceSize)
	f.Fuzz(func(t *testing.T, data []byte) {
		dst := make([]float64, 2)
		a, err := readFrame(bytes.NewReader(data), 7, dst, true, piece)
		if err != nil {
			return
		}
		if a.ID != 7 || a.Loss != nil && (math.IsNaN(*a.Loss) || math.IsInf(*a.Loss, 0)) {
			t.Errorf("read %+v", a)
		}
		for _, v := range dst {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("read %v", dst)
			}
		}
	})
}

// TestReadingTakesBoundedMemory: sizes that a child announces are not allocated.
func TestReadingTakesBoundedMemory(t *testing.T) {
	deep := `{"id":7,"error":` + strings.Repeat("[", maxHeader-20)
	piece, dst := make([]byte, pieceSize), make([]float64, 4)
	for name, data := range map[string][]byte{
		"values":  frame(`{"id":7}`, 1<<60),
		"header":  append([]byte(magic+"\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"), make([]byte, 1<<20)...),
		"nesting": frame(deep, 0),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readFrame(bytes.NewReader(data), 7, dst, true, piece)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 20*maxHeader {
			t.Errorf("%s: %d bytes allocated, error %v", name, used, err)
		}
	}
}

// TestFramesRoundTrip: what we write is what the format says, and values survive as
// float32.
func TestFramesRoundTrip(t *testing.T) {
	values := make([]float64, 3*pieceSize/4+5)
	for i := range values {
		values[i] = float64(float32(math.Sin(float64(i)) * 1e3))
	}
	var b bytes.Buffer
	piece := make([]byte, pieceSize)
	if err := writeFrame(&b, request{ID: 7}, values, piece); err != nil {
		t.Fatal(err)
	}
	text := bytes.Replace(b.Bytes(), []byte(`{"op":"","id":7}`), []byte(`{"id":7}        `), 1)
	got := make([]float64, len(values))
	if _, err := readFrame(bytes.NewReader(text), 7, got, true, piece); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] != values[i] {
			t.Fatalf("value %d is %v, want %v", i, got[i], values[i])
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), 1e39} {
		if err := writeFrame(io.Discard, request{}, []float64{v}, piece); !errors.Is(err, errOurs) {
			t.Errorf("%v was written: %v", v, err)
		}
	}
}
