package onnx

import (
	"encoding/binary"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protobuf message that is being written, in parts: tensors are large, and
// are not copied into the messages around them.
type message struct {
	parts [][]byte
	open  []byte // the part that grows
}

func (m *message) size() int64 {
	n := int64(len(m.open))
	for _, p := range m.parts {
		n += int64(len(p))
	}
	return n
}

func (m *message) integer(field protowire.Number, v int64) {
	m.open = protowire.AppendTag(m.open, field, protowire.VarintType)
	m.open = protowire.AppendVarint(m.open, uint64(v))
}

func (m *message) float(field protowire.Number, v float32) {
	m.open = protowire.AppendTag(m.open, field, protowire.Fixed32Type)
	m.open = protowire.AppendFixed32(m.open, math.Float32bits(v))
}

func (m *message) text(field protowire.Number, s string) {
	m.open = protowire.AppendTag(m.open, field, protowire.BytesType)
	m.open = protowire.AppendString(m.open, s)
}

// raw adds bytes as they lie.
func (m *message) raw(field protowire.Number, b []byte) {
	m.message(field, &message{open: b})
}

// message adds a message whose writing is over.
func (m *message) message(field protowire.Number, inner *message) {
	m.open = protowire.AppendTag(m.open, field, protowire.BytesType)
	m.open = protowire.AppendVarint(m.open, uint64(inner.size()))
	m.parts = append(append(append(m.parts, m.open), inner.parts...), inner.open)
	m.open = nil
}

func (m *message) write(w io.Writer) error {
	for _, p := range append(m.parts, m.open) {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// The types of a tensor's elements that the graphs have.
const (
	floats   = 1
	integers = 7
	texts    = 8
	booleans = 9
)

// newTensor is a TensorProto without its elements.
func newTensor(name string, element int64, dims []int) *message {
	t := &message{}
	for _, d := range dims {
		t.integer(1, int64(d))
	}
	t.integer(2, element)
	t.text(8, name)
	return t
}

func floatTensor(name string, dims []int, values []float32) *message {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	t := newTensor(name, floats, dims)
	t.raw(9, b)
	return t
}

func integerTensor(name string, values []int) *message {
	b := make([]byte, 0, 8*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	t := newTensor(name, integers, []int{len(values)})
	t.raw(9, b)
	return t
}

func textTensor(name string, dims []int, values []string) *message {
	t := newTensor(name, texts, dims)
	for _, v := range values {
		t.text(6, v)
	}
	return t
}

// attribute is an AttributeProto.
type attribute = *message

func integerAttribute(name string, v int) attribute {
	a := &message{}
	a.text(1, name)
	a.integer(3, int64(v))
	a.integer(20, 2)
	return a
}

func floatAttribute(name string, v float64) attribute {
	a := &message{}
	a.text(1, name)
	a.float(2, float32(v))
	a.integer(20, 1)
	return a
}

func integersAttribute(name string, values ...int) attribute {
	a := &message{}
	a.text(1, name)
	for _, v := range values {
		a.integer(8, int64(v))
	}
	a.integer(20, 7)
	return a
}

// batch is the name of the number of rows, which is open.
const batch = "N"

// valueInfo is a ValueInfoProto: an input or an output of the graph, of N rows.
func valueInfo(name string, element int64, dims []int, doc string) *message {
	shape := &message{}
	rows := &message{}
	rows.text(2, batch)
	shape.message(1, rows)
	for _, d := range dims {
		dim := &message{}
		dim.integer(1, int64(d))
		shape.message(1, dim)
	}
	tensor := &message{}
	tensor.integer(1, element)
	tensor.message(2, shape)
	kind := &message{}
	kind.message(1, tensor)
	v := &message{}
	v.text(1, name)
	v.message(2, kind)
	v.text(3, doc)
	return v
}
