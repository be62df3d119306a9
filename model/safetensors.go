package model

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Tensor is a named array, as a safetensors file holds it.
type Tensor[F Float] struct {
	Name   string
	Shape  []int
	Values []F
}

// maxHeader bounds the JSON header that is read: a file cannot make the reader
// hold more than this before its lengths are checked.
const maxHeader = 16 << 20

// header is one tensor's entry.
type header struct {
	Dtype   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
	name    string
}

// metadataName is the header's entry that is no tensor.
const metadataName = "__metadata__"

// WriteTensors writes tensors in the order given, little-endian, and what is said about
// them, which may be nil. The bytes depend on the arguments alone.
func WriteTensors[F Float](w io.Writer, tensors []Tensor[F], metadata map[string]string) error {
	text := []byte{'{'}
	var offset int64
	size, dtype := elementSize[F]()
	add := func(name string, entry any) error {
		key, err := json.Marshal(name)
		if err != nil {
			return fmt.Errorf("safetensors: %w", err)
		}
		value, err := json.Marshal(entry)
		if err != nil {
			return fmt.Errorf("safetensors: %w", err)
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(text, key...), ':'), value...)
		return nil
	}
	if len(metadata) > 0 {
		if err := add(metadataName, metadata); err != nil {
			return err
		}
	}
	for _, t := range tensors {
		n, err := elements(t.Shape)
		if err != nil || n != int64(len(t.Values)) {
			return fmt.Errorf("safetensors: %s has %d values for the shape %v", t.Name, len(t.Values), t.Shape)
		}
		if err := add(t.Name, header{Dtype: dtype, Shape: append([]int{}, t.Shape...), Offsets: [2]int64{offset, offset + n*size}}); err != nil {
			return err
		}
		offset += n * size
	}
	text = append(text, '}')
	for len(text)%8 != 0 { // readers map the data: keep it aligned
		text = append(text, ' ')
	}
	out := bufio.NewWriter(w)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(len(text)))
	out.Write(word[:]) // a bufio.Writer keeps its first error for Flush
	out.Write(text)
	writeValues(out, tensors)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// writeValues writes the tensors' bytes, as they stand behind the header.
func writeValues[F Float](out *bufio.Writer, tensors []Tensor[F]) {
	var word [8]byte
	size, _ := elementSize[F]()
	for _, t := range tensors {
		for _, v := range t.Values {
			if size == 4 {
				binary.LittleEndian.PutUint32(word[:], math.Float32bits(float32(v)))
			} else {
				binary.LittleEndian.PutUint64(word[:], math.Float64bits(float64(v)))
			}
			out.Write(word[:size])
		}
	}
}

// HashTensors is the TensorsSHA256 of the file that WriteTensors makes, whatever its
// metadata say: they can name it.
func HashTensors[F Float](tensors []Tensor[F]) string {
	sum := sha256.New()
	out := bufio.NewWriter(sum)
	writeValues(out, tensors)
	out.Flush() // a hash takes everything
	return hex.EncodeToString(sum.Sum(nil))
}

// ReadTensors reads a whole safetensors file of at most limit values, in the order
// of its data. Files of float32, float16 and bfloat16 can be read as either type, files of
// float64 as float64 only. Every length is checked before memory is taken for it.
func ReadTensors[F Float](r io.Reader, limit int64) ([]Tensor[F], error) {
	return readTensors[F](r, limit, func(string) bool { return true })
}

// readTensors reads those tensors that are wanted; others may be of any type.
func readTensors[F Float](r io.Reader, limit int64, wanted func(name string) bool) ([]Tensor[F], error) {
	in := bufio.NewReader(r)
	var word [8]byte
	if _, err := io.ReadFull(in, word[:]); err != nil {
		return nil, fmt.Errorf("safetensors: no header: %w", err)
	}
	length := binary.LittleEndian.Uint64(word[:])
	if length < 2 || length > maxHeader {
		return nil, fmt.Errorf("safetensors: a header of %d bytes; allowed: 2 to %d", length, maxHeader)
	}
	text, err := io.ReadAll(io.LimitReader(in, int64(length)))
	if err != nil || uint64(len(text)) != length {
		return nil, fmt.Errorf("safetensors: the header ends after %d of %d bytes (%w)", len(text), length, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	entries, err := parseHeader(text)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if err := checkLayout[F](entries, limit, wanted); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	var out []Tensor[F]
	for _, e := range entries {
		if !wanted(e.name) {
			if _, err := io.CopyN(io.Discard, in, e.Offsets[1]-e.Offsets[0]); err != nil {
				return nil, fmt.Errorf("safetensors: %s: the data end within it: %w", e.name, err)
			}
			continue
		}
		t, err := readValues[F](in, e)
		if err != nil {
			return nil, fmt.Errorf("safetensors: %s: %w", e.name, err)
		}
		out = append(out, t)
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("safetensors: there are bytes after the last tensor")
	}
	return out, nil
}

// parseHeader walks the tokens itself: a map would hide a name that stands twice.
func parseHeader(text []byte) ([]header, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("the header is not a JSON object")
	}
	var out []header
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		name, ok := t.(string)
		if !ok || seen[name] {
			return nil, fmt.Errorf("header: the name %v stands twice or is no name", t)
		}
		seen[name] = true
		if name == metadataName {
			var m map[string]string
			if err := dec.Decode(&m); err != nil {
				return nil, fmt.Errorf("header, %s: %w", name, err)
			}
			continue
		}
		e := header{name: name}
		if err := dec.Decode(&e); err != nil {
			return nil, fmt.Errorf("header, %s: %w", name, err)
		}
		out = append(out, e)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if rest := bytes.TrimRight(text[dec.InputOffset():], " "); len(rest) > 0 {
		return nil, fmt.Errorf("header: %q stands after the object", rest[:min(len(rest), 20)])
	}
	slices.SortStableFunc(out, func(a, b header) int { return int(min(1, max(-1, a.Offsets[0]-b.Offsets[0]))) })
	return out, nil
}

// checkLayout refuses a file whose tensors do not lie in order: they must follow one another without a hole or an overlap.
func checkLayout[F Float](entries []header, limit int64, wanted func(name string) bool) error {
	var end, values int64
	size, _ := elementSize[F]()
	for _, e := range entries {
		if !wanted(e.name) && e.Offsets[0] == end && e.Offsets[1] >= end {
			end = e.Offsets[1]
			continue
		}
		each := elementBytes[e.Dtype]
		if each == 0 {
			return fmt.Errorf("%s has the type %q; allowed: F32, F64, F16, BF16", e.name, e.Dtype)
		}
		if each > size {
			return fmt.Errorf("%s is float64; reading it as float32 would lose digits", e.name)
		}
		n, err := elements(e.Shape)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if e.Offsets[0] != end || e.Offsets[1]-e.Offsets[0] != n*each {
			return fmt.Errorf("%s lies at bytes %d to %d; its shape %v and the tensor before say %d to %d", e.name, e.Offsets[0], e.Offsets[1], e.Shape, end, end+n*each)
		}
		end, values = e.Offsets[1], values+n
		if values > limit {
			return fmt.Errorf("more than %d values", limit)
		}
	}
	return nil
}

// elementBytes is how many a value has, by its type's name.
var elementBytes = map[string]int64{"F32": 4, "F64": 8, "F16": 2, "BF16": 2}

// elementOf is a value of a type, from its bytes.
func elementOf(dtype string, b []byte) float64 {
	switch dtype {
	case "F64":
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case "BF16":
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	case "F16":
		return half(binary.LittleEndian.Uint16(b))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}

// half is a float16: a sign, 5 bits of exponent and 10 of fraction.
func half(bits uint16) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	v := math.Ldexp(1024+fraction, exponent-25)
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		v = math.Inf(1)
		if fraction > 0 {
			v = math.NaN()
		}
	}
	if bits>>15 == 1 {
		return -v
	}
	return v
}

// elements is a shape's product, refused when negative or beyond any memory.
func elements(shape []int) (int64, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 1<<40 || (d > 0 && n > (1<<40)/int64(d)) {
			return 0, fmt.Errorf("the shape %v cannot be", shape)
		}
		n *= int64(d)
	}
	return n, nil
}

func elementSize[F Float]() (int64, string) {
	var f F
	if _, double := any(f).(float64); double {
		return 8, "F64"
	}
	return 4, "F32"
}

// readValues takes memory as the data arrive: a file that claims more than it has
// costs no more than it has.
func readValues[F Float](in io.Reader, e header) (Tensor[F], error) {
	t := Tensor[F]{Name: e.name, Shape: e.Shape}
	n, _ := elements(e.Shape)
	each := int(elementBytes[e.Dtype])
	block := make([]byte, 1<<16)
	for int64(len(t.Values)) < n {
		want := int(min(int64(len(block)/each), n-int64(len(t.Values)))) * each
		if _, err := io.ReadFull(in, block[:want]); err != nil {
			return t, fmt.Errorf("the data end after %d of %d values: %w", len(t.Values), n, err)
		}
		for b := block[:want]; len(b) > 0; b = b[each:] {
			v := elementOf(e.Dtype, b)
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return t, fmt.Errorf("value %d is %v", len(t.Values), v)
			}
			t.Values = append(t.Values, F(v))
		}
	}
	return t, nil
}

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
