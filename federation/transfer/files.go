package transfer

import (
	"bytes"
	"encoding/gob"
	"fmt"

	"github.com/coterie-fl/coterie/model"
)

// ModelFile is the file of the models that a run returns: the same bytes as a
// simulation's has for them.
func ModelFile(hypotheses []float64, parameters int) ([]byte, error) {
	var tensors []model.Tensor[float64]
	for j := 0; (j+1)*parameters <= len(hypotheses); j++ {
		v := hypotheses[j*parameters : (j+1)*parameters]
		tensors = append(tensors, model.Tensor[float64]{Name: fmt.Sprintf("hypothesis.%d", j), Shape: []int{len(v)}, Values: v})
	}
	var out bytes.Buffer
	if err := model.WriteTensors(&out, tensors, nil); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// EncodeGob writes what only the program that wrote it will read: a state, a memory.
func EncodeGob(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b.Bytes(), nil
}

// DecodeGob reads what EncodeGob wrote.
func DecodeGob(raw []byte, into any) error {
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(into); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	return nil
}
