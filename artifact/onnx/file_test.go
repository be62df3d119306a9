package onnx_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/artifact/onnx"
)

func written(t *testing.T, g onnx.Graph) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := onnx.Write(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// plain are the operators that files may have: all of ai.onnx, none of ai.onnx.ml.
var plain = strings.Fields(`Add ArgMax AveragePool Cast Clip Concat Conv ConvTranspose Div Equal Gather Gemm GlobalAveragePool
	Greater Identity InstanceNormalization IsNaN LayerNormalization LeakyRelu MatMul MaxPool Mul Not Or ReduceMax Relu Reshape
	Sigmoid Softmax Squeeze Sub Tanh Transpose Where`)

// TestFilesAreWellFormed: by a reader of its own.
func TestFilesAreWellFormed(t *testing.T) {
	for _, e := range append(tableExamples(t), plainExamples(t)...) {
		t.Run(e.name, func(t *testing.T) {
			b := written(t, e.graph)
			if !bytes.Equal(b, written(t, e.graph)) {
				t.Error("the same model gives other bytes")
			}
			f, err := readFile(b)
			if err != nil {
				t.Fatal(err)
			}
			checkHead(t, f, e)
			checkValues(t, f)
			checkTensors(t, f, len(e.graph.Theta))
		})
	}
}

func checkHead(t *testing.T, f file, e example) {
	t.Helper()
	if f.ir != 9 || len(f.sets) != 1 || f.sets[""] != 19 || f.producer != "coterie" || f.version != e.graph.Metadata["version"] {
		t.Errorf("IR version %d, operator sets %v, producer %s %s", f.ir, f.sets, f.producer, f.version)
	}
	if !slices.IsSortedFunc(f.metadata, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) }) || len(f.metadata) != len(e.graph.Metadata) {
		t.Errorf("metadata %v", f.metadata)
	}
	for _, m := range f.metadata {
		if e.graph.Metadata[m[0]] != m[1] {
			t.Errorf("metadata %v", m)
		}
	}
	if len(f.inputs) != len(e.inputs) || len(f.outputs) != len(e.want) {
		t.Fatalf("%d inputs and %d outputs, want %d and %d", len(f.inputs), len(f.outputs), len(e.inputs), len(e.want))
	}
	kinds := map[string]int{"float32": 1, "int64": 7, "string": 8}
	for i, p := range append(slices.Clone(f.inputs), f.outputs...) {
		want, ok := e.inputs[p.name]
		if i >= len(f.inputs) {
			want, ok = e.want[p.name]
		}
		if !ok || p.kind != kinds[want.Type] || len(p.dims) != len(want.Dims) || p.dims[0] != "N" {
			t.Errorf("%q is of type %d and shape %v, want %s %v", p.name, p.kind, p.dims, want.Type, want.Dims)
			continue
		}
		if len(p.dims) > 1 && p.dims[1] == "0" {
			t.Errorf("%q has the shape %v", p.name, p.dims)
		}
	}
	if e.graph.Encoding != nil {
		for i, c := range e.graph.Encoding.Columns {
			if f.inputs[i].name != c.Name {
				t.Errorf("input %d is %q, want the column %q", i, f.inputs[i].name, c.Name)
			}
		}
	}
}

// checkValues: every value has one origin, before it is read; and every one is read.
func checkValues(t *testing.T, f file) {
	t.Helper()
	made, read := map[string]bool{}, map[string]bool{}
	make := func(name string) {
		if made[name] || name == "" {
			t.Errorf("value %q is made twice, or has no name", name)
		}
		made[name] = true
	}
	for _, p := range f.inputs {
		make(p.name)
	}
	for name := range f.tensors {
		make(name)
	}
	for _, n := range f.nodes {
		if !slices.Contains(plain, n.operation) {
			t.Errorf("operation %s", n.operation)
		}
		for _, in := range n.inputs {
			if !made[in] {
				t.Errorf("%v reads %q, which is not made before", n.output, in)
			}
			read[in] = true
		}
		for _, out := range n.output {
			make(out)
		}
	}
	for _, p := range f.outputs {
		read[p.name] = true
	}
	for name := range made {
		if !read[name] {
			t.Errorf("nobody reads %q", name)
		}
	}
}

// checkTensors: sizes are right, and all parameters are there.
func checkTensors(t *testing.T, f file, parameters int) {
	t.Helper()
	var all int
	for name, a := range f.tensors {
		n := 1
		for _, d := range a.dims {
			n *= d
		}
		if len(a.numbers)+len(a.texts) != n {
			t.Errorf("tensor %q of shape %v has %d values", name, a.dims, len(a.numbers)+len(a.texts))
		}
		hint, _, _ := strings.Cut(name, ".")
		if slices.Contains([]string{"weight", "bias", "filter", "intercept"}, hint) {
			all += n
		}
	}
	if all != parameters {
		t.Errorf("%d parameters in the file, want %d", all, parameters)
	}
}

// TestTablesAndRows: graphs of tables and of rows give Coterie's own answers, by an
// evaluator of this package, wherever the tests run.
func TestTablesAndRows(t *testing.T) {
	var evaluated int
	for _, e := range append(tableExamples(t), plainExamples(t)...) {
		if e.graph.Shape.Pictures() {
			continue
		}
		evaluated++
		t.Run(e.name, func(t *testing.T) {
			f, err := readFile(written(t, e.graph))
			if err != nil {
				t.Fatal(err)
			}
			got, err := evaluate(f, e.inputs)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, e.want)
		})
	}
	if evaluated < 20 {
		t.Errorf("%d graphs were evaluated, want 20 or more", evaluated)
	}
}

// TestExamplesDiffer: the first table has refused rows, and rows of both classes.
func TestExamplesDiffer(t *testing.T) {
	e := tableExamples(t)[0]
	refused, labels := 0, map[any]int{}
	for _, v := range e.want["label"].Values {
		labels[v]++
		if v == "" {
			refused++
		}
	}
	if refused < 3 || refused > rows/2 || labels["sent home"] < 5 || labels["kept"] < 5 {
		t.Errorf("labels %v", labels)
	}
}
