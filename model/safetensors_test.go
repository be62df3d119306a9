package model

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSafetensorsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []Tensor[float32]
		for i := range rapid.IntRange(0, 4).Draw(t, "tensors") {
			shape := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3).Draw(t, "shape")
			n, _ := elements(shape)
			in = append(in, Tensor[float32]{
				Name: fmt.Sprintf("%s %d", rapid.String().Draw(t, "name"), i), Shape: shape,
				Values: rapid.SliceOfN(rapid.Float32(), int(n), int(n)).Draw(t, "values"),
			})
		}
		var file bytes.Buffer
		if err := WriteTensors(&file, in, map[string]string{"format": "test"}); err != nil {
			t.Fatal(err)
		}
		out, err := ReadTensors[float32](bytes.NewReader(file.Bytes()), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) != len(in) {
			t.Fatalf("%d tensors, wrote %d", len(out), len(in))
		}
		for i := range in {
			if !slices.Equal(out[i].Values, in[i].Values) || !slices.Equal(out[i].Shape, in[i].Shape) {
				t.Fatalf("%+v became %+v", in[i], out[i])
			}
		}
	})
}

func TestSafetensorsBytes(t *testing.T) {
	var file bytes.Buffer
	if err := WriteTensors(&file, []Tensor[float64]{{Name: "hypothesis.0", Shape: []int{2}, Values: []float64{1, -2}}}, nil); err != nil {
		t.Fatal(err)
	}
	head := `{"hypothesis.0":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}`
	head += strings.Repeat(" ", (8-len(head)%8)%8)
	want := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	want = append(want, head...)
	values, _ := hex.DecodeString("000000000000f03f00000000000000c0")
	if want = append(want, values...); !bytes.Equal(file.Bytes(), want) {
		t.Errorf("%q\n%q", file.Bytes(), want)
	}
}

func TestSafetensorsRefuses(t *testing.T) {
	file := func(head string, data []byte) []byte {
		return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...)
	}
	two := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}}`
	nan := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	for name, raw := range map[string][]byte{
		"empty":           nil,
		"huge header":     binary.LittleEndian.AppendUint64(nil, 1<<40),
		"cut header":      file(fmt.Sprintf(two, 4, 8), nil)[:30],
		"not JSON":        file("hello...", nil),
		"overlap":         file(fmt.Sprintf(two, 2, 6), make([]byte, 8)),
		"hole":            file(fmt.Sprintf(two, 8, 12), make([]byte, 12)),
		"wrong length":    file(fmt.Sprintf(two, 4, 12), make([]byte, 12)),
		"backwards":       file(fmt.Sprintf(two, 4, 0), make([]byte, 8)),
		"data cut":        file(fmt.Sprintf(two, 4, 8), make([]byte, 7)),
		"data left":       file(fmt.Sprintf(two, 4, 8), make([]byte, 9)),
		"twice":           file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, nil),
		"type":            file(`{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}`, make([]byte, 8)),
		"float64":         file(`{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`, make([]byte, 8)),
		"negative shape":  file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, make([]byte, 4)),
		"overflow":        file(`{"a":{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,4]}}`, make([]byte, 4)),
		"claims too much": file(`{"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}}`, make([]byte, 4)),
		"unknown field":   file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1}}`, nil),
		"NaN":             file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, nan),
		"after the head":  file(`{} x`, nil),
	} {
		if _, err := ReadTensors[float32](bytes.NewReader(raw), 1000); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if err := WriteTensors(&bytes.Buffer{}, []Tensor[float32]{{Name: "a", Shape: []int{3}, Values: make([]float32, 2)}}, nil); err == nil {
		t.Error("two values were written for a shape of three")
	}
}

func FuzzReadTensors(f *testing.F) {
	var file bytes.Buffer
	if err := WriteTensors(&file, []Tensor[float64]{{Name: "a", Shape: []int{2, 1}, Values: []float64{1, 2}}, {Name: "b", Shape: []int{}, Values: []float64{3}}}, map[string]string{"k": "v"}); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		tensors, err := ReadTensors[float64](bytes.NewReader(raw), 1<<16)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := WriteTensors(&again, tensors, nil); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
