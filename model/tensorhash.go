package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// TensorsSHA256 names the models in a safetensors file: the SHA-256, in hexadecimal,
// of the tensors' bytes in index order. The header is left out, so that names and
// metadata can change without a model becoming another one.
func TensorsSHA256(file []byte) (string, error) {
	if len(file) < 8 {
		return "", fmt.Errorf("safetensors: a file of %d bytes has no header", len(file))
	}
	header := binary.LittleEndian.Uint64(file)
	if header > uint64(len(file)-8) {
		return "", fmt.Errorf("safetensors: a header of %d bytes in a file of %d", header, len(file))
	}
	sum := sha256.Sum256(file[8+header:])
	return hex.EncodeToString(sum[:]), nil
}
