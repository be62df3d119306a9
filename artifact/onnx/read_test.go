package onnx_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one of a message: a number, or bytes.
type field struct {
	id     protowire.Number
	number uint64
	bytes  []byte
}

// fields reads a message, by the wire format alone.
func fields(b []byte) ([]field, error) {
	var out []field
	for len(b) > 0 {
		id, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		f := field{id: id}
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			f.number = uint64(v)
		default:
			return nil, fmt.Errorf("field %d has the type %d", id, kind)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		out, b = append(out, f), b[n:]
	}
	return out, nil
}

// file is an ONNX file that was read back.
type file struct {
	version, producer string
	ir                int
	sets              map[string]int
	metadata          [][2]string
	nodes             []node
	tensors           map[string]array
	inputs, outputs   []port
}

type node struct {
	operation      string
	inputs, output []string
	attributes     map[string][]float64
}

// array is a tensor: numbers or texts.
type array struct {
	kind    int
	dims    []int
	numbers []float64
	texts   []string
}

type port struct {
	name string
	kind int
	dims []string
}

// reader reads messages and keeps the first error.
type reader struct{ err error }

func (r *reader) each(b []byte, use func(f field)) {
	all, err := fields(b)
	if err != nil && r.err == nil {
		r.err = err
	}
	for _, f := range all {
		use(f)
	}
}

func readFile(b []byte) (file, error) {
	var r reader
	out := file{sets: map[string]int{}, tensors: map[string]array{}}
	r.each(b, func(f field) {
		switch f.id {
		case 1:
			out.ir = int(f.number)
		case 2:
			out.producer = string(f.bytes)
		case 3:
			out.version = string(f.bytes)
		case 7:
			r.graph(f.bytes, &out)
		case 8:
			domain, version := "", 0
			r.each(f.bytes, func(f field) {
				if f.id == 1 {
					domain = string(f.bytes)
				} else {
					version = int(f.number)
				}
			})
			out.sets[domain] = version
		case 14:
			var entry [2]string
			r.each(f.bytes, func(f field) { entry[f.id-1] = string(f.bytes) })
			out.metadata = append(out.metadata, entry)
		}
	})
	return out, r.err
}

func (r *reader) graph(b []byte, out *file) {
	r.each(b, func(f field) {
		switch f.id {
		case 1:
			out.nodes = append(out.nodes, r.node(f.bytes))
		case 5:
			name, t := r.tensor(f.bytes)
			if _, twice := out.tensors[name]; twice {
				r.err = fmt.Errorf("two tensors are called %q", name)
			}
			out.tensors[name] = t
		case 11:
			out.inputs = append(out.inputs, r.port(f.bytes))
		case 12:
			out.outputs = append(out.outputs, r.port(f.bytes))
		}
	})
}

func (r *reader) node(b []byte) node {
	n := node{attributes: map[string][]float64{}}
	r.each(b, func(f field) {
		switch f.id {
		case 1:
			n.inputs = append(n.inputs, string(f.bytes))
		case 2:
			n.output = append(n.output, string(f.bytes))
		case 4:
			n.operation = string(f.bytes)
		case 5:
			var name string
			var values []float64
			r.each(f.bytes, func(f field) {
				switch f.id {
				case 1:
					name = string(f.bytes)
				case 2:
					values = append(values, float64(math.Float32frombits(uint32(f.number))))
				case 3, 8:
					values = append(values, float64(f.number))
				}
			})
			n.attributes[name] = values
		}
	})
	return n
}

func (r *reader) tensor(b []byte) (name string, t array) {
	var raw []byte
	r.each(b, func(f field) {
		switch f.id {
		case 1:
			t.dims = append(t.dims, int(f.number))
		case 2:
			t.kind = int(f.number)
		case 6:
			t.texts = append(t.texts, string(f.bytes))
		case 8:
			name = string(f.bytes)
		case 9:
			raw = f.bytes
		}
	})
	switch t.kind {
	case 1:
		for ; len(raw) >= 4; raw = raw[4:] {
			t.numbers = append(t.numbers, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
		}
	case 7:
		for ; len(raw) >= 8; raw = raw[8:] {
			t.numbers = append(t.numbers, float64(binary.LittleEndian.Uint64(raw)))
		}
	}
	if len(raw) > 0 {
		r.err = fmt.Errorf("tensor %q has %d bytes too many", name, len(raw))
	}
	return name, t
}

func (r *reader) port(b []byte) port {
	var p port
	r.each(b, func(f field) {
		switch f.id {
		case 1:
			p.name = string(f.bytes)
		case 2: // the type, in it the tensor's, in it the elements' and the shape
			r.each(f.bytes, func(f field) {
				r.each(f.bytes, func(f field) {
					if f.id == 1 {
						p.kind = int(f.number)
						return
					}
					r.each(f.bytes, func(f field) {
						r.each(f.bytes, func(f field) {
							if f.id == 2 {
								p.dims = append(p.dims, string(f.bytes))
							} else {
								p.dims = append(p.dims, fmt.Sprint(f.number))
							}
						})
					})
				})
			})
		}
	})
	return p
}
