package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"
)

// TestHashIsOfTheTensorsAlone: names, shapes and metadata do not matter, order and every bit of
// a value do.
func TestHashIsOfTheTensorsAlone(t *testing.T) {
	hash := func(tensors ...Tensor[float64]) string {
		var file bytes.Buffer
		if err := WriteTensors(&file, tensors, nil); err != nil {
			t.Fatal(err)
		}
		sum, err := TensorsSHA256(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var described bytes.Buffer
		if err := WriteTensors(&described, tensors, map[string]string{"model_sha256": sum, "claim": "\"none\""}); err != nil {
			t.Fatal(err)
		}
		again, err := TensorsSHA256(described.Bytes())
		if err != nil || again != sum || HashTensors(tensors) != sum {
			t.Errorf("%s without metadata, %s with them (%v), %s of the tensors", sum, again, err, HashTensors(tensors))
		}
		if !bytes.Contains(described.Bytes(), []byte(`{"__metadata__":{"claim":"\"none\"","model_sha256":"`)) {
			t.Errorf("the metadata are not first in %q", described.Bytes())
		}
		if read, err := ReadTensors[float64](&described, 100); err != nil || len(read) != len(tensors) {
			t.Errorf("%d tensors are read (%v)", len(read), err)
		}
		return sum
	}
	var raw []byte
	for _, v := range []float64{1, 2, 3} {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	sum := sha256.Sum256(raw)
	want := hex.EncodeToString(sum[:])
	one := Tensor[float64]{Name: "a", Shape: []int{2}, Values: []float64{1, 2}}
	two := Tensor[float64]{Name: "b", Shape: []int{1}, Values: []float64{3}}
	renamed := Tensor[float64]{Name: "another, longer name", Shape: []int{1, 2}, Values: one.Values}
	if got := hash(one, two); got != want {
		t.Errorf("the hash is %s, that of the bytes %s", got, want)
	}
	if hash(renamed, two) != want {
		t.Error("a tensor's name or shape changes the hash")
	}
	if hash(two, one) == want {
		t.Error("the order of tensors does not change the hash")
	}
	for _, bad := range [][]byte{nil, {1, 2}, append(binary.LittleEndian.AppendUint64(nil, 9), "{}"...), bytes.Repeat([]byte{0xff}, 16)} {
		if _, err := TensorsSHA256(bad); err == nil || !strings.Contains(err.Error(), "safetensors") {
			t.Errorf("% x: %v", bad, err)
		}
	}
}
