// Package onnx writes trained models as ONNX files, which other programs run: the
// encoding of a table's columns, the model, and what its outputs mean, in one graph.
//
// Files have single precision: a model that was trained in double is rounded, and so are
// the numbers that go in (a public range that is narrow beside its own numbers, such as
// seconds since 1970 of one day, is lost in that). They use
// plain operators only (operator set 19 of ai.onnx, IR version 9), which onnxruntime has
// since 1.16. Equal models give equal bytes.
package onnx

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/model"
)

// Graph is a model and all that is needed to use it.
//
// With an Encoding the graph has an input for every column, under its own name, of [N, 1]
// values: numbers as floats (NaN: missing), yes/no as 0 and 1 (NaN: missing), categories
// as strings (empty, or another of data.MissingCells: missing). Without one it has the
// input "x": rows as [N, features], pictures as [N, height, width, channels] with pixels
// from 0 to 1.
//
// Classes come out as "probabilities" [N, classes] and "label" [N]: the class's name, or
// its place where no Encoding names it. A model of words takes "x" as [N, context] words'
// numbers and gives "probabilities" [N, context, vocabulary] of the word that comes next
// at every place, and no label. Under the hinge loss, which knows no
// probabilities, those are 0 and 1, and "score" [N, 1] is the model's own output. Numbers
// come out as "value" [N, 1], in the target's unit. A row that Coterie would refuse, for
// a cell is missing that must not be, gets NaN and an empty label. An output whose name a
// column has is called "predicted NAME".
type Graph struct {
	Encoding *data.Encoding // nil: no table
	Shape    data.Shape
	Model    config.Model
	Loss     string
	Theta    []float64
	// Centre and Scale are what inputs were standardised by: (x - centre)/scale; empty:
	// they were not.
	Centre, Scale []float64
	// Metadata is kept in the file beside the graph; its "version" is the producer's.
	Metadata map[string]string
}

const (
	irVersion   = 9
	operatorSet = 19
	// maxBytes is what a protobuf message can have.
	maxBytes = 1<<31 - 1
)

// Write writes the model as an ONNX file. It writes nothing if there is an error but for
// one of w itself.
func Write(w io.Writer, g Graph) error { return write(w, g, maxBytes) }

func write(w io.Writer, g Graph, most int64) error {
	if n := 4 * int64(len(g.Theta)); n > most {
		return tooLarge(n, most)
	}
	m, err := g.message()
	if err != nil {
		return fmt.Errorf("export as ONNX: %w", err)
	}
	if n := m.size(); n > most {
		return tooLarge(n, most)
	}
	if err := m.write(w); err != nil {
		return fmt.Errorf("write the ONNX file: %w", err)
	}
	return nil
}

func tooLarge(bytes, most int64) error {
	return fmt.Errorf("export as ONNX: the file would have %d bytes; allowed: %d, which is what a protobuf message can have: export a smaller model", bytes, most)
}

// message is the ModelProto.
func (g Graph) message() (*message, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	layers, outputs, err := g.network()
	if err != nil {
		return nil, err
	}
	answer, err := answerOf(g.Loss, g.Shape, outputs)
	if err != nil {
		return nil, err
	}
	out := newGraph(g.Theta)
	in, refused := g.inputs(out)
	end, err := layers(out, in)
	if err != nil {
		return nil, err
	}
	if left := len(out.theta); left > 0 {
		return nil, fmt.Errorf("the model has %d parameters, of which its layers read %d", len(g.Theta), len(g.Theta)-left)
	}
	out.answers(answer, end.name, refused, g)
	return g.model(out), nil
}

func (g Graph) model(out *graph) *message {
	m := &message{}
	m.integer(1, irVersion)
	m.text(2, "coterie")
	m.text(3, g.Metadata["version"])
	doc := "A model that was trained by Coterie, in single precision."
	m.text(6, doc)
	m.message(7, out.message("coterie", doc))
	set := &message{}
	set.text(1, "")
	set.integer(2, operatorSet)
	m.message(8, set)
	for _, key := range slices.Sorted(maps.Keys(g.Metadata)) {
		entry := &message{}
		entry.text(1, key)
		entry.text(2, g.Metadata[key])
		m.message(14, entry)
	}
	return m
}

// inputs are the model's own, [N, length], and which rows are refused.
func (g Graph) inputs(out *graph) (in value, refused string) {
	in.shape = model.Shape{Height: 1, Width: 1, Channels: g.Shape.Features}
	switch {
	case g.Encoding != nil:
		in.name, refused = out.columns(g.Encoding)
	case g.Shape.Pictures():
		in.shape = model.Shape{Height: g.Shape.Height, Width: g.Shape.Width, Channels: g.Shape.Depth()}
		out.input("x", floats, []int{in.shape.Height, in.shape.Width, in.shape.Channels}, "pictures: rows, columns, channels; pixels from 0 to 1")
		in.name = out.node("Reshape", []string{"x", out.integers("shape", 0, in.shape.Len())})
	case g.Shape.Vocabulary > 0:
		in.name = "x"
		out.input("x", integers, []int{g.Shape.Features}, "rows of words, by their numbers in the vocabulary")
	default:
		in.name = "x"
		out.input("x", floats, []int{g.Shape.Features}, "rows, encoded as for training")
	}
	if len(g.Centre) > 0 {
		dims := []int{1, len(g.Centre)}
		in.name = out.node("Sub", []string{in.name, out.floats("centre", dims, single(g.Centre)...)})
		in.name = out.node("Div", []string{in.name, out.floats("scale", dims, single(g.Scale)...)})
	}
	return in, refused
}

// network says how the model is written, and how many outputs it has.
func (g Graph) network() (write func(*graph, value) (value, error), outputs int, err error) {
	switch g.Model.Kind {
	case "linear":
		return g.regression()
	case "network", "transformer":
	default:
		return nil, 0, fmt.Errorf("model.kind %q is not known; allowed: linear, network, transformer", g.Model.Kind)
	}
	m, err := model.Of(config.Run{Model: g.Model, Algorithm: config.Algorithm{Local: config.Local{Loss: g.Loss}}}, g.Shape)
	if err != nil {
		return nil, 0, err
	}
	if len(g.Theta) != m.Parameters() {
		return nil, 0, fmt.Errorf("%d parameters for a network of %d", len(g.Theta), m.Parameters())
	}
	layers := g.Model.Layers
	if g.Model.Kind == "transformer" {
		if layers, err = model.TransformerLayers(g.Model, g.Shape.Vocabulary); err != nil {
			return nil, 0, err
		}
	}
	if g.Model.Name != "" {
		named, err := model.NamedNetwork(g.Model.Name)
		if err != nil {
			return nil, 0, err
		}
		layers = named.Layers
	}
	outputs = m.(interface{ Output() model.Shape }).Output().Len()
	return func(out *graph, in value) (value, error) {
		end, err := out.layers(in, layers)
		if err != nil {
			return in, err
		}
		return out.flat(end), nil
	}, outputs, nil
}

// regression is a linear model: one output for values and 2 classes, one a class for
// more. Its parameters are the outputs' one after another, each its features' and then
// its intercept.
func (g Graph) regression() (write func(*graph, value) (value, error), outputs int, err error) {
	outputs, features, each := 1, g.Shape.Features, g.Shape.Features
	if g.Shape.Classes > 2 {
		outputs = g.Shape.Classes
	}
	if g.Model.Intercept {
		each++
	}
	switch {
	case g.Shape.Pictures():
		return nil, 0, fmt.Errorf("model.kind %q, but pictures need a network", g.Model.Kind)
	case features < 1:
		return nil, 0, fmt.Errorf("a linear model of %d features; allowed: 1 or more", features)
	case len(g.Theta) != outputs*each:
		return nil, 0, fmt.Errorf("%d parameters for a linear model of %d features and %d outputs; it has %d", len(g.Theta), features, outputs, outputs*each)
	}
	return func(out *graph, in value) (value, error) {
		var weights, intercepts []float32
		for range outputs {
			own, err := out.take(each)
			if err != nil {
				return in, err
			}
			weights = append(weights, single(own[:features])...)
			intercepts = append(intercepts, single(own[features:])...)
		}
		inputs := []string{in.name, out.floats("weight", []int{outputs, features}, weights...)}
		if g.Model.Intercept {
			inputs = append(inputs, out.floats("intercept", []int{outputs}, intercepts...))
		}
		in.name = out.node("Gemm", inputs, integerAttribute("transB", 1))
		return in, nil
	}, outputs, nil
}

// check refuses what no file can hold, and an encoding of another model.
func (g Graph) check() error {
	if e := g.Encoding; e != nil {
		if err := e.Check(); err != nil {
			return err
		}
		if e.Projection != nil {
			return fmt.Errorf("rows are taken to the components of data.projection first, which is not written as ONNX; predict with coterie, or train without")
		}
		if own := e.Shape(); own != g.Shape {
			return fmt.Errorf("the encoding makes %d inputs and %d classes, the model takes %d and %d", own.Features, own.Classes, g.Shape.Features, g.Shape.Classes)
		}
	}
	if n := g.Shape.Features; len(g.Centre) != len(g.Scale) || len(g.Centre) > 0 && (len(g.Centre) != n || g.Shape.Pictures()) {
		return fmt.Errorf("inputs are standardised by %d centres and %d scales, the rows have %d", len(g.Centre), len(g.Scale), n)
	}
	for i, v := range g.Scale {
		if float32(v) == 0 {
			return fmt.Errorf("scale %d is %v; allowed: what is not 0 in single precision", i, v)
		}
	}
	for _, err := range []error{holds("parameter", g.Theta), holds("centre", g.Centre), holds("scale", g.Scale)} {
		if err != nil {
			return err
		}
	}
	for _, s := range g.written() {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8, which ONNX files are written in", s)
		}
	}
	return nil
}

// holds says that single precision can hold values.
func holds(what string, values []float64) error {
	for i, v := range values {
		if !(math.Abs(v) <= math.MaxFloat32) {
			return fmt.Errorf("%s %d is %v; allowed: what single precision can hold, up to %v", what, i, v, math.MaxFloat32)
		}
	}
	return nil
}

// written are the texts that go into the file.
func (g Graph) written() []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(g.Metadata)) {
		all = append(all, key, g.Metadata[key])
	}
	if g.Encoding != nil {
		all = append(all, g.Encoding.Classes...)
		for _, c := range g.Encoding.Columns {
			all = append(append(all, c.Name, c.Constant), c.Values...)
		}
	}
	return all
}
